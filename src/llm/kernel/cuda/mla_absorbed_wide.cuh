/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads by wgmma: a thread block takes 64 heads of one
 * part after the other.  Two warpgroups take turns with the blocks of 64 keys:
 *
 *     warpgroup 0   scores of block 0, weights ──┐ both: z = z * alpha + weights 0 * values 0
 *     warpgroup 1   scores of block 1, weights <─┘ both: z = z * alpha + weights 1 * values 1
 *     warpgroup 0   scores of block 2, ...
 *
 * Each has 256 of the columns of z in registers, for all blocks, and while one
 * exponentiates, the other multiplies.  A block's stage is used up soon after its
 * scores, and other warps fill it again.
 *
 * The steps of a head are those of 16 heads through the ring: the same bits. */
#ifndef FM_LLM_KERNEL_CUDA_MLA_ABSORBED_WIDE_CUH
#define FM_LLM_KERNEL_CUDA_MLA_ABSORBED_WIDE_CUH

#include "llm/kernel/cuda/mla_absorbed_feed.cuh"

enum { WG_COLUMNS = FM_MLA_LATENT_MAX / 2 };

/* A thread of a warpgroup: its heads are head and head + 8. */
struct wide_place {
    int group, thread, lane, head;
};

/* A part: which of its blocks it is, the number of that in the thread block's work, and
 * the maxima of all before it. */
struct wide_part {
    float max[2];
    int   item, n;
    bool  is_last;
};

FM_DEVICE int stage_at(int n) { return n & 1; }

FM_DEVICE unsigned char *weights_of(const wide_layout &m, int stage)
{
    return stage_of(m, stage) + (ROW_TILES - 1) * TILE;
}

/* Even and odd steps of q k, as the thirds of the stage arrive; asynchronous. */
FM_DEVICE void begin_scores(float (&even)[KEYS / 2], float (&odd)[KEYS / 2], const wide_layout &m,
                            int stage, int phase)
{
    const fm_tile a = fm_tile_by_row(m.q), b = fm_tile_by_row(stage_of(m, stage));
#pragma unroll
    for (int third = 0; third < THIRDS; third++) {
        fm_mbarrier_wait(&m.full[stage * THIRDS + third], phase);
        fm_wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4 * THIRD_TILES; i++) {
            const int k = third * 4 * THIRD_TILES + i, at = k / 4 * TILE + k % 4 * 32;
            if (k % 2) fm_wgmma_ss<KEYS>(odd, fm_tile_at(a, at), fm_tile_at(b, at), k > 1);
            else       fm_wgmma_ss<KEYS>(even, fm_tile_at(a, at), fm_tile_at(b, at), k > 1);
        }
    }
    fm_wgmma_commit();
}

/* Scales of the keys, none for keys that are not there. */
template <class S>
FM_DEVICE void mask_wide(float (&s)[KEYS / 2], const float *key_scale, int lane, int n_key)
{
    if (!S::bytes && n_key >= KEYS) return;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = j * 8 + lane % 4 * 2 + (i & 1);
            float    &x   = s[4 * j + i];
            if (S::bytes) x *= key_scale[key];
            if (key >= n_key) x = -INFINITY;
        }
}

/* Scores to powers of two in place.  alpha: the factor for what was summed before. */
FM_DEVICE void raise_scores(float (&s)[KEYS / 2], float max[2], float alpha[2], float scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float peak = -INFINITY;
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)
            peak = fmaxf(peak, fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]));
        const float most = fmaxf(max[r], fm__quad_max(peak));
        alpha[r]         = fm_exp2_fast((max[r] - most) * scale);
        max[r]           = most;
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float &x = s[4 * j + 2 * r + i];
                x        = fm_exp2_fast(fmaf(x, scale, -most * scale));
            }
    }
}

FM_DEVICE float add_pair(float sum, float alpha, const float *pair)
{
    return fmaf(sum, alpha, pair[0] + pair[1]);
}

/* The thread's sums go on from what the other warpgroup left; the sum over all
 * keys is taken with the last block. */
