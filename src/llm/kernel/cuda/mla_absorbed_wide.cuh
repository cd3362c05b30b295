/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads by wgmma: a block takes 64 heads of one part
 * after the other with two warpgroups.
 *
 *     scores    [64, 64]: a warpgroup has 32 of the keys
 *     weights   bf16 in shared memory, their maximum agreed on by both
 *     z         [64, 512] in registers: a warpgroup has 256 of the columns
 *
 * The steps of a head are those of 16 heads through the ring: the same bits. */
#ifndef FM_LLM_KERNEL_CUDA_MLA_ABSORBED_WIDE_CUH
#define FM_LLM_KERNEL_CUDA_MLA_ABSORBED_WIDE_CUH

#include "llm/kernel/cuda/mla_absorbed.cuh"
#include "llm/kernel/cuda/wgmma.cuh"

enum {
    WIDE_HEADS = 64,
    TILE       = 64 * 128, /* bytes: 64 rows, 64 columns */
    ROW_TILES  = FM_MLA_WIDTH_MAX / 64,
    WG_KEYS    = KEYS / 2, /* of a warpgroup */
    EIGHTS     = WG_KEYS / 8,
    WG_COLUMNS = FM_MLA_LATENT_MAX / 2,
};

template <bool E4M3> struct wide_shape {
    static const bool fixed  = true;
    static const bool bytes  = E4M3;
    static const bool tiled  = true;
    static const int  heads  = WIDE_HEADS;
    static const int  stages = 2;
};

template <class S> struct wide_layout {
    unsigned char *q, *ring, *tile, *weight; /* tiles begin at multiples of 1024 */
    float         *peak, *key_scale;         /* [2][64], e4m3: [64] */
    int            row_bytes, stage_bytes;

    __host__ __device__ explicit wide_layout(unsigned char *base)
    {
        row_bytes   = FM_MLA_WIDTH_MAX * 2;
        stage_bytes = ROW_TILES * TILE / (S::bytes ? 2 : 1);
        q           = base;
        ring        = q + ROW_TILES * TILE;
        tile        = ring + S::stages * stage_bytes;
        weight      = tile + (S::bytes ? ROW_TILES * TILE : 0);
        peak        = (float *)(weight + TILE);
        key_scale   = peak + 2 * WIDE_HEADS;
    }

    __host__ __device__ unsigned char *end() const
    {
        return (unsigned char *)(key_scale + (S::bytes ? KEYS : 0));
    }
};

/* The warp's rows of its warpgroup: heads head and head + 8, over the keys so far. */
struct wide_sums {
    float max[2], sum[2][EIGHTS];
};

FM_DEVICE int group_of(const place &u) { return u.warp / 4; }

FM_DEVICE int head_of(const place &u) { return u.warp % 4 * 16 + u.lane / 4; }

/* Even and odd steps of q k, of 64 heads and the warpgroup's keys; asynchronous. */
FM_DEVICE void begin_scores(float (&even)[WG_KEYS / 2], float (&odd)[WG_KEYS / 2],
                            unsigned char *q, unsigned char *keys, const place &u)
{
    const fm_tile a = fm_tile_by_row(q);
    const fm_tile b = fm_tile_by_row(keys + group_of(u) * WG_KEYS * 128);
    fm_wgmma_fence();
#pragma unroll
    for (int k = 0; k < 2 * STEPS; k++) {
        const int at = k / 4 * TILE + k % 4 * 32;
        if (k % 2) fm_wgmma_ss<WG_KEYS>(odd, fm_tile_at(a, at), fm_tile_at(b, at), k > 1);
        else       fm_wgmma_ss<WG_KEYS>(even, fm_tile_at(a, at), fm_tile_at(b, at), k > 1);
    }
    fm_wgmma_commit();
}

/* Keys that are not there, the scales of those that are, and the peaks of both rows. */
template <class S>
FM_DEVICE void mask_wide(float (&s)[WG_KEYS / 2], const float *key_scale, const place &u,
                         const cursor &at, float peak[2])
{
    const int first = group_of(u) * WG_KEYS + u.lane % 4 * 2;
    peak[0] = peak[1] = -INFINITY;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = first + j * 8 + (i & 1);
            float    &x   = s[4 * j + i];
            if (S::bytes) x *= key_scale[key];
            if (at.item * KEYS + key >= at.n_key) x = -INFINITY;
            peak[i >> 1] = fmaxf(peak[i >> 1], x);
        }
}

