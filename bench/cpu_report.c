/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cpu_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/output.h"

static void *room_for_one(void *list, int n, int *cap, size_t each)
{
    if (n < *cap) return list;
    *cap       = *cap ? *cap * 2 : 64;
    void *more = realloc(list, (size_t)*cap * each);
    FM_BUG_UNLESS(more != NULL);
    return more;
}

double fm_result_percent(const fm_result *x)
{
    return x->bound > 0 ? 100 * x->bound / x->seconds : 0;
}

static void print_result(const fm_result *x, int is_new_group)
{
    if (is_new_group)
        printf("\n%-26s %12s %10s %12s %9s\n", x->group, "ms", x->unit, "limit", "of limit");
    printf("%-26s %12.3f %10.1f", x->name, x->seconds * 1e3, x->work / x->seconds);
    if (x->bound > 0) printf(" %12.1f %8.0f%%", x->work / x->bound, fm_result_percent(x));
    printf("\n");
    fflush(stdout);
}

void fm_report_add(fm_report *r, const fm_result *x)
{
    r->result = room_for_one(r->result, r->n, &r->cap, sizeof *r->result);
    if (!r->quiet) print_result(x, r->n == 0 || strcmp(r->result[r->n - 1].group, x->group));
    r->result[r->n++] = *x;
}

void fm_report_fact(fm_report *r, const char *name, double value, const char *unit)
{
    r->fact    = room_for_one(r->fact, r->n_fact, &r->cap_fact, sizeof *r->fact);
    fm_fact *f = &r->fact[r->n_fact++];
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->unit, sizeof f->unit, "%s", unit);
    f->value = value;
    if (!r->quiet) printf("\n%s: %.4g %s\n", name, value, unit);
}

void fm_report_fini(fm_report *r)
{
    free(r->result);
    free(r->fact);
    r->result = NULL;
    r->fact   = NULL;
}

static void cpu_name(char *out, size_t cap)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char  line[256];
    snprintf(out, cap, "unknown CPU");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        snprintf(out, cap, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f) fclose(f);
}

static void describe(const fm_report *r, fm_str *out)
{
    char cpu[128], date[16];
    cpu_name(cpu, sizeof cpu);
    fm_today(date);
    fm_str_printf(out, "%s, %d threads%s, %s, %s, commit %s", cpu, r->limits.n_thread,
                  r->pinned ? " on cores of their own" : "", fm_isa_name(r->limits.isa), date,
                  r->commit);
}

void fm_report_head(const fm_report *r)
{
    fm_str text = {0};
    describe(r, &text);
    if (!r->quiet)
        printf("%s\nread %.1f GB/s, bf16 peak %.0f GFLOP/s\n", text.text, r->limits.read * 1e-9,
               r->limits.peak * 1e-9);
    fm_str_fini(&text);
}

void fm_report_markdown(const fm_report *r, fm_str *out)
{
    describe(r, out);
    fm_str_printf(
        out, "; %s, dummy weights, BF16 where no other type is named.\nMeasured limits: read %.1f GB/s, peak %.0f GFLOP/s.\n",
        r->model, r->limits.read * 1e-9, r->limits.peak * 1e-9);
    for (int i = 0; i < r->n; i++) {
        const fm_result *x = &r->result[i];
        if (i == 0 || strcmp(r->result[i - 1].group, x->group))
            fm_str_printf(out, "\n| %s | ms | %s | limit | of limit |\n|---|---:|---:|---:|---:|\n",
                          x->group, x->unit);
        fm_str_printf(out, "| %s | %.3f | %.1f |", x->name, x->seconds * 1e3, x->work / x->seconds);
        if (x->bound > 0)
            fm_str_printf(out, " %.1f | %.0f %% |\n", x->work / x->bound, fm_result_percent(x));
        else fm_str_puts(out, " – | – |\n");
    }
    if (r->n_fact) fm_str_puts(out, "\n| whole runs | |\n|---|---:|\n");
    for (int i = 0; i < r->n_fact; i++)
        fm_str_printf(out, "| %s | %.4g %s |\n", r->fact[i].name, r->fact[i].value,
                      r->fact[i].unit);
}

static json_t *result_json(const fm_result *x)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:s, s:f}", "group", x->group, "name", x->name,
                     "seconds", x->seconds, "bound_seconds", x->bound, "rate",
                     x->work / x->seconds, "unit", x->unit, "percent", fm_result_percent(x));
}

fm_status fm_report_json(const fm_report *r, const char *path)
{
    char    cpu[128], date[16];
    json_t *results = json_array(), *facts = json_object();
    cpu_name(cpu, sizeof cpu);
    fm_today(date);
    for (int i = 0; i < r->n; i++) json_array_append_new(results, result_json(&r->result[i]));
    for (int i = 0; i < r->n_fact; i++)
        json_object_set_new(facts, r->fact[i].name, json_real(r->fact[i].value));
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:f, s:f, s:o, s:o}", "cpu", cpu, "date", date,
                  "commit", r->commit, "model", r->model, "isa", fm_isa_name(r->limits.isa),
                  "threads", r->limits.n_thread, "read_bytes_per_second", r->limits.read,
                  "peak_flop_per_second", r->limits.peak, "results", results, "facts", facts);
    return fm_write_json(path, all);
}
