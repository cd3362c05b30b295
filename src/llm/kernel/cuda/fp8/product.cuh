/* SPDX-License-Identifier: Apache-2.0 */
/* The warpgroups that multiply: weights are the 64-row operand of wgmma, pairs its N columns.
 *
 *     part = 128 k of a stage, four wgmma        sum = fmaf(part, x_scale * w_scale, sum)
 *
 * With SwiGLU the tile of a warpgroup is every other group of 8 rows of 128, so that a warp's
 * upper 8 rows are gate and its lower 8 up of the same channels: both sums of a channel end in
 * the same lane. */
#ifndef FM_LLM_KERNEL_CUDA_FP8_PRODUCT_CUH
#define FM_LLM_KERNEL_CUDA_FP8_PRODUCT_CUH

#include "llm/kernel/cuda/fp8/ring.cuh"

/* --- where a tile lies -------------------------------------------------------- */

template <class S> FM_DEVICE int tile_index(int t)
{
    return S::ALONE ? t : own_group() * S::TILES + t;
}

template <class S> FM_DEVICE fm_tile pairs_of(const fp8_ring<S> &r, const uint8_t *stage)
{
    return fm_tile_by_row(stage + S::W_BYTES + r.pair * 128);
}

template <class S> FM_DEVICE const float *pair_scales(const fp8_ring<S> &r, int slot)
{
    return r.scale + slot * S::NT + r.pair;
}

template <class S, bool GATED> FM_DEVICE fm_tile tile_of(const uint8_t *stage, int t)
{
    const int i = tile_index<S>(t);
    if (GATED) return fm_tile_by_groups(stage + i / 2 * 128 * 128 + i % 2 * 1024, 2048);
    return fm_tile_by_row(stage + i * 64 * 128);
}

/* The first row of w of a warp's 16, from the task's first on; SwiGLU: its first channel. */
template <class S, bool GATED> FM_DEVICE int warp_row(int t)
{
    const int i = tile_index<S>(t);
    return GATED ? i / 2 * 64 + own_warp() * 16 + i % 2 * 8 : i * 64 + own_warp() * 16;
}

/* --- scales of weights -------------------------------------------------------- */

/* Of a warp's 16 rows, one for every 128 k (SwiGLU: of gate and of up): a lane keeps one of 32
 * steps, and the one 32 steps on. */
template <int PARTS> struct fp8_factors {
    int   row[PARTS]; /* where they begin */
    float here[PARTS], then[PARTS];
};

template <int PARTS>
FM_DEVICE void factors_read(fp8_factors<PARTS> &f, const fm_cuda_fp8_args &a, int step, int n_step)
{
    const int at = min(step + fm_lane_here(), n_step - 1);
#pragma unroll
    for (int i = 0; i < PARTS; i++) f.then[i] = a.scale[f.row[i] + at];
}

/* row: of gate, or of all. */
template <int PARTS>
FM_DEVICE void factors_begin(fp8_factors<PARTS> &f, const fm_cuda_fp8_args &a, int expert, int row,
                             int n_step)
{
    const int n = a.n / PARTS, deep = (a.scale_row0 + n + 127) / 128;
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        f.row[i] = ((expert * PARTS + i) * deep + (a.scale_row0 + min(row, n - 1)) / 128) * n_step;
    factors_read<PARTS>(f, a, 0, n_step);
}

template <int PARTS>
FM_DEVICE void factors_need(fp8_factors<PARTS> &f, const fm_cuda_fp8_args &a, int step, int n_step)
{
    if (step % 32) return;
#pragma unroll
    for (int i = 0; i < PARTS; i++) f.here[i] = f.then[i];
    factors_read<PARTS>(f, a, step + 32, n_step);
}

/* --- one stage ---------------------------------------------------------------- */

/* Asynchronous until fm_wgmma_wait(). */
template <int N> FM_DEVICE void start_part(float (&part)[N / 2], fm_tile w, fm_tile x)
{
    fm_wgmma_fence();
#pragma unroll
    for (int k32 = 0; k32 < 4; k32++)
        fm_wgmma_e4m3<N>(part, fm_tile_at(w, 32 * k32), fm_tile_at(x, 32 * k32), k32 > 0);
    fm_wgmma_commit();
}

/* upper, lower: w's scales of the warp's upper and lower 8 rows. */
template <int N>
FM_DEVICE void add_part(float (&sum)[N / 2], const float (&part)[N / 2], const float *x_scale,
                        float upper, float lower)
{
    const float *own = x_scale + (threadIdx.x & 3) * 2;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        const float2 s = *(const float2 *)(own + 8 * j);
        sum[4 * j]     = fmaf(part[4 * j], s.x * upper, sum[4 * j]);
        sum[4 * j + 1] = fmaf(part[4 * j + 1], s.y * upper, sum[4 * j + 1]);
        sum[4 * j + 2] = fmaf(part[4 * j + 2], s.x * lower, sum[4 * j + 2]);
        sum[4 * j + 3] = fmaf(part[4 * j + 3], s.y * lower, sum[4 * j + 3]);
    }
}