FM_DEVICE void share_peaks(float *peak_of, const place &u, const float peak[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float most = fm__quad_max(peak[r]);
        if (u.lane % 4 == 0) peak_of[group_of(u) * WIDE_HEADS + head_of(u) + 8 * r] = most;
    }
}

/* Scores to weights, in shared memory; alpha is the factor for what was summed before. */
template <class S>
FM_DEVICE void weigh_wide(const float (&s)[WG_KEYS / 2], wide_sums &h, const wide_layout<S> &m,
                          const place &u, float scale, float alpha[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int   head = head_of(u) + 8 * r;
        const float max  = fmaxf(h.max[r], fmaxf(m.peak[head], m.peak[WIDE_HEADS + head]));
        alpha[r]         = fm_exp2_fast((h.max[r] - max) * scale);
        h.max[r]         = max;
#pragma unroll
        for (int j = 0; j < EIGHTS; j++) {
            const int key = group_of(u) * WG_KEYS + j * 8 + u.lane % 4 * 2;
            float     x   = fm_exp2_fast(fmaf(s[4 * j + 2 * r], scale, -max * scale));
            float     y   = fm_exp2_fast(fmaf(s[4 * j + 2 * r + 1], scale, -max * scale));
            h.sum[r][j]   = fmaf(h.sum[r][j], alpha[r], x + y);
            if (S::bytes) x *= m.key_scale[key], y *= m.key_scale[key + 1];
            *(uint32_t *)(fm__chunk(m.weight, 128, head, key / 8) + u.lane % 4 * 4) =
                fm_bf16x2_of_f32(x, y);
        }
    }
}

/* z = z * alpha + weights * values, for the warpgroup's columns; the first block
 * of a part overwrites what is there.  Weights go through registers, and so need no
 * fence while copies are under way. */
FM_DEVICE void add_values_wide(float (&z)[WG_COLUMNS / 2], const float alpha[2],
                               unsigned char *weight, unsigned char *keys, const place &u,
                               bool add)
{
#pragma unroll
    for (int i = 0; i < WG_COLUMNS / 2; i++) z[i] *= alpha[i >> 1 & 1];
    const fm_tile v = fm_tile_by_k(keys + group_of(u) * (WG_COLUMNS / 64) * TILE, TILE);
    uint32_t      p[KEYS / 16][4];
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) fm__load_a(p[k], weight, 128, u.warp % 4 * 16, k * 2);
    fm_wgmma_fence();
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        fm_wgmma_rs<WG_COLUMNS, 1>(z, p[k], fm_tile_at(v, k * 2048), k > 0 || add);
    fm_wgmma_commit();
    fm_wgmma_wait<0>();
    fm_wgmma_hold(z);
}

/* Sums of eights meet where the weights were: [64][8]. */
template <class S>
FM_DEVICE void join_wide(const wide_layout<S> &m, const place &u, const wide_sums &h,
                         float total[2])
{
    float *eights = (float *)m.weight;
    __syncthreads(); /* the weights have been used by both */
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int j = 0; j < EIGHTS; j++) {
            const float sum = fm__quad_sum(h.sum[r][j]);
            if (u.lane % 4 == 0)
                eights[(head_of(u) + 8 * r) * WARPS + group_of(u) * EIGHTS + j] = sum;
        }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        total[r] = 0;
#pragma unroll
        for (int i = 0; i < WARPS; i++) total[r] += eights[(head_of(u) + 8 * r) * WARPS + i];
    }
}

template <class S>
FM_DEVICE void end_wide(const fm_mla_absorbed_args &a, const wide_layout<S> &m, const place &u,
                        const cursor &at, const float (&z)[WG_COLUMNS / 2], const wide_sums &h)
{
    const bool whole = at.unit.n_key <= a.rows.part;
    const int  unit = at.work / u.n_group, index = whole ? at.unit.row : unit;
    const int  head0 = at.work % u.n_group * WIDE_HEADS + head_of(u);
    float      total[2];
    join_wide(m, u, h, total);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int   head   = head0 + 8 * r;
        const float factor = 1.0f / total[r];
        if (group_of(u) == 0 && u.lane % 4 == 0 && head < a.n_head)
            store_sum(a, unit, head, h.max[r], total[r]);
#pragma unroll
        for (int j = 0; j < WG_COLUMNS / 8; j++)
            store_pair(a, whole, index, head, group_of(u) * WG_COLUMNS + j * 8 + u.lane % 4 * 2,
                       z[4 * j + 2 * r], z[4 * j + 2 * r + 1], factor);
    }
}

/* What comes next: keys a block ahead, their slots two.  Queries come when the
 * last scores of the work before are done. */
struct wide_feed {
    cursor at;
    int    n, slot;
};

