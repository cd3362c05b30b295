/* SPDX-License-Identifier: Apache-2.0 */
/* Welch's test: did the mean change, given two samples of different size and spread? */
#ifndef FM_TRACE_REPORT_WELCH_H
#define FM_TRACE_REPORT_WELCH_H

typedef struct {
    double n, mean, variance; /* variance of a single value */
} fm_moments;

/* The probability of a difference at least this large if both had one mean (two-sided).  1 where a
 * sample has fewer than two values; 0 where neither varies and they differ. */
double fm_welch_p(fm_moments a, fm_moments b);

#endif