template <int N, int PARTS>
FM_DEVICE void add_stage(float (&sum)[N / 2], const float (&part)[N / 2], const float *x_scale,
                         const fp8_factors<PARTS> &f, int step)
{
    const float upper = __shfl_sync(FM_WARP, f.here[0], step % 32);
    const float lower = PARTS == 1 ? upper : __shfl_sync(FM_WARP, f.here[PARTS - 1], step % 32);
    add_part<N>(sum, part, x_scale, upper, lower);
}

/* --- all stages of a task ------------------------------------------------------ */

template <class S, bool GATED, int N> struct fp8_sums {
    enum { PARTS = GATED ? 2 : 1 };
    float              sum[S::TILES][N / 2];
    fp8_factors<PARTS> factor[S::TILES];
};

template <class S, bool GATED, int N>
FM_DEVICE void sums_begin(fp8_sums<S, GATED, N> &c, const fm_cuda_fp8_args &a, const fp8_task &task,
                          int n_step)
{
    const int row0 = task.row0 / c.PARTS;
#pragma unroll
    for (int t = 0; t < S::TILES; t++) {
        factors_begin(c.factor[t], a, task.expert, row0 + warp_row<S, GATED>(t), n_step);
#pragma unroll
        for (int i = 0; i < N / 2; i++) c.sum[t][i] = 0;
    }
}

template <class S, bool GATED, int N>
FM_DEVICE void multiply_stage(fp8_sums<S, GATED, N> &c, const fp8_ring<S> &r,
                              const fm_cuda_fp8_args &a, int step, int n_step)
{
    const uint8_t *stage   = stage_of<S>(r);
    const float   *x_scale = pair_scales<S>(r, r.slot);
#pragma unroll
    for (int t = 0; t < S::TILES; t++) {
        float part[N / 2];
        start_part<N>(part, tile_of<S, GATED>(stage, t), pairs_of<S>(r, stage));
        factors_need(c.factor[t], a, step, n_step);
        fm_wgmma_wait<0>();
        fm_wgmma_hold(part);
        add_stage<N>(c.sum[t], part, x_scale, c.factor[t], step);
    }
}

template <class S, bool GATED, int N>
FM_DEVICE void multiply_plain(fp8_sums<S, GATED, N> &c, fp8_ring<S> &r, const fm_cuda_fp8_args &a,
                              int n_step)
{
    for (int step = 0; step < n_step; step++, ring_on<S>(r)) {
        wait_for_stage<S>(r);
        multiply_stage<S, GATED, N>(c, r, a, step, n_step);
        ring_release<S>(r, r.slot);
    }
}

/* Few columns: the products of the next stage run while this one's are added. */
template <class S, bool GATED, int N>
FM_DEVICE void start_next(float (&part)[S::TILES][N / 2], fp8_ring<S> &r)
{
    const uint8_t *stage = stage_of<S>(r);
    wait_for_stage<S>(r);
#pragma unroll
    for (int t = 0; t < S::TILES; t++)
        start_part<N>(part[t], tile_of<S, GATED>(stage, t), pairs_of<S>(r, stage));
    ring_on<S>(r);
}

/* The older of two stages that run. */
template <class S, bool GATED, int N>
FM_DEVICE void finish_stage(fp8_sums<S, GATED, N> &c, float (&part)[S::TILES][N / 2],
                            const fp8_ring<S> &r, const fm_cuda_fp8_args &a, int slot, int step,
                            int n_step)
{
#pragma unroll
    for (int t = 0; t < S::TILES; t++) {
        fm_wgmma_hold(part[t]);
        factors_need(c.factor[t], a, step, n_step);
        add_stage<N>(c.sum[t], part[t], pair_scales<S>(r, slot), c.factor[t], step);
    }
    ring_release<S>(r, slot);
}

template <class S> FM_DEVICE int slot_before(int slot)
{
    return slot == 0 ? S::STAGES - 1 : slot - 1;
}

