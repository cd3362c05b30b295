/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form where there are many parts: a block takes 16 heads of one
 * part after the other, and their queries and blocks of keys follow each other
 * through one ring, so that the next part is on its way before this one ends.
 *
 *     ring      queries of a part, then its blocks of 64 cached tokens; each is
 *               the key (all columns) and the value (the first kv_lora)
 *     scores    [16, 64]: a warp has 8 of the keys
 *     weights   bf16 in shared memory, their maximum agreed on by all warps
 *     z         [16, kv_lora] in registers: a warp has a share of the columns, 16
 *               at a time */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_RING_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_RING_CUH

#include "llm/kernel/cuda/attention/absorbed.cuh"

enum { PAIRS = FM_MLA_LATENT_MAX / 16 / WARPS }; /* of 8 columns of z, per warp */

/* What comes next into the ring; the page table is read an item ahead. */
template <class S> struct feed {
    cursor at;
    int    n, slot;
    float  scale[S::stages]; /* e4m3: of the items under way, oldest first; lane k has key k's */
};

template <class S>
FM_DEVICE void feed_item(const fm_mla_absorbed_args &a, const layout<S> &m, const place &u,
                         feed<S> &f)
{
    unsigned char *to = m.ring + f.n++ % S::stages * m.stage_bytes;
#pragma unroll
    for (int i = 1; i < S::stages; i++) f.scale[i - 1] = f.scale[i];
    if (f.at.work < u.n_work) {
        if (f.at.item < 0) fetch_queries<S>(a, to, m.row_bytes, u, f.at);
        else               fetch_keys<S>(a, to, m.row_bytes, u, f.slot);
        if (S::bytes) f.scale[S::stages - 1] = scale_of_slot(a.cache, f.slot);
        advance(a, u, f.at);
        f.slot = find_slot(a, u, f.at);
    }
    fm_cp_async_commit();
}

/* 16 heads over the keys so far; lane/4 is the head, and +8.  A warp's sums are
 * those of its own eight keys of each block. */
struct sums {
    float max[2], sum[2];
};

FM_DEVICE unsigned char *weight_chunk(unsigned char *weight, int head, int chunk)
{
    return fm__chunk(weight, WEIGHT_BYTES, head, chunk);
}

/* Scores to weights, in shared memory, and the factor for what was summed before. */
template <class S>
FM_DEVICE void weigh(const float s[4], const float key_scale[2], sums &h, const layout<S> &m,
                     const place &u, float scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float most = fm__quad_max(fmaxf(s[2 * r], s[2 * r + 1]));
        if (u.lane % 4 == 0) m.peak[(u.lane / 4 + 8 * r) * WARPS + u.warp] = most;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int    head = u.lane / 4 + 8 * r;
        const float4 p = ((float4 *)m.peak)[head * 2], q = ((float4 *)m.peak)[head * 2 + 1];
        const float  here = fmaxf(fmaxf(fmaxf(p.x, p.y), fmaxf(p.z, p.w)),
                                  fmaxf(fmaxf(q.x, q.y), fmaxf(q.z, q.w)));
        const float  max = raise_max(h.max[r], here, scale);
        const float  alpha = fm_exp2_fast((h.max[r] - max) * scale);
        if (u.warp == 0 && u.lane % 4 == 0) m.alpha[head] = alpha;
        const float x = fm_exp2_fast(fmaf(s[2 * r], scale, -max * scale));
        const float y = fm_exp2_fast(fmaf(s[2 * r + 1], scale, -max * scale));
        h.max[r]      = max;
        h.sum[r]      = fmaf(h.sum[r], alpha, x + y);
        *(uint32_t *)(weight_chunk(m.weight, head, u.warp) + u.lane % 4 * 4) =
            S::bytes ? fm_bf16x2_of_f32(x * key_scale[0], y * key_scale[1])
                     : fm_bf16x2_of_f32(x, y);
    }
    __syncthreads();
}

/* z = z * alpha + weights * values, for the warp's columns. */
template <class S>
FM_DEVICE void add_values(float z[][4], const layout<S> &m, unsigned char *tile, const place &u)
{
    const float low = m.alpha[u.lane / 4], high = m.alpha[u.lane / 4 + 8];
#pragma unroll
    for (int j = 0; j < 2 * PAIRS; j++) {
        z[j][0] *= low, z[j][1] *= low;
        z[j][2] *= high, z[j][3] *= high;
    }
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) {
        uint32_t p[4];
        fm_ldmatrix_x4(p, weight_chunk(m.weight, u.lane % 16, k * 2 + u.lane / 16));
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            const int col = (j * WARPS + u.warp) * 16;
            if (!S::fixed && col >= u.kv_lora) break;
            uint32_t v[4];
            fm__load_values(v, tile, m.row_bytes, k * 16, col / 8);
            fm_mma_bf16_16816(z[2 * j], p, v);
            fm_mma_bf16_16816(z[2 * j + 1], p, v + 2);
        }
    }
}

