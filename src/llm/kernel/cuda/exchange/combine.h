/* SPDX-License-Identifier: Apache-2.0 */
/* Combine: the experts' outputs are packed for the ranks that own the rows, and summed there.
 *
 *     here  (set q, channel j):  for each group g, for each of its ranks a:
 *                                [items of g's rows, own columns that a wants]
 *     there (group g, rank a):   for each set q, for each of its ranks j:
 *                                [items of own rows, columns j has of those wanted]
 *
 * As pairs, an item is a (row, slot) whose expert the sender has, in the order of
 * row and slot: the receiver adds the slots in their order, whichever rank computed
 * them.  As rows, where one set has all experts, an item is a row with the sum of
 * its slots.  Either way the bits are those of one rank.
 *
 * How many pairs each set has is known on the device only.  Either the host
 * reads it back and blocks are as long as they must be (most_items 0), or every
 * block is as long as it can be: rows * most_items.  All pointers are borrowed
 * device memory; D is a multiple of 4. */
#ifndef FM_LLM_KERNEL_CUDA_EXCHANGE_COMBINE_H
#define FM_LLM_KERNEL_CUDA_EXCHANGE_COMBINE_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"
#include "llm/weights/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FM_CUDA_COLUMN_UNIT = 32 }; /* columns are divided in blocks of these */

/* The lists of weights/placement.h. */
typedef struct {
    const int32_t        *copy0; /* [n_expert+1] first copy of each expert */
    const fm_expert_copy *copy;
} fm_cuda_placement;

/* One pass of rows of all groups, and this rank's place. */
typedef struct {
    const int32_t    *group_row0; /* [n_group+1] first row of each group, counted over all passes */
    const int32_t    *expert;     /* [n_row, top_k] of the pass; -1: none */
    fm_cuda_placement where;      /* experts lie; as pairs */
    int            row0, n_row, top_k, D;
    int            n_group, n_set, n_channel, n_attn; /* n_group * n_attn = n_set * n_channel */
    int            group, set, channel, attn;
    int            most_items; /* of a row in a set; 0: blocks have their real lengths */
    int            as_rows;    /* n_set is 1 */
    /* As pairs: the keys, and what fm_cuda_pairs makes of them. */
    const int32_t *key;       /* [n_row, top_k] */
    const int32_t *key_first; /* [n_group*n_set+1] */
    const int32_t *key_place; /* [n_row, top_k] */
} fm_cuda_combine_shape;

/* Of every (row, slot): key[i] = group of the row * n_set + the set that computes its expert, or
 * -1; own[i] = the expert's slot if that is this rank's set, or -1. */
fm_status fm_cuda_combine_keys(const fm_cuda_combine_shape *t, int32_t *key, int32_t *own,
                              fm_stream stream);

/* out <- pair_out in the order in which it is sent, or the sums of its rows. */
typedef struct {
    fm_cuda_combine_shape shape;
    const uint16_t *pair_out; /* [n_pair, own columns] bf16 */
    const int32_t  *pair_of;  /* [n_row, top_k] where a (row, slot) lies there; -1: not here */
    const float    *weight;   /* [n_row, top_k]; as rows */
    float          *out;
} fm_cuda_combine_pack_args;
fm_status fm_cuda_combine_pack(const fm_cuda_combine_pack_args *a, fm_stream stream);

/* y[own row] (+)= sum over the slots received; the sum is complete before it is added to y. */
typedef struct {
    fm_cuda_combine_shape shape;
    const float   *in;
    const float   *weight; /* [n_row, top_k] of the pass; as pairs */
    float         *y;      /* [own rows, wanted columns]; the pass's first own row is y_row0 */
    int            y_row0, n_own; /* own rows of the pass */
    int            own0;          /* the first of them, counted in the pass */
    int            accumulate;
} fm_cuda_combine_unpack_args;
fm_status fm_cuda_combine_unpack(const fm_cuda_combine_unpack_args *a, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
