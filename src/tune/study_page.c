/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "tune/page.h"
#include "tune/plot.h"

static void add_point_text(fm_str *out, const fm_study *s, const fm_point *p)
{
    int n = 0;
    for (int i = 0; i < s->space->n; i++) {
        if (isnan(p->v[i])) continue;
        fm_str_printf(out, "%s%s ", n++ ? ", " : "", s->space->param[i].name);
        fm_point_text(s->space, p, i, out);
    }
}

static void label_of(fm_str *out, const fm_study *s, const fm_trial *t)
{
    fm_str_clear(out);
    fm_str_printf(out, "trial %d: %.6g (", t->id, t->value);
    add_point_text(out, s, &t->at);
    fm_str_puts(out, ")");
}

static int has_value(const fm_trial *t)
{
    return (t->state == FM_TRIAL_OK || t->state == FM_TRIAL_UNFIT) && isfinite(t->value);
}

static void value_range(const fm_study *s, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int i = 0; i < s->n; i++) {
        if (!has_value(&s->trial[i])) continue;
        *lo = fmin(*lo, s->trial[i].value);
        *hi = fmax(*hi, s->trial[i].value);
    }
    if (*lo > *hi) *lo = *hi = 0;
}

/* ---- sections ---- */

static void add_tiles(fm_str *out, const fm_study *s, const fm_study_facts *f)
{
    fm_str    text = {0};
    const int id   = fm_study_winner(s);
    int       n_run, count[FM_N_TRIAL_STATE] = {0};
    double    spread;
    for (int i = 0; i < s->n; i++) count[s->trial[i].state]++;
    fm_str_puts(out, "<div class=\"tiles\">\n");
    if (id >= 0) {
        fm_str_printf(&text, "%.6g", fm_study_mean(s, id, &n_run, &spread));
        fm_page_tile(out, text.text,
                     s->maximize ? "best, larger is better" : "best, smaller is better");
        fm_str_clear(&text);
        fm_str_printf(&text, "%d, spread %.2g %%", n_run,
                      100 * spread / fmax(fabs(fm_study_mean(s, id, NULL, NULL)), 1e-300));
        fm_page_tile(out, text.text, "runs of it");
        fm_str_clear(&text);
    }
    fm_str_printf(&text, "%d", fm_study_n_ended(s));
    fm_page_tile(out, text.text, "points tried");
    fm_str_clear(&text);
    fm_str_printf(&text, "%d + %d + %d", count[FM_TRIAL_FAILED] + count[FM_TRIAL_TIMEOUT],
                  count[FM_TRIAL_UNFIT], count[FM_TRIAL_PRUNED]);
    fm_page_tile(out, text.text, "failed + unfit + pruned");
    fm_page_tile(out, f->ended_by, "why it ended");
    fm_str_puts(out, "</div>\n");
    fm_str_fini(&text);
}

static void add_pre(fm_str *out, const char *title, const char *text)
{
    fm_str_puts(out, "<h2>");
    fm_page_text(out, title);
    fm_str_puts(out, "</h2><pre>");
    fm_page_text(out, text);
    fm_str_puts(out, "</pre>\n");
}

static void add_history(fm_str *out, const fm_study *s)
{
    fm_plot p = {.title  = "value by trial, and the best so far",
                 .width  = 900,
                 .height = 300,
                 .x_lo   = 0,
                 .x_hi   = s->n > 1 ? s->n - 1 : 1};
    value_range(s, &p.y_lo, &p.y_hi);
    double *x = malloc((size_t)(s->n + 1) * sizeof *x), *y = malloc((size_t)(s->n + 1) * sizeof *y);
    FM_BUG_UNLESS(x && y);
    fm_str label = {0};
    int    n     = 0;
    fm_str_puts(out, "<h2>History</h2>\n");
    fm_plot_begin(out, &p);
    for (int i = 0; i < s->n; i++) {
        const fm_trial *t = &s->trial[i];
        label_of(&label, s, t);
        if (has_value(t))
            fm_plot_dot(out, &p, i, t->value, 4, t->state == FM_TRIAL_OK ? "dot" : "dot bad",
                        label.text);
        else
            fm_plot_dot(out, &p, i, s->maximize ? p.y_lo : p.y_hi, 3, "bad", label.text);
        const double best = t->state != FM_TRIAL_OK ? NAN : t->value;
        if (isnan(best) && !n) continue;
        x[n] = i;
        y[n] = !n            ? best
               : isnan(best) ? y[n - 1]
               : s->maximize ? fmax(best, y[n - 1])
                             : fmin(best, y[n - 1]);
        n++;
    }
    fm_plot_steps(out, &p, x, y, n);
    fm_plot_end(out);
    fm_str_fini(&label);
    free(x);
    free(y);
}

