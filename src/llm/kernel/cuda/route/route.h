/* SPDX-License-Identifier: Apache-2.0 */
/* Which experts a row goes to, and the (row, slot) pairs sorted by expert,
 * without the host: it knows bounds only.
 *
 *     score ──route──> expert, weight ──pairs──> offset, pair_row, pair_of, blocks
 *
 * src/llm/op/cpu/route.c is the definition of the first, group_pairs() of
 * src/llm/op/cpu/experts.c of the second.  The scores are the CPU's bits but for
 * the softmax's sum, which is taken in the order of a warp.  Ties go to the
 * lowest group, then the lowest expert.  All pointers are borrowed device memory. */
#ifndef FM_LLM_KERNEL_CUDA_ROUTE_ROUTE_H
#define FM_LLM_KERNEL_CUDA_ROUTE_ROUTE_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"
#include "llm/weights/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FM_CUDA_MAX_EXPERTS = 512,
    FM_CUDA_MAX_GROUPS  = 32,
    FM_CUDA_ROUTE_FEW   = 8,   /* rows that one thread block routes and sorts, */
    FM_CUDA_FEW_EXPERTS = 256, /* to one of at most so many experts */
};

typedef struct {
    int32_t       *expert; /* [n_row, top_k]; -1 for rows that are not there */
    float         *weight; /* [n_row, top_k] */
    const float   *score;  /* [n_row, n_expert] router logits */
    const float   *bias;   /* [n_expert] or NULL */
    const int32_t *n_live; /* [1] on the device: later rows pad a graph; NULL: all are there */
    int            n_row, n_expert, top_k; /* top_k <= FM_MAX_TOP_K */
    int            n_group, top_group;
    int            norm_top_k;
    float          routed_scale;
    fm_route_method method;
    fm_score_func   func;
} fm_cuda_route_args;
fm_status fm_cuda_route(const fm_cuda_route_args *a, fm_stream stream);

/* Pairs keep the order of rows within an expert.  A pair without expert (-1) is
 * left out and has pair_of -1. */
typedef struct {
    const int32_t *expert;   /* [n_row, top_k] */
    int32_t       *count;    /* [n_expert] */
    int32_t       *offset;   /* [n_expert+1] first pair of each expert */
    int32_t       *pair_row; /* [n_row*top_k] row of each pair */
    int32_t       *pair_of;  /* [n_row*top_k] pair of each (row, slot) */
    int32_t       *block;    /* [n_row*top_k/block_rows + n_expert][3] expert, first pair, pairs */
    int32_t       *n_block;  /* [1] */
    int32_t       *scratch;  /* [n_row*top_k/1024 up][n_expert], or NULL: slower for many rows */
    int            n_row, top_k, n_expert, block_rows;
    int            box; /* pairs that are multiplied together, a divisor of block_rows: an expert's
                         * blocks then differ by one box at most, and the largest blocks come
                         * first.  0: blocks are full, but each expert's last; by expert */
} fm_cuda_pairs_args;
fm_status fm_cuda_pairs(const fm_cuda_pairs_args *a, fm_stream stream);

/* Both in one launch, for few rows and experts: the same results. */
fm_status fm_cuda_route_and_sort(const fm_cuda_route_args *a, const fm_cuda_pairs_args *pairs,
                                 fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
