/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/plot.h"

#include <math.h>

#include "tune/page.h"

enum { LEFT = 58, RIGHT = 12, TOP = 26, BOTTOM = 24, N_TICK = 4 };

static double share(double lo, double hi, double x, int is_log)
{
    if (is_log) {
        lo = log(lo);
        hi = log(hi);
        x  = log(x);
    }
    return hi > lo ? (x - lo) / (hi - lo) : 0.5;
}

static double x_at(const fm_plot *p, double x)
{
    const double inset = p->name ? 0.5 / p->n_name : 0.03;
    return LEFT + (p->width - LEFT - RIGHT) *
                      (inset + (1 - 2 * inset) * share(p->x_lo, p->x_hi, x, p->x_log));
}

static double y_at(const fm_plot *p, double y)
{
    return p->height - BOTTOM -
           (p->height - TOP - BOTTOM) * (0.04 + 0.92 * share(p->y_lo, p->y_hi, y, 0));
}

static void x_tick(fm_str *out, const fm_plot *p, double x, const char *text)
{
    fm_str_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x_at(p, x),
                  p->height - 8);
    fm_page_text(out, text);
    fm_str_puts(out, "</text>");
}

static void x_ticks(fm_str *out, const fm_plot *p)
{
    fm_str text = {0};
    for (int i = 0; i < p->n_name; i++) x_tick(out, p, i, p->name[i]);
    for (int i = 0; !p->name && i <= N_TICK; i++) {
        const double u = (double)i / N_TICK;
        const double x =
            p->x_log ? p->x_lo * pow(p->x_hi / p->x_lo, u) : p->x_lo + u * (p->x_hi - p->x_lo);
        fm_str_clear(&text);
        fm_str_printf(&text, fabs(x) >= 100 ? "%.0f" : "%.3g", x);
        x_tick(out, p, x, text.text);
    }
    fm_str_fini(&text);
}

static void y_ticks(fm_str *out, const fm_plot *p)
{
    for (int i = 0; i <= N_TICK; i++) {
        const double y = p->y_lo + (p->y_hi - p->y_lo) * i / N_TICK;
        fm_str_printf(out, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y_at(p, y),
                      p->width - RIGHT);
        fm_str_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>", LEFT - 6,
                      y_at(p, y) + 4, y);
    }
}

void fm_plot_begin(fm_str *out, const fm_plot *p)
{
    fm_str_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", p->width,
                  p->height);
    fm_page_text(out, p->title);
    fm_str_printf(out, "\"><text class=\"title\" x=\"%d\" y=\"14\">", LEFT);
    fm_page_text(out, p->title);
    fm_str_puts(out, "</text>");
    y_ticks(out, p);
    x_ticks(out, p);
}

void fm_plot_dot(fm_str *out, const fm_plot *p, double x, double y, double radius, const char *kind,
                 const char *label)
{
    fm_str_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>", kind,
                  x_at(p, x), y_at(p, y), radius);
    fm_page_text(out, label);
    fm_str_puts(out, "</title></circle>");
}

void fm_plot_steps(fm_str *out, const fm_plot *p, const double *x, const double *y, int n)
{
    if (!n) return;
    fm_str_printf(out, "<path class=\"best\" d=\"M%.1f %.1f", x_at(p, x[0]), y_at(p, y[0]));
    for (int i = 1; i < n; i++) fm_str_printf(out, "H%.1fV%.1f", x_at(p, x[i]), y_at(p, y[i]));
    fm_str_puts(out, "\"/>");
}

void fm_plot_end(fm_str *out) { fm_str_puts(out, "</svg>\n"); }
