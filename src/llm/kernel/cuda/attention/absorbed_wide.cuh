/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads by wgmma: a thread block takes 64 heads of one
 * part after the other.  Of each two blocks of 64 keys a warpgroup scores one, and both
 * add the values of the first, then of the second:
 *
 *     warpgroup 0   scores 0  weights 0  | z += 0             z += 1
 *     warpgroup 1       scores 1         | z += 0, weights 1  z += 1
 *
 * Each has 256 of the columns of z in registers, for all blocks, and while one
 * exponentiates, the other multiplies.  A block's stage is used up with its values,
 * and other warps fill it again.
 *
 * The steps of a head are those of 16 heads through the ring: the same bits. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_WIDE_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_WIDE_CUH

#include "llm/kernel/cuda/attention/absorbed_wide_end.cuh"
#include "llm/kernel/cuda/attention/absorbed_widen.cuh"

FM_DEVICE unsigned char *weights_of(const wide_layout &m, int stage)
{
    return stage_of(m, stage) + (ROW_TILES - 1) * TILE;
}

/* q k, even and odd steps, as the thirds of the stage arrive. */
FM_DEVICE void score_block(float (&s)[KEYS / 2], const wide_layout &m, int stage, int phase)
{
    const fm_tile a = fm_tile_by_row(m.q), b = fm_tile_by_row(stage_of(m, stage));
    float         odd[KEYS / 2];
#pragma unroll
    for (int third = 0; third < THIRDS; third++) {
        fm_mbarrier_wait(&m.full[stage * THIRDS + third], phase);
        fm_wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4 * THIRD_TILES; i++) {
            const int k = third * 4 * THIRD_TILES + i, at = k / 4 * TILE + k % 4 * 32;
            if (k % 2) fm_wgmma_ss<KEYS>(odd, fm_tile_at(a, at), fm_tile_at(b, at), k > 1);
            else       fm_wgmma_ss<KEYS>(s, fm_tile_at(a, at), fm_tile_at(b, at), k > 1);
        }
    }
    fm_wgmma_commit();
    fm_wgmma_wait<0>();
    fm_wgmma_hold(s);
    fm_wgmma_hold(odd);
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) s[i] += odd[i];
}

/* A factor for each of the lane's keys. */
FM_DEVICE void scale_keys(float (&s)[KEYS / 2], const float *key_scale, int lane)
{
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
        const float2 f = *(const float2 *)(key_scale + j * 8 + lane % 4 * 2);
        s[4 * j] *= f.x, s[4 * j + 1] *= f.y, s[4 * j + 2] *= f.x, s[4 * j + 3] *= f.y;
    }
}

/* Keys that are not there have no weight. */
FM_DEVICE void mask_keys(float (&s)[KEYS / 2], int lane, int n_key)
{
    if (n_key >= KEYS) return;
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++)
        if (i / 4 * 8 + lane % 4 * 2 + (i & 1) >= n_key) s[i] = -INFINITY;
}

/* The largest score of each head among the block's keys. */
FM_DEVICE void find_peaks(const float (&s)[KEYS / 2], float peak[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float most = -INFINITY;
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)
            most = fmaxf(most, fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]));
        peak[r] = fm__quad_max(most);
    }
}

/* Maxima rise to `to`, or lag.  alpha: the factors for what was summed before. */
FM_DEVICE void raise_maxima(float max[2], const float to[2], float alpha[2], float scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float most = raise_max(max[r], to[r], scale);
        alpha[r]         = fm_exp2_fast((max[r] - most) * scale);
        max[r]           = most;
    }
}

/* Scores to powers of two in place. */
FM_DEVICE void raise_scores(float (&s)[KEYS / 2], const float max[2], float scale)
{
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) {
        const float most = max[i >> 1 & 1];
        s[i]             = fm_exp2_fast(fmaf(s[i], scale, -most * scale));
    }
}

