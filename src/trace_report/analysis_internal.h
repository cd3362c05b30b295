/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of fm_trace_analyse, a file each, and small helpers of the reports. */
#ifndef FM_TRACE_REPORT_ANALYSIS_INTERNAL_H
#define FM_TRACE_REPORT_ANALYSIS_INTERNAL_H

#include "trace_report/analysis.h"

static inline double fm__seconds(uint64_t ns) { return 1e-9 * (double)ns; }

/* Part of a whole; 0 of nothing. */
static inline double fm__part(double a, double b) { return b > 0 ? a / b : 0; }

const char *fm__class_text(const fm_trace_key *k); /* "op" */

double fm__median(double *x, int n); /* sorts x; 0 of none */

/* limits.c: seconds that a key's calls on rank i take at the machine's limits, and of these where
 * memory is the limit; 0: the rates are unknown. */
double fm__limit_of(const fm_trace_job *j, const fm_rates *r, const fm_trace_key *k,
                    const fm_trace_sum *s, int i, double *memory);

fm_status fm__find_late(fm_trace_analysis *a);   /* late.c: caused, waits, late */
fm_status fm__find_stalls(fm_trace_analysis *a); /* stalls.c */

#endif
