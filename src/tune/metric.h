/* SPDX-License-Identifier: Apache-2.0 */
/* A number in the output of a program:
 *
 *     Total token throughput.*: *([0-9.]+)     a regular expression (PCRE2): the first group,
 *                                              or all of it; of several matches the last
 *     json:results[0].total_throughput         a member of the last line that is a JSON object
 *
 * A limit is such a number with a bound: "P99 TTFT \(ms\): *([0-9.]+) <= 200". */
#ifndef FM_TUNE_METRIC_H
#define FM_TUNE_METRIC_H

#include <stddef.h>

#include "base/status.h"

typedef struct fm_metric fm_metric;

fm_status fm_metric_create(fm_metric **out, const char *text); /* FM_E_ARG */
void      fm_metric_destroy(fm_metric *m);                     /* NULL is fine */

/* The last one in text[0..len); 0: there is none. */
int fm_metric_last(const fm_metric *m, const char *text, size_t len, double *out);

/* The first one in whole lines from *at on; *at moves behind it.  0: none yet. */
int fm_metric_next(const fm_metric *m, const char *text, size_t len, size_t *at, double *out);

typedef struct {
    fm_metric *metric; /* owned */
    int        at_most;
    double     bound;
} fm_limit;

fm_status fm_limit_init(fm_limit *l, const char *text); /* METRIC <= BOUND or METRIC >= BOUND */
void      fm_limit_fini(fm_limit *l);
/* How far beyond, as a share of the bound; 0: within.  INFINITY: no such number. */
double fm_limit_excess(const fm_limit *l, const char *text, size_t len);

#endif
