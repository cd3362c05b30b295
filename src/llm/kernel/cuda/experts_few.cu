/* SPDX-License-Identifier: Apache-2.0 */
/* Experts for very few rows: no sorting, no tiles.  A warp takes a few rows of
 * one expert's weights along all of k, each lane 16 bytes at a time past L1;
 * the activations come from L1.  Eight such loads of a lane are under way at
 * once, and every multiprocessor holds enough warps for 48 KB and more.
 *
 * Lanes keep their own sums and meet once, at the end. */
#include "llm/kernel/cuda/experts.h"
#include "llm/kernel/cuda/ptx.cuh"

enum { THREADS = 128, WARPS = THREADS / 32, CHANNELS = 2 /* of a warp */ };

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

/* 16 bytes of weights' worth of x, or zeros. */
template <bool FP8> FM_DEVICE void load_x(uint4 *v, const uint16_t *x, bool there)
{
    const uint4 none = make_uint4(0, 0, 0, 0);
    const uint4 *at  = (const uint4 *)x;
    v[0]             = at[0];
    if (FP8) v[1] = at[1];
    if (!there) v[0] = none;
    if (FP8 && !there) v[1] = none;
}

/* sum[r] += the lane's share of row[r] . x, DEPTH chunks of each row at once.
 * Lanes past the end read the last chunk again and multiply it by zeros: without
 * branches between them, all loads are issued before the first is needed. */
template <bool FP8, int ROWS, int DEPTH>
FM_DEVICE void dot_rows(float sum[ROWS], const weight_row row[ROWS], const uint16_t *x, int k)
{
    const int wide = FP8 ? 16 : 8, step = 32 * wide, lane = threadIdx.x & 31;
    for (int k0 = 0; k0 < k; k0 += DEPTH * step) {
        uint4 w[DEPTH][ROWS], v[DEPTH][FP8 ? 2 : 1];
        int   at[DEPTH];
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            at[d] = min(k0 + d * step + lane * wide, k - wide);
#pragma unroll
            for (int r = 0; r < ROWS; r++) w[d][r] = fm_ld_stream16(row[r].w + at[d] * (FP8 ? 1 : 2));
        }
#pragma unroll
        for (int d = 0; d < DEPTH; d++) load_x<FP8>(v[d], x + at[d], k0 + d * step + lane * wide < k);
#pragma unroll
        for (int d = 0; d < DEPTH; d++)
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (FP8) sum[r] = fmaf(dot_e4m3x16(w[d][r], v[d]), row[r].scale[at[d] / 128], sum[r]);
                else sum[r] = dot_bf16x8(w[d][r], v[d][0], sum[r]);
            }
    }
}

/* Row `row` of `part` (W1 or W3, or all there is) in expert e of [E][parts * rows][k]. */
FM_DEVICE weight_row row_at(const fm_cuda_expert_matrix &m, int e, int parts, int part, int rows,
                            int row, int k)
{
    const int     width = m.scale ? 1 : 2;
    const int     at    = parts == 2 ? row / 16 * 32 + part * 16 + row % 16 : row;
    const int     deep  = (rows + 127) / 128, along = (k + 127) / 128;
    const int64_t block = ((int64_t)e * parts + part) * deep + row / 128;
    weight_row    r;
    r.w     = (const uint8_t *)m.weight + ((int64_t)e * parts * rows + at) * k * width;
    r.scale = m.scale ? m.scale + block * along : 0;
    return r;
}

FM_DEVICE float gated(float gate, float up)
{
    return gate / (1 + expf(-gate)) * up;
}

/* Two channels of the row's middle: four rows of weights. */
template <bool FP8>
FM_DEVICE void up_channels(const fm_cuda_experts_few_args &a, int t, int c, uint32_t *middle)
{
    const bool shared = c >= a.top_k * a.I;
    const int  slot   = shared ? 0 : c / a.I;
    const int  e      = shared ? 0 : a.expert[t * a.top_k + slot];
    const int  ch     = shared ? c - a.top_k * a.I : c - slot * a.I;
    const int  rows   = shared ? a.I_shared : a.I;
    float      sum[2 * CHANNELS] = {};
    if (e >= 0) {
        const fm_cuda_expert_matrix &m = shared ? a.shared_gate_up : a.gate_up;
        weight_row                   row[2 * CHANNELS];
#pragma unroll
        for (int i = 0; i < 2 * CHANNELS; i++) row[i] = row_at(m, e, 2, i & 1, rows, ch + i / 2, a.D);
        dot_rows<FP8, 2 * CHANNELS, 2>(sum, row, a.h + (int64_t)t * a.D, a.D);
    }
#pragma unroll
    for (int i = 0; i < 2 * CHANNELS; i++) sum[i] = fm_warp_sum(sum[i]);
    if (threadIdx.x % 32 == 0) *middle = fm_bf16x2_of_f32(gated(sum[0], sum[1]), gated(sum[2], sum[3]));
}

template <bool FP8> FM_KERNEL(THREADS) few_up(const fm_cuda_experts_few_args a)
{
    fm_grid_wait();
    fm_grid_release();
    const int width = a.top_k * a.I + a.I_shared, t = blockIdx.y;
    const int c     = (blockIdx.x * WARPS + threadIdx.x / 32) * CHANNELS;
    if (c < width) up_channels<FP8>(a, t, c, (uint32_t *)(a.middle + (int64_t)t * width + c));
}

/* One output: the slots one after the other, each scaled as it is added. */
template <bool FP8> FM_DEVICE float down_row(const fm_cuda_experts_few_args &a, int t, int d)
{
    const uint16_t *middle = a.middle + (int64_t)t * (a.top_k * a.I + a.I_shared);
    float           y      = 0;
    for (int slot = 0; slot <= a.top_k; slot++) {
        const bool shared = slot == a.top_k;
        const int  e      = shared ? 0 : a.expert[t * a.top_k + slot];
        const int  k      = shared ? a.I_shared : a.I;
        if (e < 0 || k == 0) continue;
        const weight_row row = row_at(shared ? a.shared_down : a.down, e, 1, 0, a.D, d, k);
        float            sum = 0;
        dot_rows<FP8, 1, 8>(&sum, &row, middle + slot * a.I, k);
        y = fmaf(shared ? 1.0f : a.weight[t * a.top_k + slot], sum, y);
    }
    return fm_warp_sum(y);
}

template <bool FP8> FM_KERNEL(THREADS) few_down(const fm_cuda_experts_few_args a)
{
    fm_grid_wait();
    fm_grid_release();
    const int t = blockIdx.y, d = blockIdx.x * WARPS + threadIdx.x / 32;
    if (d >= a.D) return;
    const float y = down_row<FP8>(a, t, d);
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
    if (a->gate_up.scale) FM_LAUNCH_EARLY(few_up<true>, grid, THREADS, 0, stream, *a);
    else FM_LAUNCH_EARLY(few_up<false>, grid, THREADS, 0, stream, *a);
    return fm_cuda_launched("experts_few_up");
}

fm_status fm_cuda_experts_few_down(const fm_cuda_experts_few_args *a, fm_stream stream)
{
    check(a);
    const dim3 grid((a->D + WARPS - 1) / WARPS, a->T);
    if (a->T == 0) return FM_OK;
    if (a->down.scale) FM_LAUNCH_EARLY(few_down<true>, grid, THREADS, 0, stream, *a);
    else FM_LAUNCH_EARLY(few_down<false>, grid, THREADS, 0, stream, *a);
    return fm_cuda_launched("experts_few_down");
}