/* Each head's sum over all keys, ascending, to alpha; sums and maxima of a part to memory. */
template <class S>
FM_DEVICE void join_sums(const fm_mla_absorbed_args &a, const layout<S> &m, const place &u,
                         const sums &h, int unit, int head0)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float sum = fm__quad_sum(h.sum[r]);
        if (u.lane % 4 == 0) m.peak[(u.lane / 4 + 8 * r) * WARPS + u.warp] = sum;
    }
    __syncthreads();
    if (u.warp == 0 && u.lane % 4 == 0) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int head = u.lane / 4 + 8 * r;
            float     sum  = 0;
#pragma unroll
            for (int i = 0; i < WARPS; i++) sum += m.peak[head * WARPS + i];
            m.alpha[head] = sum;
            if (head0 + head < a.n_head) store_sum(a, unit, head0 + head, h.max[r], sum);
        }
    }
    __syncthreads();
}

template <class S>
FM_DEVICE void end_work(const fm_mla_absorbed_args &a, const layout<S> &m, const place &u,
                        const cursor &at, const float z[][4], const sums &h)
{
    const int   unit = at.work / u.n_group, head0 = at.work % u.n_group * TILE_HEADS;
    join_sums(a, m, u, h, unit, head0);
    const fm_mla_unit of = unit_at(a.rows, unit); /* read again: registers are short */
    const bool        whole = is_whole(a.rows, of);
    const int         index = whole ? of.row : unit;
    const float low = 1.0f / m.alpha[u.lane / 4], high = 1.0f / m.alpha[u.lane / 4 + 8];
#pragma unroll
    for (int j = 0; j < 2 * PAIRS; j++) {
        const int col = (j / 2 * WARPS + u.warp) * 16 + j % 2 * 8 + u.lane % 4 * 2;
        const int head = head0 + u.lane / 4;
        if (!S::fixed && col >= u.kv_lora) break;
        store_pair(a, whole, index, head, col, z[j][0], z[j][1], low);
        store_pair(a, whole, index, head + 8, col, z[j][2], z[j][3], high);
    }
}

/* One block of keys, in `tile` as bf16.  One half of the warps fetches while the
 * other multiplies: each scheduler has a warp of both. */
template <class S>
FM_DEVICE void add_block(const fm_mla_absorbed_args &a, const layout<S> &m, const place &u,
                         const cursor &at, unsigned char *tile, const uint32_t held[][4],
                         float scale, feed<S> &f, float z[][4], sums &h)
{
    float s[4], key_scale[2];
    if (!S::bytes && u.warp < WARPS / 2) feed_item(a, m, u, f);
    score(s, held, m, tile, u);
    if (!S::bytes && u.warp >= WARPS / 2) feed_item(a, m, u, f);
    mask_scores<S>(s, key_scale, scale, u, at.item * KEYS, at.n_key);
    weigh(s, key_scale, h, m, u, a.scale * fm__log2_e);
    add_values<S>(z, m, tile, u);
}

/* All of this block's work. */
template <class S>
FM_DEVICE void run_ring(const fm_mla_absorbed_args &a, const layout<S> &m, const place &u)
{
    uint32_t held[S::held ? 2 * STEPS : 1][4];
    float    z[2 * PAIRS][4];
    sums     h = {};
    feed<S>  f = {};
    cursor   at = begin_work(a, u, blockIdx.x);
    f.at   = at;
    f.slot = -1;
#pragma unroll 1
    for (int i = 0; i < S::ahead; i++) feed_item(a, m, u, f);
    for (int i = 0; at.work < u.n_work; i++, advance(a, u, at)) {
        fm_cp_async_wait<S::ahead - 1>();
        __syncthreads(); /* item i is here, and item i-1 has been used by all */
        unsigned char *stage = m.ring + i % S::stages * m.stage_bytes;
        const float    scale = f.scale[0];
        if (at.item < 0) {
            if (S::held) hold_queries(held, stage, m.row_bytes, u);
            else         keep_queries(m, stage);
            if (S::bytes) __syncthreads(); /* all have them: the stage is free */
            feed_item(a, m, u, f);
#pragma unroll
            for (int j = 0; j < 2 * PAIRS; j++) z[j][0] = z[j][1] = z[j][2] = z[j][3] = 0;
            h = {{-INFINITY, -INFINITY}, {0, 0}};
            continue;
        }
        if (S::bytes) { /* a warp replaces its own keys, but queries come over those of all */
            widen_keys<S>(m.tile, stage, m.row_bytes, u);
            if (f.at.item < 0) __syncthreads();
            else               __syncwarp();
            feed_item(a, m, u, f);
        }
        add_block(a, m, u, at, S::bytes ? m.tile : stage, held, scale, f, z, h);
        if (is_last_item(at)) end_work(a, m, u, at, z, h);
    }
}

#endif