FM_DEVICE void look_ahead(const fm_mla_absorbed_args &a, const place &u, wide_feed &f)
{
    advance(a, u, f.at);
    if (f.at.item < 0 && f.at.work < u.n_work) advance(a, u, f.at);
    f.slot = find_slot(a, u, f.at);
}

template <class S>
FM_DEVICE void feed_keys(const fm_mla_absorbed_args &a, const wide_layout<S> &m, const place &u,
                         wide_feed &f)
{
    unsigned char *to = m.ring + f.n++ % S::stages * m.stage_bytes;
    if (f.at.work < u.n_work) {
        fetch_keys<S>(a, to, m.row_bytes, u, f.slot);
        look_ahead(a, u, f);
    }
    fm_cp_async_commit();
}

/* The scales of a block's tokens, [64]. */
FM_DEVICE void find_scales(const fm_mla_absorbed_args &a, float *key_scale, const place &u,
                           const cursor &at)
{
    const float x = scale_of_slot(a.cache, find_slot(a, u, at));
    if (u.lane < 8) key_scale[u.warp * 8 + u.lane] = x;
}

/* Bytes of the ring to a bf16 tile, which the values before have left. */
template <class S>
FM_DEVICE unsigned char *widen_block(const fm_mla_absorbed_args &a, const wide_layout<S> &m,
                                     const place &u, const cursor &at, unsigned char *keys)
{
    find_scales(a, m.key_scale, u, at);
    widen_keys<S>(m.tile, keys, m.row_bytes, u);
    fm_tile_fence();
    __syncthreads();
    return m.tile;
}

/* One block of keys; the next is fetched while the scores are computed. */
template <class S>
FM_DEVICE void add_block_wide(const fm_mla_absorbed_args &a, const wide_layout<S> &m,
                              const place &u, const cursor &at, unsigned char *keys, wide_feed &f,
                              float (&z)[WG_COLUMNS / 2], wide_sums &h)
{
    float s[WG_KEYS / 2], odd[WG_KEYS / 2], peak[2], alpha[2];
    begin_scores(s, odd, m.q, keys, u);
    feed_keys(a, m, u, f);
    fm_wgmma_wait<0>();
    fm_wgmma_hold(s);
    fm_wgmma_hold(odd);
#pragma unroll
    for (int i = 0; i < WG_KEYS / 2; i++) s[i] += odd[i];
    mask_wide<S>(s, m.key_scale, u, at, peak);
    share_peaks(m.peak, u, peak);
    __syncthreads();
    if (is_last_item(at)) {
        const cursor next = begin_work(a, u, at.work + gridDim.x);
        if (next.work < u.n_work) fetch_queries<S>(a, m.q, m.row_bytes, u, next);
        fm_cp_async_commit();
    }
    weigh_wide(s, h, m, u, a.scale * fm__log2_e, alpha);
    __syncthreads();
    add_values_wide(z, alpha, m.weight, keys, u, at.item > 0);
}

/* All blocks of one part; `i` counts those of this block's work. */
template <class S>
FM_DEVICE void run_part(const fm_mla_absorbed_args &a, const wide_layout<S> &m, const place &u,
                        cursor &at, wide_feed &f, int &i, float (&z)[WG_COLUMNS / 2], wide_sums &h)
{
    for (at.item = 0; at.item * KEYS < at.n_key; at.item++, i++) {
        fm_cp_async_wait<0>();
        fm_tile_fence();
        __syncthreads(); /* block i is here, and block i-1 has been used by all */
        unsigned char *keys = m.ring + i % S::stages * m.stage_bytes;
        if (S::bytes) keys = widen_block(a, m, u, at, keys);
        add_block_wide(a, m, u, at, keys, f, z, h);
    }
}

/* All of this block's work. */
template <class S>
FM_DEVICE void run_wide(const fm_mla_absorbed_args &a, const wide_layout<S> &m, const place &u)
{
    float     z[WG_COLUMNS / 2] = {};
    cursor    at                = begin_work(a, u, blockIdx.x);
    wide_feed f                 = {at, 0, 0};
    if (at.work >= u.n_work) return;
    fetch_queries<S>(a, m.q, m.row_bytes, u, at);
    look_ahead(a, u, f);
    feed_keys(a, m, u, f);
    for (int i = 0; at.work < u.n_work; at = begin_work(a, u, at.work + gridDim.x)) {
        wide_sums h = {{-INFINITY, -INFINITY}, {}};
        run_part(a, m, u, at, f, i, z, h);
        end_wide(a, m, u, at, z, h);
    }
}

#endif