FM_DEVICE float add_pair(float sum, float alpha, const float *pair)
{
    return fmaf(sum, alpha, pair[0] + pair[1]);
}

/* The thread's sums go on from what the other warpgroup left; the sum over all
 * keys is taken with the last block. */
FM_DEVICE void add_weights(const wide_layout &m, const wide_place &w, bool is_first, bool is_last,
                           const float (&s)[KEYS / 2], const float alpha[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float total = 0;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4      *at = m.sum + (2 * r + h) * GROUP + w.thread;
            const float *of = s + 16 * h + 2 * r;
            float4       x  = is_first ? make_float4(0, 0, 0, 0) : *at;
            x = make_float4(add_pair(x.x, alpha[r], of), add_pair(x.y, alpha[r], of + 4),
                            add_pair(x.z, alpha[r], of + 8), add_pair(x.w, alpha[r], of + 12));
            *at = x;
            if (!is_last) continue;
            total += fm__quad_sum(x.x), total += fm__quad_sum(x.y);
            total += fm__quad_sum(x.z), total += fm__quad_sum(x.w);
        }
        if (is_last && w.lane % 4 == 0) m.total[w.group * WIDE_HEADS + w.head + 8 * r] = total;
    }
}

template <class S>
FM_DEVICE void round_weights(uint32_t (&p)[KEYS / 16][4], const float (&s)[KEYS / 2],
                             const float *key_scale, int lane)
{
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
        const float2 f = S::bytes ? *(const float2 *)(key_scale + j * 8 + lane % 4 * 2)
                                  : make_float2(1, 1);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float x = s[4 * j + 2 * r], y = s[4 * j + 2 * r + 1];
            if (S::bytes) x *= f.x, y *= f.y;
            p[j / 2][j % 2 * 2 + r] = fm_bf16x2_of_f32(x, y);
        }
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
    fm_tile_fence();
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

/* z += weights * values with the weights of the other warpgroup, or of this one;
 * asynchronous.  A part's first block overwrites what is there. */
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

FM_DEVICE void begin_values(float (&z)[WG_COLUMNS / 2], const uint32_t (&p)[KEYS / 16][4],
                            const wide_layout &m, int stage, bool add)
{
    const fm_tile v = values_of(m, stage, stage);
    fm_wgmma_fence();
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        fm_wgmma_rs<WG_COLUMNS, 1>(z, p[k], fm_tile_at(v, k * 2048), k > 0 || add);
    fm_wgmma_commit();
}

/* A block and the queries that came with it are there for this warp, too. */
FM_DEVICE void await_block(const wide_layout &m, int stage, int phase)
{
#pragma unroll
    for (int third = 0; third < THIRDS; third++)
        fm_mbarrier_wait(&m.full[stage * THIRDS + third], phase);
}

/* Seen by the other warpgroup when the block is done. */
FM_DEVICE void leave_maxima(const wide_layout &m, const wide_place &w, const float max[2])
{
    if (w.lane % 4) return;
#pragma unroll
    for (int r = 0; r < 2; r++) m.max[w.group * WIDE_HEADS + w.head + 8 * r] = max[r];
}

/* Those that the other has left with its block. */
FM_DEVICE void take_maxima(const wide_layout &m, const wide_place &w, float max[2], float alpha[2],
                           float scale)
{
    const float *from = m.max + (1 - w.group) * WIDE_HEADS + w.head;
    const float  to[] = {from[0], from[8]};
    raise_maxima(max, to, alpha, scale);
}

/* The warp has done with queries, or with a stage. */
FM_DEVICE void tell_q_empty(fm_mbarrier *empty, const wide_place &w)
{
    __syncwarp();
    if (w.lane == 0) fm_mbarrier_arrive(empty);
}

