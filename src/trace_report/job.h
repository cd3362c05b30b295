/* SPDX-License-Identifier: Apache-2.0 */
/* The traces of a job's ranks, read together: one time axis, keys of the same name joined. */
#ifndef FM_TRACE_REPORT_JOB_H
#define FM_TRACE_REPORT_JOB_H

#include "trace/trace_read.h"

/* What several ranks call by the same class, name, part and factor. */
typedef struct {
    fm_trace_key key;
    int         *of_rank; /* [n] owned: its number in each rank's file; -1: it has none */
} fm_trace_row;

typedef struct {
    int            n;      /* ranks that are there */
    fm_trace_file *file;   /* [n] owned, by rank */
    int            n_rank; /* that the job had */
    int            n_row;
    fm_trace_row  *row;           /* [n_row] owned */
    int (*row_of)[FM_TRACE_KEYS]; /* [n] owned: the row of each key of a rank's file */
} fm_trace_job;

/* FILE means FILE.rank0, FILE.rank1, ... where only these exist.  FM_E_FORMAT: files of different
 * jobs, or two of the same rank. */
fm_status fm_trace_job_open(fm_trace_job *out, const char *const *path, int n_path);
void      fm_trace_job_close(fm_trace_job *j); /* {0} is fine */

/* Nanoseconds of rank 0's clock since rank 0's trace began; `i` counts the ranks that are there. */
int64_t fm_trace_time(const fm_trace_job *j, int i, uint64_t ns);

/* A key's sums on a rank; NULL: it has none. */
const fm_trace_sum *fm_trace_sum_of(const fm_trace_job *j, int row, int i);

#endif