FM_DEVICE void add_weights(const wide_layout &m, const wide_place &w, const wide_part &p,
                           const float (&s)[KEYS / 2], const float alpha[2], float total[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        total[r] = 0;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4      *at = m.sum + (2 * r + h) * GROUP + w.thread;
            const float *of = s + 16 * h + 2 * r;
            float4       x  = p.item > 0 ? *at : make_float4(0, 0, 0, 0);
            x = make_float4(add_pair(x.x, alpha[r], of), add_pair(x.y, alpha[r], of + 4),
                            add_pair(x.z, alpha[r], of + 8), add_pair(x.w, alpha[r], of + 12));
            *at = x;
            if (!p.is_last) continue;
            total[r] += fm__quad_sum(x.x), total[r] += fm__quad_sum(x.y);
            total[r] += fm__quad_sum(x.z), total[r] += fm__quad_sum(x.w);
        }
    }
}

template <class S>
FM_DEVICE void round_weights(uint32_t (&p)[KEYS / 16][4], const float (&s)[KEYS / 2],
                             const float *key_scale, int lane)
{
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float x = s[4 * j + 2 * r], y = s[4 * j + 2 * r + 1];
            if (S::bytes) x *= key_scale[j * 8 + lane % 4 * 2];
            if (S::bytes) y *= key_scale[j * 8 + lane % 4 * 2 + 1];
            p[j / 2][j % 2 * 2 + r] = fm_bf16x2_of_f32(x, y);
        }
}

/* For the other warpgroup; this one's warps no longer read the tile. */
FM_DEVICE void store_weights(unsigned char *to, const uint32_t (&p)[KEYS / 16][4],
                             const wide_place &w)
{
    fm_barrier(OWN + w.group, GROUP);
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        fm_stmatrix_x4(fm__chunk(to, 128, w.thread / 32 * 16 + w.lane % 16, 2 * k + w.lane / 16),
                       p[k]);
}

/* Sums shrink, unless no head's do. */
FM_DEVICE void shrink(float (&z)[WG_COLUMNS / 2], const float alpha[2])
{
    if (!__any_sync(FM_WARP, alpha[0] != 1 || alpha[1] != 1)) return;
#pragma unroll
    for (int i = 0; i < WG_COLUMNS / 2; i++) z[i] *= alpha[i >> 1 & 1];
}

FM_DEVICE fm_tile values_of(const wide_layout &m, int stage, int group)
{
    return fm_tile_by_k(stage_of(m, stage) + group * (WG_COLUMNS / 64) * TILE, TILE);
}

/* z += weights * values with the weights of the other warpgroup, or of this one.  A
 * part's first block overwrites what is there. */
FM_DEVICE void begin_values_of_other(float (&z)[WG_COLUMNS / 2], const wide_layout &m, int stage,
                                     int group, bool add)
{
    const fm_tile a = fm_tile_by_row(weights_of(m, stage)), v = values_of(m, stage, group);
    fm_wgmma_fence();
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        fm_wgmma_ss<WG_COLUMNS, 1>(z, fm_tile_at(a, k * 32), fm_tile_at(v, k * 2048), k > 0 || add);
    fm_wgmma_commit();
}

FM_DEVICE void add_values_wide(float (&z)[WG_COLUMNS / 2], const uint32_t (&p)[KEYS / 16][4],
                               const wide_layout &m, int stage, bool add)
{
    const fm_tile v = values_of(m, stage, stage);
    fm_wgmma_fence();
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        fm_wgmma_rs<WG_COLUMNS, 1>(z, p[k], fm_tile_at(v, k * 2048), k > 0 || add);
    fm_wgmma_commit();
    fm_wgmma_wait<0>();
    fm_wgmma_hold(z);
}

/* A block of the other warpgroup: its weights are awaited, its values added. */
FM_DEVICE void begin_other(const fm_mla_absorbed_args &a, const wide_layout &m, const wide_place &w,
                           wide_part &p, float (&z)[WG_COLUMNS / 2])
{
    const int stage = 1 - w.group;
    float     alpha[2];
    fm_barrier(DONE + stage, USERS);
#pragma unroll
    for (int third = 0; third < THIRDS; third++) /* it was; now for this warp, too */
        fm_mbarrier_wait(&m.full[stage * THIRDS + third], phase_of(p.n));
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float most = m.max[stage * WIDE_HEADS + w.head + 8 * r];
        alpha[r]         = fm_exp2_fast((p.max[r] - most) * (a.scale * fm__log2_e));
        p.max[r]         = most;
    }
    if (p.item > 0) shrink(z, alpha);
    begin_values_of_other(z, m, stage, w.group, p.item > 0);
}

