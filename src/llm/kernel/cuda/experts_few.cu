/* SPDX-License-Identifier: Apache-2.0 */
/* Experts for very few rows: no sorting, no tiles.  A warp takes a few rows of
 * weights along all of k, a lane 16 bytes of each at a time; the activations
 * come from L1.
 *
 * Bytes under way decide the speed, so they are not left to the compiler's
 * order of loads: each lane has a ring of its own in shared memory, 16 copies
 * deep, which no other lane reads.  That is 8 KB for a warp, and 60 KB for a
 * multiprocessor that has only eight of them.
 *
 * Lanes keep their own sums and meet once, at the end. */
#include "llm/kernel/cuda/experts.h"
#include "llm/kernel/cuda/fragment.cuh"

enum {
    THREADS  = 128,
    WARPS    = THREADS / 32,
    CHANNELS = 2,  /* of a warp in the first phase */
    COPIES   = 16, /* of a lane under way */
    RING     = COPIES * THREADS * 16,
};

/* One row of weights: where it begins, and its factors along k. */
typedef struct {
    const uint8_t *w;
    const float   *scale;
} weight_row;

FM_DEVICE float dot_bf16x2(uint32_t w, uint32_t x, float sum)
{
    sum = fmaf(fm_f32_of_bf16_lo(w), fm_f32_of_bf16_lo(x), sum);
    return fmaf(fm_f32_of_bf16_hi(w), fm_f32_of_bf16_hi(x), sum);
}

FM_DEVICE float dot_bf16x8(uint4 w, uint4 x, float sum)
{
    sum = dot_bf16x2(w.x, x.x, sum);
    sum = dot_bf16x2(w.y, x.y, sum);
    sum = dot_bf16x2(w.z, x.z, sum);
    return dot_bf16x2(w.w, x.w, sum);
}

FM_DEVICE float dot_e4m3x16(uint4 w, const uint4 x[2])
{
    uint32_t v[8];
    fm_bf16x4_of_e4m3x4(v, w.x);
    fm_bf16x4_of_e4m3x4(v + 2, w.y);
    fm_bf16x4_of_e4m3x4(v + 4, w.z);
    fm_bf16x4_of_e4m3x4(v + 6, w.w);
    const float sum = dot_bf16x8(make_uint4(v[0], v[1], v[2], v[3]), x[0], 0);
    return dot_bf16x8(make_uint4(v[4], v[5], v[6], v[7]), x[1], sum);
}

/* x times 16 bytes of a row of weights from k `at` on. */
template <bool FP8>
FM_DEVICE float dot_chunk(uint4 w, const uint16_t *x, int at, const float *scale, float sum)
{
    const uint4 *xs = (const uint4 *)(x + at);
    if (!FP8) return dot_bf16x8(w, xs[0], sum);
    const uint4 v[2] = {xs[0], xs[1]};
    return fmaf(dot_e4m3x16(w, v), scale[at / 128], sum);
}

/* The copy of number i of this lane. */
FM_DEVICE uint4 *ring_at(uint8_t *ring, int i)
{
    return (uint4 *)ring + i % COPIES * THREADS + threadIdx.x;
}

/* Row `row` of `part` (W1 or W3, or all there is) in expert e of [E][parts * rows][k]. */
FM_DEVICE weight_row row_at(const fm_cuda_expert_matrix &m, int e, int parts, int part, int rows,
                            int row, int k)
{
    const int     width = m.scale ? 1 : 2;
    const int     at    = parts == 2 ? row / 16 * 32 + part * 16 + row % 16 : row;
    const int     deep = (m.scale_row0 + rows + 127) / 128, along = (k + 127) / 128;
    const int64_t block = ((int64_t)e * parts + part) * deep + (m.scale_row0 + row) / 128;
    weight_row    r;
    r.w     = (const uint8_t *)m.weight + ((int64_t)e * parts * rows + at) * k * width;
    r.scale = m.scale ? m.scale + block * along : 0;
    return r;
}

