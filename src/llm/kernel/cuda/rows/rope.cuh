/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation of queries, by any launch.  A thread has one unit of work, which is four pairs where 16
 * bytes are aligned, and otherwise one. */
#ifndef FM_LLM_KERNEL_CUDA_ROWS_ROPE_CUH
#define FM_LLM_KERNEL_CUDA_ROWS_ROPE_CUH

#include "base/number.h"
#include "llm/kernel/cuda/rows/block.cuh"
#include "llm/kernel/cuda/rows/rows.h"

/* Pairs of a unit. */
static inline int fm__rope_pairs(const fm_cuda_rope_args *a)
{
    return a->interleaved && (a->nope | a->rope | a->kv_lora | a->width) % 8 == 0 ? 4 : 1;
}

static inline unsigned fm__rope_blocks(const fm_cuda_rope_args *a)
{
    return fm__row_blocks(a->n_row * a->n_head * (a->rope / 2 / fm__rope_pairs(a)));
}

static inline void fm__rope_check(const fm_cuda_rope_args *a)
{
    FM_BUG_UNLESS(a->rope > 0 && a->rope % 2 == 0 && a->n_head > 0);
    FM_BUG_UNLESS(a->n_latent == 0 || a->width >= a->kv_lora + a->rope);
}

/* (x, y) by an angle, rounded to bf16 */
FM_DEVICE uint32_t fm__rotated(float x, float y, float c, float s)
{
    return fm_bf16x2_of_f32(x * c - y * s, x * s + y * c);
}

FM_DEVICE uint32_t fm__rotated(uint32_t pair, float c, float s)
{
    return fm__rotated(fm_f32_of_bf16_lo(pair), fm_f32_of_bf16_hi(pair), c, s);
}

/* Four neighbouring pairs from pair `i` on. */
FM_DEVICE void fm__rotate4(uint16_t *q, uint16_t *latent, const float *cos, const float *sin, int i)
{
    const uint4  had = *(const uint4 *)(q + 2 * i);
    const float4 c = fm__load4(cos + i), s = fm__load4(sin + i);
    const uint4  now      = make_uint4(fm__rotated(had.x, c.x, s.x), fm__rotated(had.y, c.y, s.y),
                                       fm__rotated(had.z, c.z, s.z), fm__rotated(had.w, c.w, s.w));
    *(uint4 *)(q + 2 * i) = now;
    if (latent) *(uint4 *)(latent + 2 * i) = now;
}

/* Pair i, wherever its two columns are. */
FM_DEVICE void fm__rotate1(uint16_t *q, uint16_t *latent, const float *cos, const float *sin, int i,
                         int first, int second)
{
    const uint32_t now =
        fm__rotated(fm_f32_of_bf16(q[first]), fm_f32_of_bf16(q[second]), cos[i], sin[i]);
    q[first]  = (uint16_t)now;
    q[second] = (uint16_t)(now >> 16);
    if (!latent) return;
    latent[first]  = (uint16_t)now;
    latent[second] = (uint16_t)(now >> 16);
}

/* Unit n of all rows.  Its position is read before the kernel waits. */
template <int PAIRS> FM_DEVICE void fm__rotate_query(const fm_cuda_rope_args &a, int n)
{
    const int half = a.rope / 2, per_head = half / PAIRS, query = n / per_head,
              i = n % per_head * PAIRS, row = query / a.n_head;
    const int pos = row < a.n_row ? a.pos[row] : 0;
    fm_grid_wait();
    if (row >= a.n_row) return;
    uint16_t *q = a.q + (size_t)query * (size_t)(a.nope + a.rope) + a.nope;
    uint16_t *end =
        row < a.n_latent ? a.latent + (size_t)query * (size_t)a.width + a.kv_lora : NULL;
    const size_t at = (size_t)pos * (size_t)half;
    if (PAIRS == 4)
        fm__rotate4(q, end, a.cos + at, a.sin + at, i);
    else
        fm__rotate1(q, end, a.cos + at, a.sin + at, i, a.interleaved ? 2 * i : i,
                  a.interleaved ? 2 * i + 1 : i + half);
    if (!end || i) return;
    for (int col = a.rope; col < a.width - a.kv_lora; col++) end[col] = 0;
}

#endif