/* What the other warpgroup will want of this block, beside the weights.  It is there when
 * the warps of this one meet, before they say that the block is done. */
FM_DEVICE void leave_maxima(const wide_layout &m, const wide_place &w, const wide_part &p,
                            const float total[2])
{
    if (w.lane % 4) return;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        m.max[w.group * WIDE_HEADS + w.head + 8 * r] = p.max[r];
        if (p.is_last) m.total[w.group * WIDE_HEADS + w.head + 8 * r] = total[r];
    }
}

/* Scores in s to weights, and these times values. */
template <class S>
FM_DEVICE void end_own(const fm_mla_absorbed_args &a, const wide_layout &m, const wide_place &w,
                       wide_part &p, float (&s)[KEYS / 2], float (&z)[WG_COLUMNS / 2],
                       float total[2])
{
    const float *key_scale = m.key_scale + w.group * KEYS;
    float        alpha[2];
    uint32_t     weight[KEYS / 16][4];
    raise_scores(s, p.max, alpha, a.scale * fm__log2_e);
    add_weights(m, w, p, s, alpha, total);
    round_weights<S>(weight, s, key_scale, w.lane);
    leave_maxima(m, w, p, total);
    store_weights(weights_of(m, w.group), weight, w);
    fm_tile_fence();
    fm_barrier_arrive(DONE + w.group, USERS);
    if (p.item > 0) shrink(z, alpha);
    add_values_wide(z, weight, m, w.group, p.item > 0);
}

/* The warp has done with a stage, or with queries. */
FM_DEVICE void tell_empty(fm_mbarrier *empty, const wide_place &w)
{
    __syncwarp();
    if (w.lane == 0) fm_mbarrier_arrive(empty);
}

/* Boxes bring what lies behind the last key: as values these must be zeros. */
FM_DEVICE void clear_behind(unsigned char *stage, const wide_place &w, int n_key)
{
    const int chunks = FM_MLA_LATENT_MAX / 8;
    for (int i = w.thread; i < (KEYS - n_key) * chunks; i += GROUP)
        *(uint4 *)(stage + i / 8 % (chunks / 8) * TILE + (n_key + i / chunks) * 128 + i % 8 * 16) =
            make_uint4(0, 0, 0, 0);
    fm_tile_fence();
}

/* Until the values of the other's block are in z; the stage is free for our part. */
template <int N> FM_DEVICE void end_other(const wide_layout &m, const wide_place &w)
{
    fm_wgmma_wait<N>();
    tell_empty(&m.empty[1 - w.group], w);
}

/* A block of this warpgroup.  q_empty: where to tell that these were its last scores. */
template <class S>
FM_DEVICE void add_own(const fm_mla_absorbed_args &a, const wide_layout &m, const wide_place &w,
                       wide_part &p, int n_key, fm_mbarrier *q_empty, float (&z)[WG_COLUMNS / 2],
                       float total[2])
{
    float s[KEYS / 2], odd[KEYS / 2];
    begin_scores(s, odd, m, w.group, phase_of(p.n));
    if (p.item > 0) end_other<1>(m, w);
    fm_wgmma_wait<0>();
    fm_wgmma_hold(s);
    fm_wgmma_hold(odd);
    fm_wgmma_hold(z);
    if (q_empty) tell_empty(q_empty, w);
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) s[i] += odd[i];
    mask_wide<S>(s, m.key_scale + w.group * KEYS, w.lane, n_key);
    if (S::boxes && n_key < KEYS) clear_behind(stage_of(m, w.group), w, n_key);
    end_own<S>(a, m, w, p, s, z, total);
    tell_empty(&m.empty[w.group], w);
}

