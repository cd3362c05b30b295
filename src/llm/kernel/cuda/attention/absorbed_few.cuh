/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form where there are few parts, for the sake of a lone row: what
 * a block does of a part is cut small, first by keys and then by columns.
 *
 *     scores    a block has 64 keys and 16 heads           -> score[unit, head, key]
 *     values    a block has 64 columns of z and 16 heads, all keys of the part:
 *               weights from the scores, then one product; of a row with several
 *               parts the block that ends last merges its columns
 *
 * The cache is read twice, the second time from L2. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_FEW_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_FEW_CUH

#include "llm/kernel/cuda/attention/absorbed.cuh"

enum {
    BLOCKS      = FM_MLA_LAST_MAX / KEYS, /* of keys, most of a part */
    SLICE       = 64,                     /* columns of z of a block, 8 of a warp */
    SLICE_BYTES = SLICE * 2,
};

/* score[unit, head], as many as a part has keys at most. */
FM_DEVICE float *scores_of(const fm_mla_absorbed_args &a, int unit, int head)
{
    return a.score + ((int64_t)unit * a.n_head + head) * fm_mla_last_max(a.rows.part);
}

FM_DEVICE int slices_of(int kv_lora)
{
    return (kv_lora + SLICE - 1) / SLICE;
}

/* --- scores ------------------------------------------------------------------------ */

template <class S>
FM_DEVICE void store_scores(const fm_mla_absorbed_args &a, const place &u, const cursor &at,
                            const float s[4])
{
    const int unit = at.work / u.n_group, head0 = at.work % u.n_group * TILE_HEADS;
    const int key = at.item * KEYS + u.warp * 8 + u.lane % 4 * 2;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int head = head0 + u.lane / 4 + 8 * r;
        if (head >= a.n_head) continue;
        *(float2 *)(scores_of(a, unit, head) + key) = make_float2(s[2 * r], s[2 * r + 1]);
    }
}

/* Work i of this kernel is block i % n of the keys of work i / n. */
template <class S>
FM_DEVICE void run_scores(const fm_mla_absorbed_args &a, const layout<S> &m, const place &u)
{
    uint32_t       held[S::held ? 2 * STEPS : 1][4];
    const int      n = fm_mla_last_max(a.rows.part) / KEYS;
    unsigned char *q = S::held ? m.ring + m.stage_bytes : m.q, *keys = m.ring;
    for (int i = blockIdx.x; i < u.n_work * n; i += gridDim.x) {
        cursor at = begin_work(a, u, i / n);
        at.item = i % n;
        if (at.item * KEYS >= at.n_key) continue;
        const int slot = find_slot(a, u, at);
        fetch_queries<S>(a, q, m.row_bytes, u, at);
        fetch_keys<S>(a, keys, m.row_bytes, u, slot);
        fm_cp_async_commit();
        const float scale = S::bytes ? scale_of_slot(a.cache, slot) : 0;
        fm_cp_async_wait<0>();
        __syncthreads();
        if (S::bytes) {
            widen_keys<S>(m.tile, keys, m.row_bytes, u);
            __syncthreads();
        }
        float s[4], key_scale[2];
        if (S::held) hold_queries(held, q, m.row_bytes, u);
        score(s, held, m, S::bytes ? m.tile : keys, u);
        mask_scores<S>(s, key_scale, scale, u, at.item * KEYS, at.n_key);
        store_scores<S>(a, u, at, s);
        __syncthreads(); /* the tiles are free */
    }
}

/* --- values ------------------------------------------------------------------------ */

/* Shared memory of a block, for parts of up to `keys`; rows of weights are 2 * keys bytes. */
template <bool E4M3> struct slice_layout {
    unsigned char *tile, *raw, *weight; /* [keys, 64] bf16, bytes, [16, keys] bf16 */
    float         *alpha, *max, *sum;   /* [BLOCKS][16], [16], [16] */
    float         *slot_scale;          /* [keys] */
    int           *slot, *last;         /* [keys], [1] */
    int            keys;

    __host__ __device__ slice_layout(unsigned char *base, int keys_)
    {
        keys       = keys_;
        tile       = base;
        raw        = tile + keys * SLICE_BYTES;
        weight     = raw + (E4M3 ? keys * SLICE : 0);
        alpha      = (float *)(weight + TILE_HEADS * keys * 2);
        max        = alpha + BLOCKS * TILE_HEADS;
        sum        = max + TILE_HEADS;
        slot_scale = sum + TILE_HEADS;
        slot       = (int *)(slot_scale + (E4M3 ? keys : 0));
        last       = slot + keys;
    }

    __host__ __device__ unsigned char *end() const { return (unsigned char *)(last + 1); }
};

