/* SPDX-License-Identifier: Apache-2.0 */
/* A report as a picture: a bar for every result's share of its bound, and the
 * cost of a decoded token over the length of the text. */
#ifndef FM_BENCH_PLOT_H
#define FM_BENCH_PLOT_H

#include "bench/cpu_report.h"

void fm_plot_report(const fm_report *r, fm_str *svg);

#endif
