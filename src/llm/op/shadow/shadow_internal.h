/* SPDX-License-Identifier: Apache-2.0 */
/* A shadow run: ops.c issues each op on both sides, the run's own hook (compare.c) then compares
 * what they wrote and gives the GPU the CPU's. */
#ifndef FM_LLM_OP_SHADOW_SHADOW_INTERNAL_H
#define FM_LLM_OP_SHADOW_SHADOW_INTERNAL_H

#include "llm/op/cpu/cpu_internal.h"
#include "llm/op/cuda/cuda_internal.h"
#include "llm/op/shadow/shadow.h"

/* How far values may differ: by a part of the value itself, which is what rounding to bf16 costs,
 * and by a part of the largest value of its row, which is what another order of sums and other
 * roundings within the op cost. */
typedef struct {
    int    is_compared;
    double of_value, of_row;
} fm_shadow_bound;

/* A weight or a buffer of the CPU's and the same of the GPU's. */
typedef struct {
    const void *cpu;
    void       *gpu;
    const char *name;
    int         width, stride; /* buffers: elements of a row, and from row to row on the CPU */
    int         is_bf16;
} fm_shadow_twin;

typedef struct {
    int64_t n_value;
    int64_t n_swap; /* experts and tokens chosen otherwise, where that may be */
    double  most;   /* largest difference, in parts of the row's largest value */
} fm_shadow_count;

typedef struct {
    fm_run         *cpu, *gpu;
    fm_op_hook      hook;
    fm_shadow_twin *twin; /* [n_twin] */
    int             n_twin;
    fm_shadow_count count[FM_N_OP];
    char           *room; /* what came from the GPU */
    fm_sampler     *sampler;
    fm_draw        *draw;    /* [max_out] */
    fm_sampled     *sampled; /* [max_out] */

    /* The pass in flight, its rows in the order the GPU takes them. */
    fm_batch batch;
    int32_t *row_from; /* [max_rows] the caller's row */
    int      n_gen;    /* generated rows, which come first */
} fm_shadow;

/* shadow.c */
void      fm__shadow_begin(fm_run *r);
void      fm__shadow_end(fm_run *r);
fm_status fm__shadow_logits(fm_run *r, const fm_batch *b, const float **all);
fm_status fm__shadow_drafted(fm_run *r, const fm_batch *b, int n_link, int32_t *id);
void      fm__shadow_destroy(fm_run *r);
int       fm__shadow_is_well(fm_run *r); /* takes over the faults of both runs */

/* ops.c */
extern const fm_ops fm__shadow_ops;

/* twins.c */
fm_status fm__shadow_list_twins(fm_shadow *s);
const fm_shadow_twin *fm__shadow_twin(const fm_shadow *s, const void *cpu); /* a bug if unknown */

/* compare.c: the hook; a difference beyond the bound is the run's fault */
extern const fm_shadow_bound fm__shadow_bound[FM_N_OP];
void fm__shadow_end_op(fm_op_hook *h, fm_run *r, const fm_op_call *c);
void fm__shadow_report(const fm_run *r, fm_str *out);

/* bytes from the GPU, waiting for them, and to it */
void fm__shadow_bring(fm_run *r, void *to, const void *gpu, size_t bytes);
void fm__shadow_send(fm_run *r, void *gpu, const void *from, size_t bytes);

/* sample.c: takes the GPU's logits of the pass, which are the CPU's. */
fm_status fm__shadow_choose(fm_run *r, const fm_batch *b, const float *logits);

/* route.c */
void fm__shadow_compare_routes(fm_run *r, const fm_op_call *c);

static inline fm_shadow *fm__shadow(const fm_run *r)
{
    return r->backend;
}

#endif