/* sum[r] = the lane's share of row[r] . x */
template <bool FP8, int ROWS>
FM_DEVICE void dot_rows(float sum[ROWS], const weight_row row[ROWS], const uint16_t *x, int k,
                        uint8_t *ring)
{
    const int wide = FP8 ? 16 : 8, depth = COPIES / ROWS, steps = (k + 32 * wide - 1) / (32 * wide);
    const int first = (threadIdx.x & 31) * wide;
#pragma unroll
    for (int r = 0; r < ROWS; r++) sum[r] = 0;
    for (int i = 1 - depth; i < steps; i++) { /* multiplies step i, asks for i + depth - 1 */
        const int ask = i + depth - 1, k_ask = first + ask * 32 * wide, at = first + i * 32 * wide;
        if (i >= 0) fm_cp_async_wait<depth - 2>();
        __syncwarp(); /* what was read in the last round may be written over */
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            fm_cp_async16(ring_at(ring, ask * ROWS + r),
                          row[r].w + (k_ask < k ? k_ask : 0) * (FP8 ? 1 : 2), k_ask < k);
        fm_cp_async_commit();
        if (i < 0 || at >= k) continue;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            sum[r] = dot_chunk<FP8>(*ring_at(ring, i * ROWS + r), x, at, row[r].scale, sum[r]);
    }
}

/* Two channels of the row's middle: four rows of weights. */
template <bool FP8>
FM_DEVICE void up_channels(const fm_cuda_experts_few_args &a, int t, int c, uint32_t *middle,
                           uint8_t *ring)
{
    const bool shared            = c >= a.top_k * a.I;
    const int  slot              = shared ? 0 : c / a.I;
    const int  e                 = shared ? 0 : a.expert[t * a.top_k + slot];
    const int  ch                = shared ? c - a.top_k * a.I : c - slot * a.I;
    const int  rows              = shared ? a.I_shared : a.I;
    float      sum[2 * CHANNELS] = {};
    if (e >= 0) {
        const fm_cuda_expert_matrix &m = shared ? a.shared_gate_up : a.gate_up;
        weight_row                   row[2 * CHANNELS];
#pragma unroll
        for (int i = 0; i < 2 * CHANNELS; i++)
            row[i] = row_at(m, e, 2, i & 1, rows, ch + i / 2, a.D);
        dot_rows<FP8, 2 * CHANNELS>(sum, row, a.h + (int64_t)t * a.D, a.D, ring);
    }
#pragma unroll
    for (int i = 0; i < 2 * CHANNELS; i++) sum[i] = fm_warp_sum(sum[i]);
    if (threadIdx.x % 32 == 0)
        *middle = fm_bf16x2_of_f32(fm__gated(sum[0], sum[1]), fm__gated(sum[2], sum[3]));
}

template <bool FP8> FM_KERNEL(THREADS) few_up(const fm_cuda_experts_few_args a)
{
    __shared__ __align__(16) uint8_t ring[RING];
    fm_grid_wait();
    fm_grid_release();
    const int width = a.top_k * a.I + a.I_shared, t = blockIdx.y;
    const int c = (blockIdx.x * WARPS + threadIdx.x / 32) * CHANNELS;
    if (c < width) up_channels<FP8>(a, t, c, (uint32_t *)(a.middle + (int64_t)t * width + c), ring);
}

/* A place in the second phase's walk: the row's slots one after the other,
 * 32 chunks of each at a time. */
typedef struct {
    int             slot, k0, k; /* slot > top_k: past the end */
    weight_row      row;
    const uint16_t *x;
    float           weight;
} slot_walk;

/* To the first slot from `slot` on that has something to add. */
FM_DEVICE void walk_to(slot_walk &w, const fm_cuda_experts_few_args &a, int t, int d, int slot)
{
    w.k0 = w.k = 0;
    for (; slot <= a.top_k && w.k == 0; slot++) {
        const bool shared = slot == a.top_k;
        const int  e      = shared ? 0 : a.expert[t * a.top_k + slot];
        w.slot            = slot;
        w.k               = e < 0 ? 0 : shared ? a.I_shared : a.I;
        w.weight          = shared ? 1.0f : a.weight[t * a.top_k + slot];
        w.x               = a.middle + (int64_t)t * (a.top_k * a.I + a.I_shared) + slot * a.I;
        if (w.k) w.row = row_at(shared ? a.shared_down : a.down, e, 1, 0, a.D, d, w.k);
    }
    if (w.k == 0) w.slot = a.top_k + 1;
}