/* part[0] has the products of even stages, part[1] of odd ones. */
template <class S, bool GATED, int N>
FM_DEVICE void multiply_ahead(fp8_sums<S, GATED, N> &c, fp8_ring<S> &r, const fm_cuda_fp8_args &a,
                              int n_step)
{
    float even[S::TILES][N / 2], odd[S::TILES][N / 2];
    int   step = 0;
    start_next<S, GATED, N>(even, r);
    for (; step + 2 < n_step; step += 2) {
        start_next<S, GATED, N>(odd, r);
        fm_wgmma_wait<S::TILES>();
        finish_stage<S, GATED, N>(c, even, r, a, slot_before<S>(slot_before<S>(r.slot)), step,
                                  n_step);
        start_next<S, GATED, N>(even, r);
        fm_wgmma_wait<S::TILES>();
        finish_stage<S, GATED, N>(c, odd, r, a, slot_before<S>(slot_before<S>(r.slot)), step + 1,
                                  n_step);
    }
    if (step + 1 < n_step) {
        start_next<S, GATED, N>(odd, r);
        fm_wgmma_wait<0>();
        finish_stage<S, GATED, N>(c, even, r, a, slot_before<S>(slot_before<S>(r.slot)), step,
                                  n_step);
        finish_stage<S, GATED, N>(c, odd, r, a, slot_before<S>(r.slot), step + 1, n_step);
    } else {
        fm_wgmma_wait<0>();
        finish_stage<S, GATED, N>(c, even, r, a, slot_before<S>(r.slot), step, n_step);
    }
}

/* --- results ------------------------------------------------------------------ */

/* Two neighbouring outputs of one pair. */
FM_DEVICE void store_pair(const fm_cuda_fp8_args &a, int64_t pair, int row, float2 v)
{
    if (row >= a.n) return;
    if (a.out == FM_CUDA_FP8_BF16)
        *(uint32_t *)((uint16_t *)a.y + pair * a.ldy + row) = fm_bf16x2_of_f32(v.x, v.y);
    else
        *(float2 *)((float *)a.y + pair * a.ldy + row) = v;
}

FM_DEVICE void store_eight(const fm_cuda_fp8_args &a, const float *d, int64_t pair, bool in,
                           int row)
{
    float2 two[2];
    fm__pair_rows(two, d);
    if (!in) return;
    store_pair(a, pair, row + fm__pair_row(), two[0]);
    store_pair(a, pair, row + fm__pair_row() + 8, two[1]);
}

FM_DEVICE void store_gated(const fm_cuda_fp8_args &a, const float *d, int64_t pair, bool in,
                           int row)
{
    const float y[4]    = {fm__gated(d[0], d[2]), fm__gated(d[1], d[3]), 0, 0};
    const int   channel = row + fm__pair_row();
    float2      two[2];
    fm__pair_rows(two, y);
    if (in && channel < a.n / 2)
        *(uint32_t *)((uint16_t *)a.y + pair * a.ldy + channel) =
            fm_bf16x2_of_f32(two[0].x, two[0].y);
}

template <class S, bool GATED, int N>
FM_DEVICE void store_sums(const fm_cuda_fp8_args &a, const fp8_task &task,
                          const fp8_sums<S, GATED, N> &c)
{
#pragma unroll
    for (int t = 0; t < S::TILES; t++) {
        const int row = task.row0 / c.PARTS + warp_row<S, GATED>(t);
#pragma unroll
        for (int j = 0; j < N / 8; j++) {
            const int  token = 8 * j + fm__pair_token();
            const bool in    = token < task.n_pair;
            if (GATED)
                store_gated(a, c.sum[t] + 4 * j, task.pair0 + token, in, row);
            else
                store_eight(a, c.sum[t] + 4 * j, task.pair0 + token, in, row);
        }
    }
}

template <class S, bool GATED, int N>
FM_DEVICE void run_task(fp8_ring<S> &r, const fm_cuda_fp8_args &a, const fp8_task &task)
{
    const int             n_step = count_steps(a);
    fp8_sums<S, GATED, N> c;
    sums_begin<S, GATED, N>(c, a, task, n_step);
    if constexpr (N * S::TILES <= (S::ALONE ? 32 : 64))
        multiply_ahead<S, GATED, N>(c, r, a, n_step);
    else
        multiply_plain<S, GATED, N>(c, r, a, n_step);
    store_sums<S, GATED, N>(a, task, c);
}

/* The narrowest product that has room for a task's pairs. */
template <class S, bool GATED, int N, int... MORE>
FM_DEVICE void run_width(fp8_ring<S> &r, const fm_cuda_fp8_args &a, const fp8_task &task)
{
    if constexpr (N >= S::NT || sizeof...(MORE) == 0)
        run_task<S, GATED, (int)S::NT>(r, a, task);
    else if (task.n_pair <= N)
        run_task<S, GATED, N>(r, a, task);
    else
        run_width<S, GATED, MORE...>(r, a, task);
}

template <class S, bool GATED>
FM_DEVICE void multiply_tasks(fp8_ring<S> r, const fm_cuda_fp8_args &a, int n_block)
{
    const int n_task = count_tasks<S>(a, n_block);
    for (task_walk walk = walk_begin<S>(); walk.first < n_task; walk_on(walk)) {
        if (walk_task(walk) >= n_task) continue;
        const fp8_task task = task_at<S>(a, walk_task(walk), n_block);
        run_width<S, GATED, S::NT <= 64 ? S::NT : 64, 96, 128, 144, 160, 192>(r, a, task);
    }
}

#endif
