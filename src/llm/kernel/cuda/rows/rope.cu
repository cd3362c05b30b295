/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation of queries, and where a step's tokens go in the cache.  A thread has one unit of work,
 * which is four pairs where 16 bytes are aligned, and otherwise one. */
#include "base/number.h"
#include "llm/kernel/cuda/rows/block.cuh"
#include "llm/kernel/cuda/rows/rows.h"

/* Pairs of a unit. */
static int pairs_of(const fm_cuda_rope_args *a)
{
    return a->interleaved && (a->nope | a->rope | a->kv_lora | a->width) % 8 == 0 ? 4 : 1;
}

static unsigned blocks_of(const fm_cuda_rope_args *a)
{
    return fm__row_blocks(a->n_row * a->n_head * (a->rope / 2 / pairs_of(a)));
}

/* (x, y) by an angle, rounded to bf16 */
FM_DEVICE uint32_t rotated(float x, float y, float c, float s)
{
    return fm_bf16x2_of_f32(x * c - y * s, x * s + y * c);
}

FM_DEVICE uint32_t rotated(uint32_t pair, float c, float s)
{
    return rotated(fm_f32_of_bf16_lo(pair), fm_f32_of_bf16_hi(pair), c, s);
}

/* Four neighbouring pairs from pair `i` on. */
FM_DEVICE void rotate4(uint16_t *q, uint16_t *latent, const float *cos, const float *sin, int i)
{
    const uint4  had = *(const uint4 *)(q + 2 * i);
    const float4 c = fm__load4(cos + i), s = fm__load4(sin + i);
    const uint4  now      = make_uint4(rotated(had.x, c.x, s.x), rotated(had.y, c.y, s.y),
                                       rotated(had.z, c.z, s.z), rotated(had.w, c.w, s.w));
    *(uint4 *)(q + 2 * i) = now;
    if (latent) *(uint4 *)(latent + 2 * i) = now;
}

/* Pair i, wherever its two columns are. */
FM_DEVICE void rotate1(uint16_t *q, uint16_t *latent, const float *cos, const float *sin, int i,
                         int first, int second)
{
    const uint32_t now =
        rotated(fm_f32_of_bf16(q[first]), fm_f32_of_bf16(q[second]), cos[i], sin[i]);
    q[first]  = (uint16_t)now;
    q[second] = (uint16_t)(now >> 16);
    if (!latent) return;
    latent[first]  = (uint16_t)now;
    latent[second] = (uint16_t)(now >> 16);
}

/* Unit n of all rows. */
template <int PAIRS> FM_DEVICE void rotate_query(const fm_cuda_rope_args &a, int n)
{
    const int half = a.rope / 2, per_head = half / PAIRS, query = n / per_head,
              i = n % per_head * PAIRS, row = query / a.n_head;
    if (row >= a.n_row) return;
    uint16_t *q = a.q + (size_t)query * (size_t)(a.nope + a.rope) + a.nope;
    uint16_t *end =
        row < a.n_latent ? a.latent + (size_t)query * (size_t)a.width + a.kv_lora : NULL;
    const size_t at = (size_t)a.pos[row] * (size_t)half;
    if (PAIRS == 4)
        rotate4(q, end, a.cos + at, a.sin + at, i);
    else
        rotate1(q, end, a.cos + at, a.sin + at, i, a.interleaved ? 2 * i : i,
                  a.interleaved ? 2 * i + 1 : i + half);
    if (!end || i) return;
    for (int col = a.rope; col < a.width - a.kv_lora; col++) end[col] = 0;
}

template <int PAIRS> FM_KERNEL(FM__ROW_THREADS) rotate_queries(const fm_cuda_rope_args a)
{
    fm__row_begin();
    rotate_query<PAIRS>(a, (int)(blockIdx.x * FM__ROW_THREADS + threadIdx.x));
}

FM_KERNEL(FM__ROW_THREADS) find_slots(const fm_cuda_slots_args a)
{
    fm__row_begin();
    const int i = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    if (i >= a.n_row) return;
    const int pos = a.pos[i], at = pos < 0 ? -1 : pos / a.page_size;
    const int page = at >= 0 && at < a.max_page
                         ? a.page[(size_t)a.table[i] * (size_t)a.max_page + (size_t)at]
                         : -1;
    a.slot[i]      = page < 0 ? -1 : page * a.page_size + pos % a.page_size;
}

fm_status fm_cuda_rope(const fm_cuda_rope_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->rope > 0 && a->rope % 2 == 0 && a->n_head > 0);
    FM_BUG_UNLESS(a->n_latent == 0 || a->width >= a->kv_lora + a->rope);
    if (a->n_row == 0) return FM_OK;
    if (pairs_of(a) == 4)
        FM_LAUNCH_EARLY(rotate_queries<4>, blocks_of(a), FM__ROW_THREADS, 0, stream, *a);
    else
        FM_LAUNCH_EARLY(rotate_queries<1>, blocks_of(a), FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("rotate_queries");
}

fm_status fm_cuda_slots(const fm_cuda_slots_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->page_size > 0);
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(find_slots, fm__row_blocks(a->n_row), FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("find_slots");
}
