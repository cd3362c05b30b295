/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured on a GPU: results as they come, a table for people, and
 * one JSON file.
 *
 * A section measures in a process of its own and sends its results through a
 * pipe, so that an error which ends it leaves the others whole. */
#ifndef FM_BENCH_CUDA_REPORT_H
#define FM_BENCH_CUDA_REPORT_H

#include "base/status.h"
#include "bench/roof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A time with what it was spent on, or, where `unit` is there, just a number. */
typedef struct {
    char   section[16], name[32], shape[40];
    int    T;           /* rows, sequences or tokens; 0: none */
    double us;          /* of one go, the median */
    double bytes, flop; /* one go must move and compute; 0: not counted */
    double bound_us;    /* the least it can take; 0: no such thing */
    double tokens;      /* one go yields; 0: none */
    double value;
    char   unit[12];
} fm_gpu_result;

typedef struct {
    const char     *commit;
    char            gpu[64];
    fm_roof ceilings;
    fm_gpu_result  *result;
    int             n, cap;
    char            fault[512]; /* sections that did not end well, and why */
} fm_gpu_report;

/* Also prints its line, and takes over a ceiling. */
void fm_gpu_report_add(fm_gpu_report *r, const fm_gpu_result *x);
void fm_gpu_report_fault(fm_gpu_report *r, const char *section, const char *why);
void fm_gpu_report_fini(fm_gpu_report *r);

double    fm_gpu_percent(const fm_gpu_result *x); /* of the bound; 0 where there is none */
fm_status fm_gpu_report_json(const fm_gpu_report *r, const char *path);
fm_status fm_gpu_report_markdown(const fm_gpu_report *r, const char *path); /* for docs/ */

/* Results that are ceilings have these names, in section "ceilings". */
#define FM_GPU_COPY "device copy"
#define FM_GPU_READ "read"
#define FM_GPU_BF16 "cuBLASLt bf16"
#define FM_GPU_FP8 "cuBLASLt e4m3"

#ifdef __cplusplus
}
#endif

#endif
