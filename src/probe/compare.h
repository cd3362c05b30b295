/* SPDX-License-Identifier: Apache-2.0 */
/* Finds samples slower than the others of their kind: pure functions over measured rates.
 *
 * A sample is compared with the median of the others of its kind, and deviates
 * when all of these hold, with t the larger of the metric's `least` and five times
 * the noise of the others (of a rate at most 80 %, whatever the noise):
 *
 *     its median is worse than theirs by more than t
 *     its best repeat is worse than theirs by more than t / 2, or its median by more than 2 t and
 *       by more than three times its own scatter
 *     the difference is more than the metric's `least_off`
 *
 * Noise is what the others' repeats scatter, or what their medians scatter
 * among each other, whichever is more; where there are fewer than three
 * others, its own scatter counts as well.  The second condition tells a slow
 * machine from a disturbed one: one that was as fast as the others once is only
 * unsteady, unless nearly all repeats are far below.  An even split does not tell which half
 * is slow: fewer than half of a kind can deviate; of two, the slower one. */
#ifndef FM_PROBE_COMPARE_H
#define FM_PROBE_COMPARE_H

#include "probe/rates.h"

typedef struct {
    const char *name;      /* "memory bandwidth" */
    const char *unit;      /* "GB/s" */
    double      scale;     /* from bytes, FLOP or seconds to the unit */
    int         is_time;   /* less is better */
    double      least;     /* a share of the others' median */
    double      least_off; /* and what is less than this off, in bytes, FLOP or seconds, is none */
} fm_metric;

typedef struct {
    const char *kind; /* equal text: the same kind; NULL: of none */
    fm_rate     rate; /* n 0: not measured, of no kind */
} fm_sample;

typedef struct {
    double off;         /* share by which it is worse; 0: it is as the others */
    int    is_unsteady; /* worse as a rule, but not at its best; off is 0 */
    double others;      /* their median; 0: there are none */
    int    n_other;
} fm_deviation;

void fm_compare(const fm_metric *m, const fm_sample *sample, int n, fm_deviation *out);

/* "31 % below", "8.4 times": off of a rate, off of a time. */
void fm_deviation_words(const fm_metric *m, double off, char *out, size_t size);

#endif
