/* SPDX-License-Identifier: Apache-2.0 */
/* The table of an ablation as text, Markdown, HTML and JSON. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ablate_cell.h"
#include "output_file.h"
#include "tune/page.h"

/* The cell of the same layout with everything on. */
static const fm_cell *base_of(const fm_ablation *a, const fm_cell *c)
{
    for (int i = 0; i < a->n_cell; i++)
        if (a->cell[i].layout == c->layout && !a->cell[i].off && a->cell[i].state == FM_CELL_OK)
            return &a->cell[i];
    return NULL;
}

static void add_verdict(fm_str *out, const fm_ablation *a)
{
    int n_ok = 0;
    for (int i = 0; i < a->n_cell; i++) n_ok += a->cell[i].state == FM_CELL_OK;
    fm_str_printf(out, "%d cells ran, %d failed; ", n_ok, a->n_failed);
    if (a->differ)
        fm_str_printf(out, "the answers of %d cells differ", a->differ);
    else if (a->n_group == 1)
        fm_str_puts(out, "all answers are the same bytes");
    else
        fm_str_printf(out,
                      "the answers are the same bytes in each of %d groups (an FP8 cache changes "
                      "numbers and is compared with its like)",
                      a->n_group);
    fm_str_puts(out, ".");
}

/* ---- Markdown ---- */

static void markdown_row(fm_str *out, const fm_ablation *a, const fm_cell *c)
{
    fm_str_printf(out, "| %s |", fm_ablate_layouts[c->layout].name);
    if (c->state == FM_CELL_SKIPPED) {
        for (int i = 0; i < a->n_feature + 4; i++) fm_str_puts(out, " - |");
        fm_str_printf(out, " %s |\n", c->why);
        return;
    }
    for (int i = 0; i < a->n_feature; i++)
        fm_str_puts(out, fm_ablate_is_on(a, c, i) ? " on |" : " off |");
    if (c->state == FM_CELL_FAILED) {
        fm_str_printf(out, " failed | | | | %s |\n", c->why);
        return;
    }
    const fm_cell *base = base_of(a, c);
    fm_str_printf(out, " %.1f |", c->throughput);
    fm_str_printf(out, base ? " %.2f |" : " |", base ? c->throughput / base->throughput : 0.0);
    fm_str_printf(out, " %.1f | %.1f | `%016llx` |\n", c->ttft_ms, c->memory / 1048576,
                  (unsigned long long)c->hash);
}

static void add_absent_features(fm_str *out, const fm_ablation *a)
{
    const char *sep = "\nNot here, hence -: ";
    int         n   = 0;
    for (int i = 0; i < fm_n_ablate_feature; i++) {
        const fm_ablate_feature *f   = &fm_ablate_features[i];
        const char              *why = fm_ablate_lacks(a, f);
        if (!why) continue;
        fm_str_printf(out, "%s%s (%s; %s)", sep, f->name, f->about, why);
        sep = ", ";
        n++;
    }
    if (n) fm_str_puts(out, ".\n");
}

static void add_markdown(fm_str *out, const fm_ablation *a)
{
    fm_str_puts(out, "| layout |");
    for (int i = 0; i < a->n_feature; i++)
        fm_str_printf(out, " %s |", fm_ablate_features[a->feature[i]].name);
    fm_str_puts(out, " tok/s | of all on | mean TTFT ms | MiB | answers |\n|---|");
    for (int i = 0; i < a->n_feature; i++) fm_str_puts(out, "---|");
    fm_str_puts(out, "---:|---:|---:|---:|---|\n");
    for (int i = 0; i < a->n_cell; i++) markdown_row(out, a, &a->cell[i]);
    add_absent_features(out, a);
    fm_str_puts(out, "\n");
    add_verdict(out, a);
    fm_str_puts(out, "\n");
}

/* ---- HTML ---- */

static void html_row(fm_str *out, const fm_ablation *a, const fm_cell *c)
{
    const fm_cell *base = base_of(a, c);
    fm_str_printf(out, "<tr><td>%s</td>", fm_ablate_layouts[c->layout].name);
    for (int i = 0; i < a->n_feature; i++)
        fm_str_printf(out, "<td>%s</td>",
                      c->state == FM_CELL_SKIPPED ? "-"
                      : fm_ablate_is_on(a, c, i)  ? "on"
                                                  : "off");
    if (c->state == FM_CELL_OK) {
        fm_str_printf(out,
                      "<td class=\"n\">%.1f</td><td class=\"n\">%.2f</td><td class=\"n\">%.1f</td>",
                      c->throughput, base ? c->throughput / base->throughput : 0.0, c->ttft_ms);
        fm_str_printf(out, "<td class=\"n\">%.1f</td><td class=\"hash\">%016llx</td></tr>\n",
                      c->memory / 1048576, (unsigned long long)c->hash);
    } else {
        fm_str_printf(out, "<td class=\"%s\" colspan=\"5\">",
                      c->state == FM_CELL_FAILED ? "failed" : "pruned");
        fm_page_text(out, c->why);
        fm_str_puts(out, "</td></tr>\n");
    }
}

