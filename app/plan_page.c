/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as one HTML page: throughput against time per token, and every layout. */
#include <math.h>
#include <stdio.h>

#include "plan.h"
#include "tune/page.h"
#include "tune/plot.h"

/* No other layout has both a higher throughput and a shorter time per token. */
static int is_on_front(const fm_plan_command *c, int i)
{
    const fm_forecast *f = &c->list[i];
    for (int k = 0; k < c->n; k++) {
        const fm_forecast *o = &c->list[k];
        if (o->rc == FM_OK && o->throughput > f->throughput && o->sim.mean_tpot < f->sim.mean_tpot)
            return 0;
    }
    return 1;
}

static void add_plot(fm_str *out, const fm_plan_command *c)
{
    fm_plot p = {
        .title  = "tok/s (up) against mean ms per further token (right); ringed: nothing is better "
                  "in both",
        .width  = 900,
        .height = 420,
        .x_lo   = INFINITY};
    fm_str label = {0};
    for (int i = 0; i < c->n; i++) {
        const fm_forecast *f = &c->list[i];
        if (f->rc != FM_OK) continue;
        p.x_lo = fmin(p.x_lo, 1e3 * f->sim.mean_tpot);
        p.x_hi = fmax(p.x_hi, 1e3 * f->sim.mean_tpot);
        p.y_hi = fmax(p.y_hi, f->throughput);
    }
    if (p.x_hi <= p.x_lo) p.x_hi = p.x_lo + 1;
    fm_plot_begin(out, &p);
    for (int i = 0; i < c->n; i++) {
        const fm_forecast *f = &c->list[i];
        if (f->rc != FM_OK) continue;
        fm_str_clear(&label);
        fm_forecast_name(&label, &f->size);
        fm_str_printf(&label, ": %.1f tok/s, %.2f ms", f->throughput, 1e3 * f->sim.mean_tpot);
        fm_plot_dot(out, &p, 1e3 * f->sim.mean_tpot, f->throughput, 4, f->meets ? "dot" : "dot bad",
                    label.text);
        if (is_on_front(c, i))
            fm_plot_dot(out, &p, 1e3 * f->sim.mean_tpot, f->throughput, 7, "win", label.text);
    }
    fm_plot_end(out);
    fm_str_fini(&label);
}

static void add_cell(fm_str *out, const char *class, const char *text)
{
    fm_str_printf(out, "<td class=\"%s\">", class);
    fm_page_text(out, text);
    fm_str_puts(out, "</td>");
}

static void add_row(fm_str *out, const fm_forecast *f)
{
    fm_str name = {0}, bound = {0};
    char   text[128];
    fm_forecast_name(&name, &f->size);
    fm_str_puts(out, "<tr>");
    add_cell(out, "", name.text);
    if (f->rc != FM_OK) {
        fm_str_puts(out, "<td colspan=\"9\" class=\"why failed\">");
        fm_page_text(out, f->why);
        fm_str_puts(out, "</td></tr>\n");
        fm_str_fini(&name);
        return;
    }
    fm_plan_bound_words(&bound, f);
    const double x[] = {f->n_rank,
                        f->throughput,
                        1e3 * f->sim.mean_ttft,
                        1e3 * f->sim.p99_ttft,
                        1e3 * f->sim.mean_tpot,
                        1e3 * f->sim.p99_tpot,
                        f->memory_left / 0x1p30};
    for (int i = 0; i < 7; i++) {
        snprintf(text, sizeof text, i ? "%.1f" : "%.0f", x[i]);
        if (i == 1) snprintf(text, sizeof text, "%.1f ± %.0f", x[i], f->throughput * f->error);
        add_cell(out, "n", text);
    }
    add_cell(out, f->meets ? "" : "unfit", f->meets ? "yes" : "no");
    add_cell(out, "", bound.text);
    fm_str_puts(out, "</tr>\n");
    fm_str_fini(&name);
    fm_str_fini(&bound);
}

static void add_tiles(fm_str *out, const fm_plan_command *c)
{
    const fm_forecast *f    = &c->list[0];
    fm_str             name = {0};
    char               text[64];
    fm_forecast_name(&name, &f->size);
    fm_str_puts(out, "<div class=\"tiles\">\n");
    fm_page_tile(out, name.text, "recommended");
    snprintf(text, sizeof text, "%.0f ± %.0f", f->throughput, f->throughput * f->error);
    fm_page_tile(out, text, "tok/s, in and out");
    snprintf(text, sizeof text, "%.0f ms", 1e3 * f->sim.mean_ttft);
    fm_page_tile(out, text, "mean time to the first token");
    snprintf(text, sizeof text, "%.1f ms", 1e3 * f->sim.mean_tpot);
    fm_page_tile(out, text, "mean time per further token");
    if (c->more.n_rank) {
        snprintf(text, sizeof text, "x %.2f", c->more.throughput / f->throughput);
        fm_page_tile(out, text, "with one more node");
    }
    fm_str_puts(out, "</div>\n");
    fm_str_fini(&name);
}

void fm_plan_page(fm_str *out, const fm_plan_command *c)
{
    fm_str words = {0};
    fm_page_begin(out, "fathom plan");
    add_tiles(out, c);
    fm_plan_words(&words, c, fm_plan_choice(c) ? fm_plan_choice(c) : &c->list[0]);
    fm_str_puts(out, "<h2>The command</h2><pre>");
    fm_page_text(out, words.text);
    fm_str_puts(out, "</pre>\n<h2>Throughput and latency</h2>\n");
    add_plot(out, c);
    fm_str_puts(out, "<h2>Layouts</h2>\n<div class=\"scroll\"><table><thead><tr><th>layout</th>"
                     "<th>ranks</th><th>tok/s</th><th>TTFT ms</th><th>P99</th><th>TPOT "
                     "ms</th><th>P99</th><th>GiB "
                     "left</th>"
                     "<th>in time</th><th>where the time goes</th></tr></thead>\n<tbody>");
    for (int i = 0; i < c->n; i++) add_row(out, &c->list[i]);
    fm_str_puts(out, "</tbody></table></div>\n");
    fm_page_end(out);
    fm_str_fini(&words);
}
