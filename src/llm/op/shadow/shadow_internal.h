/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the shadow run share. */
#ifndef FM_LLM_OP_SHADOW_SHADOW_INTERNAL_H
#define FM_LLM_OP_SHADOW_SHADOW_INTERNAL_H

#include "llm/op/cpu/cpu_internal.h"
#include "llm/op/cuda/cuda_internal.h"
#include "llm/op/shadow/shadow.h"

/* Op, and how far its values may be apart: a part of the value itself, which is
 * what rounding to bf16 costs, and a part of the largest value of its row, which
 * is what another order of sums and other roundings within the op cost. */
#define FM_SHADOW_MAP(X)                                                                           \
    X(EMBED, "embed", 0, 0)                                                                        \
    X(RMSNORM, "rmsnorm", 0x1p-7, 0x1p-16)                                                         \
    X(GATHER_ADD, "gather_add", 0, 0x1p-22)                                                        \
    X(LINEAR, "linear", 0, 0x1p-11)                                                                \
    X(LINEAR_ACT, "linear_act", 0x1p-7, 0x1p-11)                                                   \
    X(ROPE_Q, "rope_q", 0x1p-7, 0x1p-9)                                                            \
    X(STORE_KV, "store_kv", 0x1p-7, 0x1p-9)                                                        \
    X(ATTEND, "attend", 0x1p-7, 0x1p-6)                                                            \
    X(ROUTE, "route", 0x1p-10, 0)                                                                  \
    X(MLP, "mlp", 0, 0x1p-8)                                                                       \
    X(EXPERTS, "experts", 0, 0x1p-8)                                                               \
    X(GATHER_NORM, "gather_norm", 0x1p-7, 0x1p-16)                                                 \
    X(SAMPLE, "sample", 0, 0)

typedef enum {
#define X(name, text, of_value, of_row) FM_SHADOW_##name,
    FM_SHADOW_MAP(X)
#undef X
    FM_N_SHADOW_OP
} fm_shadow_op;

typedef struct {
    const char *name;
    double      of_value, of_row;
} fm_shadow_bound;

/* Something of the CPU's and the same of the GPU's: a weight or a buffer. */
typedef struct {
    const void *cpu;
    void       *gpu;
    const char *name;
    int         layer; /* -1: of none */
} fm_shadow_twin;

typedef struct {
    int64_t n_value;
    int64_t n_swap; /* experts and tokens chosen otherwise, where that may be */
    double  most;   /* largest difference, in parts of the row's largest value */
} fm_shadow_count;

typedef struct {
    fm_run         *cpu, *gpu;
    fm_shadow_twin *twin; /* [n_twin] */
    int             n_twin;
    fm_shadow_count count[FM_N_SHADOW_OP];
    char           *room; /* what came from the GPU */
    fm_sampler     *sampler;
    fm_draw        *draw;    /* [max_out] */
    fm_sampled     *sampled; /* [max_out] */

    /* The pass in flight, its rows in the order the GPU takes them. */
    fm_batch batch;
    int32_t *row_from; /* [max_rows] the caller's row */
    int      n_gen;    /* generated rows, which come first */
    int      layer;
} fm_shadow;

/* Rows to compare. */
typedef struct {
    fm_shadow_op op;
    const char  *weight, *tensor; /* NULL: without a weight */
    void        *cpu, *gpu;
    int          is_bf16, row0, n_row, width;
    int          apart; /* elements from row to row on the CPU */
    const int32_t *row_from; /* NULL: rows are out rows, counted as they come */
} fm_shadow_rows;

/* shadow.c */
void      fm__shadow_begin(fm_run *r);
void      fm__shadow_end(fm_run *r);
fm_status fm__shadow_logits(fm_run *r, const fm_batch *b, const float **all);
void      fm__shadow_destroy(fm_run *r);

/* ops.c: the table; and whether both sides are without fault. */
extern const fm_ops fm__shadow_ops;
int                 fm__shadow_is_well(fm_run *r);

/* twins.c */
fm_status fm__shadow_list_twins(fm_shadow *s);
const fm_shadow_twin *fm__shadow_twin(const fm_shadow *s, const void *cpu); /* a bug if unknown */

/* compare.c: compares, then gives the GPU the CPU's; marks the run. */
extern const fm_shadow_bound fm__shadow_bound[FM_N_SHADOW_OP];
void   fm__shadow_compare(fm_run *r, const fm_shadow_rows *rows);
void   fm__shadow_bring(fm_run *r, void *to, const void *gpu, size_t bytes);
void   fm__shadow_send(fm_run *r, void *gpu, const void *from, size_t bytes);
void   fm__shadow_report(const fm_run *r, fm_str *out);

/* sample.c: takes the GPU's logits of the pass, which are the CPU's. */
fm_status fm__shadow_choose(fm_run *r, const fm_batch *b, const float *logits);

/* route.c */
void fm__shadow_compare_routes(fm_run *r, fm_routing cpu, fm_routing gpu, fm_f32s probability,
                               const float *bias);

static inline fm_shadow *fm__shadow(const fm_run *r)
{
    return r->backend;
}

#endif