template <int STEP>
FM_DEVICE void walk_on(slot_walk &w, const fm_cuda_experts_few_args &a, int t, int d)
{
    w.k0 += STEP;
    if (w.k0 >= w.k) walk_to(w, a, t, d, w.slot + 1);
}

/* Asks for the lane's chunk at the place, if the walk is not over. */
template <bool FP8>
FM_DEVICE void ask(const slot_walk &w, const fm_cuda_experts_few_args &a, uint4 *to)
{
    const int at = w.k0 + (threadIdx.x & 31) * (FP8 ? 16 : 8);
    if (w.slot <= a.top_k && at < w.k) fm_cp_async16(to, w.row.w + at * (FP8 ? 1 : 2), true);
    fm_cp_async_commit();
}

/* One output: each slot's sum is scaled as it is added. */
template <bool FP8>
FM_DEVICE float down_row(const fm_cuda_experts_few_args &a, int t, int d, uint8_t *ring)
{
    constexpr int wide = FP8 ? 16 : 8, step = 32 * wide;
    slot_walk     ahead, here;
    float         y = 0, sum = 0;
    walk_to(ahead, a, t, d, 0);
    here = ahead;
    for (int i = 0; i < COPIES - 1; i++) {
        ask<FP8>(ahead, a, ring_at(ring, i));
        if (ahead.slot <= a.top_k) walk_on<step>(ahead, a, t, d);
    }
    for (int i = 0; here.slot <= a.top_k; i++) {
        fm_cp_async_wait<COPIES - 2>();
        __syncwarp(); /* what was read in the last round may be written over */
        ask<FP8>(ahead, a, ring_at(ring, i + COPIES - 1));
        if (ahead.slot <= a.top_k) walk_on<step>(ahead, a, t, d);
        const int at = here.k0 + (threadIdx.x & 31) * wide;
        if (at < here.k) sum = dot_chunk<FP8>(*ring_at(ring, i), here.x, at, here.row.scale, sum);
        if (here.k0 + step >= here.k) {
            y   = fmaf(here.weight, sum, y);
            sum = 0;
        }
        walk_on<step>(here, a, t, d);
    }
    return fm_warp_sum(y);
}

template <bool FP8> FM_KERNEL(THREADS) few_down(const fm_cuda_experts_few_args a)
{
    __shared__ __align__(16) uint8_t ring[RING];
    fm_grid_wait();
    fm_grid_release();
    const int t = blockIdx.y, d = blockIdx.x * WARPS + threadIdx.x / 32;
    if (d >= a.D) return;
    const float y = down_row<FP8>(a, t, d, ring);
    if (threadIdx.x % 32 == 0) a.y[(int64_t)t * a.D + d] = y;
}

static void check(const fm_cuda_experts_few_args *a)
{
    const int wide = a->gate_up.scale ? 16 : 8;
    FM_BUG_UNLESS(a->I % 16 == 0 && a->I_shared % 16 == 0 && a->D % wide == 0);
}

fm_status fm_cuda_experts_few_up(const fm_cuda_experts_few_args *a, fm_stream stream)
{
    check(a);
    const int  per_block = WARPS * CHANNELS;
    const dim3 grid((a->top_k * a->I + a->I_shared + per_block - 1) / per_block, a->T);
    if (a->T == 0) return FM_OK;
    if (a->gate_up.scale)
        FM_LAUNCH_EARLY(few_up<true>, grid, THREADS, 0, stream, *a);
    else
        FM_LAUNCH_EARLY(few_up<false>, grid, THREADS, 0, stream, *a);
    return fm_cuda_launched("experts_few_up");
}

fm_status fm_cuda_experts_few_down(const fm_cuda_experts_few_args *a, fm_stream stream)
{
    check(a);
    const dim3 grid((a->D + WARPS - 1) / WARPS, a->T);
    if (a->T == 0) return FM_OK;
    if (a->down.scale)
        FM_LAUNCH_EARLY(few_down<true>, grid, THREADS, 0, stream, *a);
    else
        FM_LAUNCH_EARLY(few_down<false>, grid, THREADS, 0, stream, *a);
    return fm_cuda_launched("experts_few_down");
}
