/* SPDX-License-Identifier: Apache-2.0 */
/* The expanded form, common to its kernels: which rows, head and keys a thread block has, and
 * the state of its online softmax.
 *
 * The definition both obey, for each row and each block of 64 keys counted from
 * position 0 of the sequence:
 *
 *     S = Q K^T                      a chain of k16 steps over a key's columns
 *     max' = max(max, S);  alpha = 2^((max - max') * scale)
 *     P = 2^(S * scale - max' * scale), rounded to bf16 for the product
 *     O = O * alpha + P V            a chain of k16 steps over the keys
 *     sum = sum * alpha + sum of P   in the four lanes of a row, each its columns
 *
 * A block of which a row may see nothing multiplies its sums by 1 and adds 0,
 * whether it is computed or skipped: where tiles and passes begin moves no bit. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_EXPANDED_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_EXPANDED_CUH

#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/attention/tile.cuh"

enum { FM__EXPANDED_WARPS = FM_MLA_TILE_ROWS / 16 }; /* a warp has 16 rows */

struct fm__expanded_tile {
    int nope, rope, v_dim; /* columns */
    int head, row0, n_row; /* rows of the batch */
    int pos0;              /* position of the first row */
    int n_key;             /* keys of the pass that its last row may see */
    const uint16_t *key, *value, *key_rope; /* of the head, at the pass's first key */
};

/* A warp's 16 rows as accumulators have them: lane/4 is the row, and +8;
 * o[4j..4j+3] are columns 8j + lane%4*2 and the next, of both. */
struct fm__expanded_sums {
    float o[FM_MLA_VALUE_MAX / 2];
    float max[2], sum[2]; /* a lane sums its own columns */
};

FM_DEVICE fm__expanded_tile fm__expanded_tile_of(const fm_mla_expanded_args &a, fm_mla_tile at,
                                                 int head)
{
    const fm_mla_span span = a.spans.span[at.span];
    const int64_t     key0 = a.spans.key0[at.span];
    fm__expanded_tile t;
    t.nope     = a.nope;
    t.rope     = a.rope;
    t.v_dim    = a.v_dim;
    t.head     = head;
    t.row0     = span.row0 + at.row;
    t.n_row    = min(span.n_row - at.row, (int)FM_MLA_TILE_ROWS);
    t.pos0     = span.pos0 + at.row;
    t.n_key    = min(t.pos0 + t.n_row, a.spans.key_end) - a.spans.key_begin;
    t.key      = a.key + key0 * a.key_stride + head * a.head_stride;
    t.value    = a.value + key0 * a.key_stride + head * a.head_stride;
    t.key_rope = a.key_rope + key0 * a.rope_stride;
    return t;
}

FM_DEVICE int64_t fm__expanded_row(const fm_mla_expanded_args &a, const fm__expanded_tile &t,
                                   int row)
{
    return (int64_t)(t.row0 + row) * a.n_head + t.head;
}

/* What the pass before left, lane by lane, so that passes change no sum. */
FM_DEVICE void fm__load_state(const fm_mla_expanded_args &a, const fm__expanded_tile &t,
                              fm__expanded_sums &h)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = (threadIdx.x >> 5) * 16 + lane / 4 + 8 * r;
        if (row >= t.n_row) continue;
        const float *sum = a.state_sum + fm__expanded_row(a, t, row) * 5;
        const float *o   = a.state_o + fm__expanded_row(a, t, row) * t.v_dim;
        h.max[r]         = sum[0];
        h.sum[r]         = sum[1 + lane % 4];
#pragma unroll
        for (int j = 0; j < FM_MLA_VALUE_MAX / 8; j++) {
            const int col = j * 8 + lane % 4 * 2;
            if (col >= t.v_dim) break;
            h.o[4 * j + 2 * r] = o[col], h.o[4 * j + 2 * r + 1] = o[col + 1];
        }
    }
}

FM_DEVICE void fm__store_state(const fm_mla_expanded_args &a, const fm__expanded_tile &t,
                               const fm__expanded_sums &h)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = (threadIdx.x >> 5) * 16 + lane / 4 + 8 * r;
        if (row >= t.n_row) continue;
        float *sum = a.state_sum + fm__expanded_row(a, t, row) * 5;
        float *o   = a.state_o + fm__expanded_row(a, t, row) * t.v_dim;
        sum[1 + lane % 4] = h.sum[r];
        if (lane % 4 == 0) sum[0] = h.max[r];
#pragma unroll
        for (int j = 0; j < FM_MLA_VALUE_MAX / 8; j++) {
            const int col = j * 8 + lane % 4 * 2;
            if (col >= t.v_dim) break;
            *(float2 *)(o + col) = make_float2(h.o[4 * j + 2 * r], h.o[4 * j + 2 * r + 1]);
        }
    }
}

/* Whether this pass has the last key of the tile. */
FM_DEVICE bool fm__is_last_pass(const fm_mla_expanded_args &a, const fm__expanded_tile &t)
{
    return t.pos0 + t.n_row <= a.spans.key_end;
}

/* Columns 8j.. of a result, row lane/4 and +8.  + 0 makes one zero of two: a
 * skipped block would have done the same to -0. */
FM_DEVICE uint2 fm__result(const fm__expanded_sums &h, const float f[2], int j)
{
    const float *o = h.o + 4 * j;
    return make_uint2(fm_bf16x2_of_f32(o[0] * f[0] + 0.0f, o[1] * f[0] + 0.0f),
                      fm_bf16x2_of_f32(o[2] * f[1] + 0.0f, o[3] * f[1] + 0.0f));
}

/* Keys behind a row's own position do not exist for it. */
FM_DEVICE void fm__mask(float (&s)[FM_MLA_BLOCK_KEYS / 2], int key_pos, int row_pos)
{
#pragma unroll
    for (int i = 0; i < FM_MLA_BLOCK_KEYS / 2; i++)
        if (key_pos + i / 4 * 8 + i % 2 > row_pos + i / 2 % 2 * 8) s[i] = -INFINITY;
}

/* Scores become weights, and alpha is what earlier sums shrink by to the new maximum. */
FM_DEVICE void fm__weigh(float (&s)[FM_MLA_BLOCK_KEYS / 2], fm__expanded_sums &h, float alpha[2],
                         float scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float max = -INFINITY, sum = 0;
#pragma unroll
        for (int j = 2 * r; j < FM_MLA_BLOCK_KEYS / 2; j += 4)
            max = fmaxf(max, fmaxf(s[j], s[j + 1]));
        max                = fmaxf(h.max[r], fm__quad_max(max));
        const float offset = -max * scale;
        alpha[r]           = fm_exp2_fast((h.max[r] - max) * scale);
        h.max[r]           = max;
#pragma unroll
        for (int j = 2 * r; j < FM_MLA_BLOCK_KEYS / 2; j += 4)
#pragma unroll
            for (int i = j; i < j + 2; i++) {
                s[i] = fm_exp2_fast(fmaf(s[i], scale, offset));
                sum += s[i];
            }
        h.sum[r] = fmaf(h.sum[r], alpha[r], sum);
    }
}

FM_DEVICE void fm__shrink(fm__expanded_sums &h, const float alpha[2])
{
#pragma unroll
    for (int i = 0; i < FM_MLA_VALUE_MAX / 2; i++) h.o[i] *= alpha[i / 2 % 2];
}

/* An accumulator of S has the places of an operand of the next product: keys 16k.. */
FM_DEVICE void fm__weights_of(uint32_t p[4], const float *s, int k)
{
#pragma unroll
    for (int i = 0; i < 4; i++) p[i] = fm_bf16x2_of_f32(s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
}

#endif
