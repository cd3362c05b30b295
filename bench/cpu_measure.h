/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of measurements of bench_cpu, in the order they run. */
#ifndef FM_BENCH_CPU_MEASURE_H
#define FM_BENCH_CPU_MEASURE_H

#include "bench/cpu_report.h"
#include "bench/cpu_stand.h"

/* Types of linear weights that are measured beside each other. */
typedef enum { FM_WEIGHTS_BF16, FM_WEIGHTS_FP8, FM_WEIGHTS_W8A8, FM_WEIGHTS_INT4, FM_N_WEIGHTS } fm_weights_type;

typedef struct {
    const char *name;      /* "fp8" */
    const char *overrides; /* of the config */
    const char *prefill, *decode, *experts; /* headings */
} fm_weights_kind;
extern const fm_weights_kind fm_weights_kinds[FM_N_WEIGHTS];

typedef struct {
    fm_report  *report;
    fm_roof     roof; /* of this machine */
    const char *model;
    const char *only; /* NULL: every group */
    int         quick;
    int         n_pass; /* of a forward pass whose parts are timed; the fastest counts */
    int         wanted[FM_N_WEIGHTS]; /* types of weights */
} fm_measuring;

static inline int fm_wanted(const fm_measuring *m, const char *group)
{
    return !m->only || strstr(m->only, group) != NULL;
}

/* Seconds of the fastest go within the time that is given to one number. */
typedef void fm_go_fn(void *ctx);
double fm_fastest(const fm_measuring *m, fm_go_fn *go, void *ctx);

fm_status fm_measure_gemm(const fm_measuring *m, fm_stand *s);
void      fm_measure_experts(const fm_measuring *m, fm_stand *s, const char *heading);
void      fm_measure_attention(const fm_measuring *m, fm_stand *s);
void      fm_measure_parts(const fm_measuring *m, fm_stand *s); /* of a whole forward pass */

/* An engine for each type of weights, one after the other: prefill, decode; of the first also
 * context and offline. */
fm_status fm_measure_model(const fm_measuring *m);

#endif