template <class S> FM_DEVICE void tell_empty(fm_mbarrier *empty, const wide_place &w)
{
    __syncwarp();
    if (S::blocks == 1 && w.lane == 0) fm_mbarrier_arrive(empty);
    if (S::blocks > 1 && w.lane < S::blocks) fm_mbarrier_arrive_at(empty, w.lane);
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

/* --- the turns ----------------------------------------------------------------------- */

/* What a warpgroup knows of a part. */
struct wide_turn {
    int          n_key, n_item, n; /* n: number of its first block */
    fm_mbarrier *q_empty;          /* barrier for the last scores with its queries, or NULL */
    float        scale;            /* of scores to powers of two */
    float        max[2];
};

/* Scores of this warpgroup's item i. */
template <class S>
FM_DEVICE void score_own(const wide_layout &m, const wide_place &w, const wide_turn &t, int i,
                         float (&s)[KEYS / 2])
{
    const int n_key = t.n_key - i * KEYS;
    if (S::boxes && S::bytes) widen_block(m, w.group, phase_of(t.n + i), w.thread / 32);
    score_block(s, m, w.group, phase_of(t.n + i));
    if (t.q_empty && i + 2 >= t.n_item) tell_q_empty(t.q_empty, w);
    if (S::bytes) scale_keys(s, m.key_scale + w.group * KEYS, w.lane);
    mask_keys(s, w.lane, n_key);
    if (S::boxes && n_key < KEYS) clear_behind(stage_of(m, w.group), w, n_key);
}

/* Its weights, for both warpgroups.  alpha: the factors for what was summed before. */
template <class S>
FM_DEVICE void weigh_own(const wide_layout &m, const wide_place &w, wide_turn &t,
                         float (&s)[KEYS / 2], uint32_t (&weight)[KEYS / 16][4], float alpha[2])
{
    float peak[2];
    find_peaks(s, peak);
    raise_maxima(t.max, peak, alpha, t.scale);
    leave_maxima(m, w, t.max);
    raise_scores(s, t.max, t.scale);
    round_weights<S>(weight, s, m.key_scale + w.group * KEYS, w.lane);
    store_weights(weights_of(m, w.group), weight, w);
    fm_barrier_arrive(DONE + w.group, USERS);
}

/* Sums go on while values are multiplied. */
FM_DEVICE void sum_own(const wide_layout &m, const wide_place &w, const wide_turn &t, int i,
                       const float (&s)[KEYS / 2], const float alpha[2])
{
    add_weights(m, w, i == 0, i == t.n_item - 1, s, alpha);
    fm_barrier_arrive(SUMMED + w.group, USERS);
}

/* The other warpgroup's item i, as soon as its weights are in shared memory. */
FM_DEVICE void begin_other(const wide_layout &m, const wide_place &w, wide_turn &t, int i,
                           float (&z)[WG_COLUMNS / 2])
{
    const int stage = 1 - w.group;
    float     alpha[2];
    fm_barrier(DONE + stage, USERS);
    take_maxima(m, w, t.max, alpha, t.scale);
    if (i > 0) shrink(z, alpha);
    begin_values_of_other(z, m, stage, w.group, i > 0);
}

/* Waits until the values of a stage, if there are any, are summed into z; the stage is then
 * free. */
template <class S>
FM_DEVICE void end_values(const wide_layout &m, const wide_place &w, int stage, bool there,
                          float (&z)[WG_COLUMNS / 2])
{
    fm_wgmma_wait<0>();
    fm_wgmma_hold(z);
    if (there) tell_empty<S>(&m.empty[stage], w);
}

/* Warpgroup 0: item i of its own, if that is there, and i + 1. */
template <class S>
FM_DEVICE void add_even_first(const wide_layout &m, const wide_place &w, wide_turn &t, int i,
                              float (&z)[WG_COLUMNS / 2])
{
    if (i >= 0) {
        float    s[KEYS / 2], alpha[2];
        uint32_t weight[KEYS / 16][4];
        score_own<S>(m, w, t, i, s);
        weigh_own<S>(m, w, t, s, weight, alpha);
        if (i > 0) shrink(z, alpha);
        begin_values(z, weight, m, 0, i > 0);
        sum_own(m, w, t, i, s, alpha);
        end_values<S>(m, w, 0, true, z);
    }
    if (i + 1 < t.n_item) {
        await_block(m, 1, phase_of(t.n + i + 1));
        begin_other(m, w, t, i + 1, z);
        end_values<S>(m, w, 1, true, z);
        fm_barrier(SUMMED + 1, USERS);
    }
}

/* Warpgroup 1: item i of the other, if that is there, and i + 1 of its own, whose scores
 * do not wait for that. */
template <class S>
FM_DEVICE void add_odd_second(const wide_layout &m, const wide_place &w, wide_turn &t, int i,
                              float (&z)[WG_COLUMNS / 2])
{
    const bool there = i >= 0;
    if (there) await_block(m, 0, phase_of(t.n + i));
    if (i + 1 < t.n_item) {
        float    s[KEYS / 2], alpha[2];
        uint32_t weight[KEYS / 16][4];
        score_own<S>(m, w, t, i + 1, s);
        if (there) begin_other(m, w, t, i, z);
        weigh_own<S>(m, w, t, s, weight, alpha);
        end_values<S>(m, w, 0, there, z);
        if (there) shrink(z, alpha);
        begin_values(z, weight, m, 1, there);
        if (there) fm_barrier(SUMMED, USERS);
        sum_own(m, w, t, i + 1, s, alpha);
        end_values<S>(m, w, 1, true, z);
    } else {
        begin_other(m, w, t, i, z);
        end_values<S>(m, w, 0, true, z);
        fm_barrier(SUMMED, USERS);
    }
}

/* All blocks of one part, of which the first is number n of this thread block's work. */
template <class S, int WARPGROUP>
FM_DEVICE void run_part(const fm_mla_absorbed_args &a, const wide_layout &m, const wide_place &w,
                        const cursor &at, int n, bool ends_queries, float (&z)[WG_COLUMNS / 2],
                        float max[2], float total[2])
{
    const int    n_item  = (at.n_key + KEYS - 1) / KEYS, last = stage_at(n + n_item - 1);
    fm_mbarrier *q_empty = ends_queries ? &m.q_empty[stage_at(n + n_item)] : NULL;
    wide_turn    t       = {at.n_key, n_item, n, q_empty, a.scale * fm__log2_e,
                            {-INFINITY, -INFINITY}};
    if ((stage_at(n) ^ WARPGROUP) >= n_item && q_empty) tell_q_empty(q_empty, w);
    for (int i = -stage_at(n); i < n_item; i += 2) {
        if (WARPGROUP == 0) add_even_first<S>(m, w, t, i, z);
        else                add_odd_second<S>(m, w, t, i, z);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        max[r]   = t.max[r];
        total[r] = m.total[last * WIDE_HEADS + w.head + 8 * r];
    }
}

/* --- z to memory ---------------------------------------------------------------------- */

/* All of this block's work. */
template <class S, int WARPGROUP>
FM_DEVICE void run_users(const fm_mla_absorbed_args &a, const wide_layout &m)
{
    const int        lane = threadIdx.x % 32, thread = threadIdx.x % GROUP;
    const wide_place w    = {WARPGROUP, thread, lane, thread / 32 * 16 + lane / 4};
    float            z[WG_COLUMNS / 2], max[2], total[2];
    int              n = 0;
    for (wide_walk k = begin_walk<S>(a); k.work < k.end; k.work++) {
        const cursor at = work_at(a, k);
        run_part<S, WARPGROUP>(a, m, w, at, n, changes_queries(a, k, at), z, max, total);
        end_part(a, k.work % k.n_unit, group_of<S>(k), w, at, z, max, total);
        n += (at.n_key + KEYS - 1) / KEYS;
    }
}

#endif
