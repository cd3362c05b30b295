/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured, each with its bound, and three ways to write it down. */
#ifndef FM_BENCH_CPU_REPORT_H
#define FM_BENCH_CPU_REPORT_H

#include "base/str.h"
#include "bench/limits.h"

typedef struct {
    const char *group;   /* a heading: "gemm", "decode", ... */
    char        name[40];
    double      seconds; /* of one go */
    double      bound;   /* the least it can take; 0: there is none */
    double      work;    /* of one go, in what `unit` counts per second */
    const char *unit;    /* "GFLOP/s", "tok/s", ... */
} fm_result;

/* A number that is no rate: its own value and what is asked of it. */
typedef struct {
    char   name[64];
    double value;
    char   unit[16];
} fm_fact;

typedef struct {
    fm_limits   limits;
    const char *commit, *model;
    int         pinned; /* threads bound to cores */
    int         quiet;  /* print nothing while measuring */
    fm_result  *result;
    int         n, cap;
    fm_fact    *fact;
    int         n_fact, cap_fact;
} fm_report;

void fm_report_add(fm_report *r, const fm_result *x);                /* also prints its line */
void fm_report_fact(fm_report *r, const char *name, double value, const char *unit);
void fm_report_fini(fm_report *r);

double fm_result_percent(const fm_result *x); /* of the bound; 0 where there is none */

void fm_report_head(const fm_report *r); /* the limits, as text */
void fm_report_markdown(const fm_report *r, fm_str *out);
fm_status fm_report_json(const fm_report *r, const char *path);

#endif