/* All blocks of one part, of which the first is number n of this thread block's work. */
template <class S>
FM_DEVICE void run_part(const fm_mla_absorbed_args &a, const wide_layout &m, const wide_place &w,
                        const cursor &at, int n, bool ends_queries, float (&z)[WG_COLUMNS / 2],
                        float max[2], float total[2])
{
    const int    n_item = (at.n_key + KEYS - 1) / KEYS, first = stage_at(n) ^ w.group;
    fm_mbarrier *q_empty = ends_queries ? &m.q_empty[stage_at(n + n_item)] : NULL;
    wide_part    p       = {{-INFINITY, -INFINITY}, 0, n, false};
    if (first >= n_item && q_empty) tell_empty(q_empty, w);
    for (int i = first; i < n_item; i += 2) {
        if (i > 0) {
            p.item = i - 1, p.n = n + i - 1;
            begin_other(a, m, w, p, z);
        }
        p.item = i, p.n = n + i;
        p.is_last = i == n_item - 1;
        add_own<S>(a, m, w, p, at.n_key - i * KEYS, i + 2 < n_item ? NULL : q_empty, z, total);
    }
    if (!p.is_last) {
        p.item = n_item - 1, p.n = n + n_item - 1;
        begin_other(a, m, w, p, z);
        end_other<0>(m, w);
        total[0] = m.total[(1 - w.group) * WIDE_HEADS + w.head];
        total[1] = m.total[(1 - w.group) * WIDE_HEADS + w.head + 8];
    }
    fm_wgmma_wait<0>();
    fm_wgmma_hold(z);
    max[0] = p.max[0], max[1] = p.max[1];
}

/* Of two lanes the lower gets both x, the upper both y. */
FM_DEVICE void turn_pair(float &x, float &y, int lanes)
{
    const bool  upper = threadIdx.x & lanes;
    const float got   = fm_shfl_xor(upper ? x : y, lanes);
    if (upper) x = got;
    else       y = got;
}

/* Of four lanes, lane t gets z[4t] of all. */
FM_DEVICE float4 turn_quad(const float *z)
{
    float4 x = make_float4(z[0], z[4], z[8], z[12]);
    turn_pair(x.x, x.y, 1);
    turn_pair(x.z, x.w, 1);
    turn_pair(x.x, x.z, 2);
    turn_pair(x.y, x.w, 2);
    return x;
}

/* Eight neighbouring columns of one head, even and odd: the answer, or a part. */
FM_DEVICE void store_eight(const fm_mla_absorbed_args &a, bool whole, int64_t at, float4 x,
                           float4 y, float f)
{
    if (whole) {
        *(uint4 *)(a.z + at) =
            make_uint4(fm_bf16x2_of_f32(x.x * f, y.x * f), fm_bf16x2_of_f32(x.y * f, y.y * f),
                       fm_bf16x2_of_f32(x.z * f, y.z * f), fm_bf16x2_of_f32(x.w * f, y.w * f));
    } else {
        float4 *to = (float4 *)(a.part_z + at);
        to[0]      = make_float4(x.x, y.x, x.y, y.y);
        to[1]      = make_float4(x.z, y.z, x.w, y.w);
    }
}

FM_DEVICE void end_part(const fm_mla_absorbed_args &a, int unit, int group, const wide_place &w,
                        const cursor &at, const float (&z)[WG_COLUMNS / 2], const float max[2],
                        const float total[2])
{
    const bool whole = is_whole(a.rows, at.unit);
    const int  index = whole ? at.unit.row : unit;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int head = group * WIDE_HEADS + w.head + 8 * r;
        if (w.group == 0 && w.lane % 4 == 0 && head < a.n_head)
            store_sum(a, unit, head, max[r], total[r]);
        const int64_t to = ((int64_t)index * a.n_head + head) * FM_MLA_LATENT_MAX +
                           w.group * WG_COLUMNS + w.lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < WG_COLUMNS / 8; j += 4) {
            const float *x    = z + 4 * j + 2 * r;
            const float4 even = turn_quad(x), odd = turn_quad(x + 1);
            if (head < a.n_head) store_eight(a, whole, to + 8 * j, even, odd, 1.0f / total[r]);
        }
    }
}

/* All of this block's work. */
template <class S> FM_DEVICE void run_users(const fm_mla_absorbed_args &a, const wide_layout &m)
{
    const int        lane = threadIdx.x % 32, thread = threadIdx.x % GROUP;
    const int        group = __shfl_sync(FM_WARP, (int)threadIdx.x / GROUP, 0); /* of all lanes */
    const wide_place w     = {group, thread, lane, thread / 32 * 16 + lane / 4};
    float            z[WG_COLUMNS / 2], max[2], total[2];
    int              n = 0;
    for (wide_walk k = begin_walk(a); k.work < k.end; k.work++) {
        const cursor at = work_at(a, k);
        run_part<S>(a, m, w, at, n, changes_queries(a, k, at), z, max, total);
        end_part(a, k.work % k.n_unit, group_of(k), w, at, z, max, total);
        n += (at.n_key + KEYS - 1) / KEYS;
    }
}

#endif