static void add_html(fm_str *out, const fm_ablation *a)
{
    fm_str text = {0};
    fm_page_begin(out, "fathom ablate");
    add_verdict(&text, a);
    fm_str_puts(out, "<p>");
    fm_page_text(out, text.text);
    fm_str_puts(out, "</p>\n<h2>All on</h2><pre>");
    fm_str_clear(&text);
    fm_cell_command(&text, a, &a->cell[0]);
    fm_page_text(out, text.text);
    fm_str_puts(out, "</pre>\n<div class=\"scroll\"><table><thead><tr><th>layout</th>");
    for (int i = 0; i < a->n_feature; i++)
        fm_str_printf(out, "<th>%s</th>", fm_ablate_features[a->feature[i]].name);
    fm_str_puts(
        out,
        "<th>tok/s</th><th>of all on</th><th>mean TTFT ms</th><th>MiB</th><th>answers</th></tr>"
        "</thead>\n<tbody>");
    for (int i = 0; i < a->n_cell; i++) html_row(out, a, &a->cell[i]);
    fm_str_puts(out, "</tbody></table></div>\n");
    fm_page_end(out);
    fm_str_fini(&text);
}

/* ---- JSON ---- */

static json_t *cell_json(const fm_ablation *a, const fm_cell *c)
{
    static const char *const state[] = {"ok", "failed", "skipped"};
    json_t *o    = json_pack("{s:s, s:s}", "layout", fm_ablate_layouts[c->layout].name, "state",
                             state[c->state]);
    fm_str  text = {0};
    for (int i = 0; i < a->n_feature; i++)
        json_object_set_new(o, fm_ablate_features[a->feature[i]].name,
                            json_boolean(fm_ablate_is_on(a, c, i)));
    if (c->state == FM_CELL_OK) {
        fm_str_printf(&text, "%016llx", (unsigned long long)c->hash);
        json_object_set_new(o, "total_throughput", json_real(c->throughput));
        json_object_set_new(o, "mean_ttft_ms", json_real(c->ttft_ms));
        json_object_set_new(o, "memory_bytes", json_real(c->memory));
        json_object_set_new(o, "answers", json_string(text.text));
        json_object_set_new(o, "answers_group", json_integer(c->group));
    } else {
        json_object_set_new(o, "why", json_string(c->why));
    }
    fm_str_clear(&text);
    fm_cell_command(&text, a, c);
    json_object_set_new(o, "command", json_string(text.text));
    fm_str_fini(&text);
    return o;
}

static void add_json(fm_str *out, const fm_ablation *a)
{
    json_t *cells = json_array();
    for (int i = 0; i < a->n_cell; i++) json_array_append_new(cells, cell_json(a, &a->cell[i]));
    json_t *o    = json_pack("{s:i, s:i, s:i, s:i, s:o}", "cells", a->n_cell, "failed", a->n_failed,
                             "differ", a->differ, "groups", a->n_group, "results", cells);
    char   *text = o ? json_dumps(o, JSON_PRESERVE_ORDER | JSON_INDENT(1)) : NULL;
    FM_BUG_UNLESS(text != NULL);
    fm_str_printf(out, "%s\n", text);
    free(text);
    json_decref(o);
}

static fm_status write_file(const char *flag, const char                                  *path,
                            void (*add)(fm_str *, const fm_ablation *), const fm_ablation *a)
{
    if (!path) return FM_OK;
    fm_str text = {0};
    add(&text, a);
    const fm_status rc = fm_output_write(flag, path, &text);
    fm_str_fini(&text);
    return rc;
}

fm_status fm_ablate_report(const fm_ablation *a)
{
    fm_str text = {0};
    add_markdown(&text, a);
    fputs(text.text, stdout);
    fm_str_fini(&text);
    FM_TRY(write_file("markdown", a->options.markdown, add_markdown, a));
    FM_TRY(write_file("html", a->options.html, add_html, a));
    return write_file("json", a->options.json, add_json, a);
}