template <bool E4M3>
FM_DEVICE void find_slots(const fm_mla_absorbed_args &a, const slice_layout<E4M3> &m,
                          const cursor &at)
{
    const int32_t *table = a.cache.page + (int64_t)at.unit.table * a.cache.max_page;
    for (int k = threadIdx.x; k < m.keys; k += THREADS) {
        const int pos  = at.unit.part * a.rows.part + k;
        const int slot = k < at.n_key ? fm__slot(table, a.cache.page_size, pos) : -1;
        m.slot[k]      = slot;
        if (E4M3) m.slot_scale[k] = scale_of_slot(a.cache, slot);
    }
}

/* Columns col0.. of the part's tokens, zeros behind the last of either. */
template <bool E4M3>
FM_DEVICE void fetch_columns(const fm_mla_absorbed_args &a, const slice_layout<E4M3> &m,
                             const place &u, const cursor &at, int col0)
{
    const int each = E4M3 ? 16 : 8, chunks = SLICE / each, of_token = u.width / each;
    const int keys = (at.n_key + KEYS - 1) / KEYS * KEYS;
    for (int i = threadIdx.x; i < keys * chunks; i += THREADS) {
        const int  k = i / chunks, c = i % chunks, from = col0 / each + c;
        const bool there = m.slot[k] >= 0 && from < of_token;
        fm_cp_async16(E4M3 ? m.raw + k * SLICE + c * 16 : fm__chunk(m.tile, SLICE_BYTES, k, c),
                      cached_token(a, m.slot[k], of_token) + (there ? from * 16 : 0), there);
    }
    fm_cp_async_commit();
}

template <bool E4M3>
FM_DEVICE void widen_columns(const slice_layout<E4M3> &m, const cursor &at)
{
    const int keys = (at.n_key + KEYS - 1) / KEYS * KEYS;
    for (int i = threadIdx.x; i < keys * (SLICE / 8); i += THREADS) {
        const int   k = i / (SLICE / 8), c = i % (SLICE / 8);
        const uint2 bytes = *(const uint2 *)(m.raw + k * SLICE + c * 8);
        uint32_t    v[4];
        fm_bf16x4_of_e4m3x4(v, bytes.x);
        fm_bf16x4_of_e4m3x4(v + 2, bytes.y);
        *(uint4 *)fm__chunk(m.tile, SLICE_BYTES, k, c) = make_uint4(v[0], v[1], v[2], v[3]);
    }
}

/* A head's scores, two neighbouring keys of each block in a lane; -inf behind the last. */
FM_DEVICE void load_scores(float2 s[BLOCKS], const fm_mla_absorbed_args &a, const place &u,
                           const cursor &at, int head)
{
    const int    n = (at.n_key + KEYS - 1) / KEYS, unit = at.work / u.n_group;
    const float *from = scores_of(a, unit, head) + u.lane * 2;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++)
        s[b] = head < a.n_head && b < n ? *(const float2 *)(from + b * KEYS)
                                        : make_float2(-INFINITY, -INFINITY);
}

/* A warp takes a head: weights of all keys, and how sums shrink from block to
 * block.  Blocks that are not there change nothing, since every warp is to take
 * the same path: factor 1, weights 0. */
template <bool E4M3>
FM_DEVICE void weigh_head(const fm_mla_absorbed_args &a, const slice_layout<E4M3> &m,
                          const place &u, const cursor &at, int head)
{
    const int   mine  = u.lane * 2;
    const float scale = a.scale * fm__log2_e;
    float2      s[BLOCKS];
    float       peak[BLOCKS], max = -INFINITY, sum = 0;
    load_scores(s, a, u, at, at.work % u.n_group * TILE_HEADS + head);
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) peak[b] = fm_warp_max(fmaxf(s[b].x, s[b].y));
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        const float most  = raise_max(max, peak[b], scale);
        const float alpha = fm_exp2_fast((max - most) * scale);
        float       x     = fm_exp2_fast(fmaf(s[b].x, scale, -most * scale));
        float       y     = fm_exp2_fast(fmaf(s[b].y, scale, -most * scale));
        max               = most;
        sum               = fmaf(sum, alpha, x + y);
        if (b * KEYS >= m.keys) continue;
        if (u.lane == 0) m.alpha[b * TILE_HEADS + head] = alpha;
        if (E4M3) x *= m.slot_scale[b * KEYS + mine], y *= m.slot_scale[b * KEYS + mine + 1];
        *(uint32_t *)(fm__chunk(m.weight, m.keys * 2, head, b * WARPS + u.lane / 4) +
                      u.lane % 4 * 4) = fm_bf16x2_of_f32(x, y);
    }
    const float eight = fm__quad_sum(sum);
    float       total = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++) total += __shfl_sync(FM_WARP, eight, i * 4);
    if (u.lane == 0) m.max[head] = max, m.sum[head] = total;
}