static void add_importance(fm_str *out, const fm_study *s, const double *share)
{
    enum { ROW = 24, NAME = 230, WIDTH = 900 };
    fm_str_puts(
        out,
        "<h2>Importance</h2><p>Share of the variation that a parameter explains by itself.</p>\n");
    fm_str_printf(
        out,
        "<svg class=\"importance\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"importance\">",
        WIDTH, ROW * s->space->n + 8);
    for (int i = 0; i < s->space->n; i++) {
        fm_str_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", NAME - 10, ROW * i + 18);
        fm_page_text(out, s->space->param[i].name);
        fm_str_printf(out,
                      "</text><rect class=\"bar\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\"/>",
                      NAME, ROW * i + 6, 1 + share[i] * (WIDTH - NAME - 70));
        fm_str_printf(out, "<text x=\"%.1f\" y=\"%d\">%.0f %%</text>",
                      NAME + 8 + share[i] * (WIDTH - NAME - 70), ROW * i + 18, 100 * share[i]);
    }
    fm_str_puts(out, "</svg>\n");
}

static void add_slice(fm_str *out, const fm_study *s, int i)
{
    const fm_param *a = &s->space->param[i];
    fm_plot         p = {.title  = a->name,
                         .width  = 340,
                         .height = 220,
                         .x_lo   = a->lo,
                         .x_hi   = a->hi,
                         .x_log  = a->is_log};
    if (a->kind == FM_PARAM_CHOICE) {
        p.x_lo   = 0;
        p.x_hi   = a->n_choice - 1;
        p.name   = (const char *const *)a->choice;
        p.n_name = a->n_choice;
    }
    value_range(s, &p.y_lo, &p.y_hi);
    const int winner = fm_study_winner(s);
    fm_str    label  = {0};
    fm_plot_begin(out, &p);
    for (int k = 0; k < s->n; k++) {
        const fm_trial *t = &s->trial[k];
        if (!has_value(t) || isnan(t->at.v[i])) continue;
        label_of(&label, s, t);
        fm_plot_dot(out, &p, t->at.v[i], t->value, 4, t->state == FM_TRIAL_OK ? "dot" : "dot bad",
                    label.text);
        if (t->id == winner) fm_plot_dot(out, &p, t->at.v[i], t->value, 7, "win", label.text);
    }
    fm_plot_end(out);
    fm_str_fini(&label);
}

static void add_row(fm_str *out, const fm_study *s, const fm_trial *t, int winner)
{
    fm_str text = {0};
    fm_str_printf(out, "<tr%s><td class=\"n\">%d%s</td>", t->id == winner ? " class=\"win\"" : "",
                  t->id, t->confirms >= 0 ? " (again)" : "");
    for (int i = 0; i < s->space->n; i++) {
        fm_str_clear(&text);
        fm_point_text(s->space, &t->at, i, &text);
        fm_str_puts(out, "<td class=\"n\">");
        fm_page_text(out, text.len ? text.text : "-");
        fm_str_puts(out, "</td>");
    }
    fm_str_printf(out, "<td class=\"%s\">%s</td><td class=\"n\">", fm_trial_state_name(t->state),
                  fm_trial_state_name(t->state));
    if (isfinite(t->value)) fm_str_printf(out, "%.6g", t->value);
    fm_str_printf(out, "</td><td class=\"n\">%.1f</td><td class=\"why\">", t->seconds);
    fm_page_text(out, t->why);
    fm_str_puts(out, "</td></tr>\n");
    fm_str_fini(&text);
}

static void add_table(fm_str *out, const fm_study *s)
{
    const int winner = fm_study_winner(s);
    fm_str_puts(out, "<h2>Trials</h2>\n<div class=\"scroll\"><table><thead><tr><th>trial</th>");
    for (int i = 0; i < s->space->n; i++) {
        fm_str_puts(out, "<th>");
        fm_page_text(out, s->space->param[i].name);
        fm_str_puts(out, "</th>");
    }
    fm_str_puts(out,
                "<th>state</th><th>value</th><th>seconds</th><th>why</th></tr></thead>\n<tbody>");
    for (int i = 0; i < s->n; i++) add_row(out, s, &s->trial[i], winner);
    fm_str_puts(out, "</tbody></table></div>\n");
}

void fm_study_page(fm_str *out, const fm_study *s, const fm_study_facts *f)
{
    fm_page_begin(out, "fathom tune");
    add_tiles(out, s, f);
    if (f->winner) add_pre(out, "The best command", f->winner);
    if (f->preset) add_pre(out, "As a preset", f->preset);
    add_history(out, s);
    add_importance(out, s, f->share);
    fm_str_puts(out, "<h2>Value by parameter</h2>\n<div class=\"plots\">\n");
    for (int i = 0; i < s->space->n; i++) add_slice(out, s, i);
    fm_str_puts(out, "</div>\n");
    add_pre(out, "What was searched", f->command);
    add_pre(out, "Metric", f->metric);
    add_table(out, s);
    fm_page_end(out);
}
