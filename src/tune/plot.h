/* SPDX-License-Identifier: Apache-2.0 */
/* Dots and lines over two axes, as SVG inside a page. */
#ifndef FM_TUNE_PLOT_H
#define FM_TUNE_PLOT_H

#include "base/str.h"

typedef struct {
    const char        *title;
    int                width, height;
    double             x_lo, x_hi, y_lo, y_hi;
    int                x_log;
    const char *const *name; /* [n_name] of the x values 0, 1, ...; NULL: numbers */
    int                n_name;
} fm_plot;

void fm_plot_begin(fm_str *out, const fm_plot *p); /* frame, ticks, title */
void fm_plot_dot(fm_str *out, const fm_plot *p, double x, double y, double radius, const char *kind,
                 const char *label);
/* A line that goes right, then up or down: "best so far". */
void fm_plot_steps(fm_str *out, const fm_plot *p, const double *x, const double *y, int n);
void fm_plot_end(fm_str *out);

#endif