template <bool E4M3>
FM_DEVICE void sum_columns(float z[4], const slice_layout<E4M3> &m, const place &u,
                           const cursor &at)
{
    for (int b = 0; b * KEYS < at.n_key; b++) {
        const float *alpha = m.alpha + b * TILE_HEADS + u.lane / 4;
        const float  low = alpha[0], high = alpha[8];
        z[0] *= low, z[1] *= low, z[2] *= high, z[3] *= high;
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++) {
            const int step = b * (KEYS / 16) + k;
            uint32_t  p[4], v[2];
            fm__load_a(p, m.weight, m.keys * 2, 0, step * 2);
            fm_ldmatrix_x2_trans(
                v, fm__chunk(m.tile, SLICE_BYTES, step * 16 + u.lane % 16, u.warp));
            fm_mma_bf16_16816(z, p, v);
        }
    }
}

/* Is this block the last of its row, group of heads and columns? */
template <bool E4M3>
FM_DEVICE bool ends_last(const fm_mla_absorbed_args &a, const slice_layout<E4M3> &m,
                         const place &u, const cursor &at, int col0, int first, int n_part)
{
    __threadfence(); /* what was stored is seen before the count */
    __syncthreads();
    if (threadIdx.x == 0) {
        const int group = at.work % u.n_group;
        int32_t  *done = a.rows.done + (first * u.n_group + group) * FM_MLA_SLICES + col0 / SLICE;
        *m.last        = atomicAdd(done, 1) == n_part - 1;
        if (*m.last) *done = 0;
        __threadfence();
    }
    __syncthreads();
    return *m.last != 0;
}

template <bool E4M3>
FM_DEVICE void store_slice(const fm_mla_absorbed_args &a, const slice_layout<E4M3> &m,
                           const place &u, const cursor &at, int col0, const float z[4])
{
    const bool whole = is_whole(a.rows, at.unit);
    const int  unit = at.work / u.n_group, head0 = at.work % u.n_group * TILE_HEADS;
    const int  col = col0 + u.warp * 8 + u.lane % 4 * 2, head = u.lane / 4;
    const int  index = whole ? at.unit.row : unit;
    if (col < u.kv_lora) {
        store_pair(a, whole, index, head0 + head, col, z[0], z[1], 1.0f / m.sum[head]);
        store_pair(a, whole, index, head0 + head + 8, col, z[2], z[3], 1.0f / m.sum[head + 8]);
    }
    if (whole) return;
    const int mine = threadIdx.x;
    if (mine < TILE_HEADS && head0 + mine < a.n_head)
        store_sum(a, unit, head0 + mine, m.max[mine], m.sum[mine]);
    const int first = a.rows.unit0[at.unit.row], end = a.rows.unit0[at.unit.row + 1];
    if (!ends_last(a, m, u, at, col0, first, end - first) || end > a.rows.max_unit) return;
    const int to = col0 + mine % (SLICE / 4) * 4, of = head0 + mine / (SLICE / 4);
    if (of >= a.n_head || to >= u.kv_lora) return;
    const some_parts<4> now = load_parts<4>(a, first, end, of, to);
    float               max = -INFINITY;
    for (int i = first; i < end; i++) max = fmaxf(max, max_of_part(a, i, of));
    merge_columns(a, at.unit.row, first, end, of, to, now, max);
}

/* Work i of this kernel is columns 64 * (i % n) .. of work i / n.  The first
 * tokens come while the scores are still computed: they are older than both. */
template <bool E4M3>
FM_DEVICE void run_values(const fm_mla_absorbed_args &a, const slice_layout<E4M3> &m,
                          const place &u)
{
    const int n      = slices_of(u.kv_lora);
    bool      waited = false;
    for (int i = blockIdx.x; i < u.n_work * n; i += gridDim.x) {
        const int    col0 = i % n * SLICE;
        const cursor at = begin_work(a, u, i / n);
        float        z[4] = {};
        __syncthreads(); /* the last work's readers are done */
        find_slots(a, m, at);
        __syncthreads();
        fetch_columns(a, m, u, at, col0);
        if (!waited) fm_grid_wait(), fm_grid_release();
        waited = true;
#pragma unroll
        for (int h = 0; h < TILE_HEADS / WARPS; h++)
            weigh_head(a, m, u, at, u.warp * (TILE_HEADS / WARPS) + h);
        fm_cp_async_wait<0>();
        __syncthreads();
        if (E4M3) {
            widen_columns(m, at);
            __syncthreads();
        }
        sum_columns(z, m, u, at);
        store_slice(a, m, u, at, col0, z);
    }
    if (!waited) fm_grid_wait();
}

#endif
