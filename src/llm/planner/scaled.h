/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of costs for devices that were not measured, from the table of one that was: its shares of
 * the limits are kept, the limits are the other device's.  What comes out is an estimate, and its
 * spread says so. */
#ifndef FM_LLM_PLANNER_SCALED_H
#define FM_LLM_PLANNER_SCALED_H

#include "llm/planner/tuned.h"

/* What a CPU host reaches, measured without an engine. */
typedef struct {
    int    n_thread;                  /* 0: not known */
    double memory;                    /* bytes */
    double read, peak_f32, peak_bf16; /* of all threads: bytes/s, FLOP/s */
    double read_one;                  /* of one thread while the others rest; 0: not known */
} fm_cpu_limits;

/* "NVIDIA H100 80GB HBM3" -> "H100"; NULL: no kind that is known. */
const char *fm_gpu_kind(const char *name);

/* The table from which one of a GPU of this kind can be made ("H200"); NULL: none. */
const char *fm_scaled_from(const char *kind);

/* *t is that table and becomes one of `kind`: by its published memory, bandwidth and peaks. */
void fm_scale_gpu(fm_tuned *t, const char *kind);

/* *t is the table of a CPU and becomes one of a host with these limits. */
void fm_scale_cpu(fm_tuned *t, const fm_cpu_limits *l);

#endif
