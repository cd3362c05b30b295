/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form: one block takes a part of a row's keys for 16 or 64 heads.
 *
 *     ring      blocks of 32 cached tokens, brought by cp.async; each is the key
 *               (all columns) and the value (the first kv_lora)
 *     scores    [heads, 32]: a warp has 16 heads and 8 or 16 of the keys
 *     weights   bf16 in shared memory, their maximum agreed on by all warps
 *     z         [heads, kv_lora] in registers: a warp has every head and a share
 *               of the columns, 16 at a time
 *
 * With 16 heads two blocks share a multiprocessor; a bf16 cache then leaves no
 * room for the queries, so they stay in registers, every warp the same ones.
 * Both shapes take the same steps for a head: the same bits.
 *
 * FIXED: the widths are 512 + 64; else they are read from the arguments. */
#ifndef FM_LLM_KERNEL_CUDA_MLA_ABSORBED_CUH
#define FM_LLM_KERNEL_CUDA_MLA_ABSORBED_CUH

#include "llm/kernel/cuda/mla.h"
#include "llm/kernel/cuda/mla_tile.cuh"

enum { KEYS = FM_MLA_LATENT_KEYS, STEPS = FM_MLA_WIDTH_MAX / 32, WEIGHT_BYTES = KEYS * 2 };

template <int TILES, bool FIXED, bool E4M3> struct shape { /* TILES of 16 heads */
    static const int  tiles     = TILES;
    static const bool fixed     = FIXED; /* all columns are there: no branch between products */
    static const bool bytes     = E4M3;  /* the cache is */
    static const int  warps     = TILES == 1 ? 4 : 8;
    static const int  threads   = warps * 32;
    static const int  heads     = TILES * 16;
    static const int  key_warps = warps / TILES; /* that share the keys of a block */
    static const int  key_tiles = KEYS / 8 / key_warps;
    static const int  pairs     = FM_MLA_LATENT_MAX / 16 / warps; /* of 8 columns of z, per warp */
    static const int  per_sm    = TILES == 1 ? 2 : 1;
    static const bool held      = TILES == 1 && FIXED && !E4M3; /* queries in registers */
    static const int  stages    = E4M3 ? TILES == 1 ? 2 : 3 : TILES == 1 ? 3 : 4;
    /* Bytes leave the ring when they are widened, bf16 blocks when they have been used. */
    static const int  ahead     = E4M3 ? stages : stages - 1;
};

/* Shared memory of a block, in order; rows are row_bytes apart. */
template <class S> struct layout {
    unsigned char *q, *ring, *tile, *weight;
    float         *peak, *alpha; /* [KEYS/8][heads] maxima or sums of eight keys each, [heads] */
    int           *slot;         /* [part] */
    float         *slot_scale;   /* [part] */
    int            row_bytes, stage_bytes;

    __host__ __device__ layout(unsigned char *base, int width, int part)
    {
        row_bytes   = (width * 2 + 127) / 128 * 128;
        stage_bytes = KEYS * row_bytes / (S::bytes ? 2 : 1);
        q           = base;
        ring        = q + (S::held ? 0 : S::heads * row_bytes);
        tile        = ring + S::stages * stage_bytes;
        weight      = tile + (S::bytes ? KEYS * row_bytes : 0);
        peak        = (float *)(weight + S::heads * WEIGHT_BYTES);
        alpha       = peak + KEYS / 8 * S::heads;
        slot        = (int *)(alpha + S::heads);
        slot_scale  = (float *)(slot + part);
    }

    __host__ __device__ unsigned char *end(int part) const
    {
        return (unsigned char *)(slot_scale + (S::bytes ? part : 0));
    }
};

/* The weights' tile has rows of 64 bytes: two of them share the banks. */
FM_DEVICE unsigned char *weight_chunk(unsigned char *weight, int row, int chunk)
{
    return weight + row * WEIGHT_BYTES + ((chunk ^ (row >> 1 & 3)) << 4);
}

/* What a thread knows of its unit of work. */
struct unit {
    int row, part, n_key;  /* keys of this part */
    int head0, n_head;     /* of the block */
    int width, kv_lora;
    int warp, head_tile, key_warp, lane;
};

template <class S>
FM_DEVICE void find_slots(const fm_mla_absorbed_args &a, const layout<S> &m, const unit &u)
{
    const int32_t *table = a.cache.page + (int64_t)a.rows.table[u.row] * a.cache.max_page;
    for (int k = threadIdx.x; k < u.n_key; k += S::threads) {
        const int slot = fm__slot(table, a.cache.page_size, u.part * a.rows.part + k);
        m.slot[k]      = slot;
        if (S::bytes)
            m.slot_scale[k] = a.cache.slot_scale ? a.cache.slot_scale[slot] : a.cache.scale;
    }
}

/* The block's queries, zeros for heads that are not there. */
template <class S>
FM_DEVICE void fetch_queries(const fm_mla_absorbed_args &a, unsigned char *to, int row_bytes,
                             const unit &u)
{
    const int       chunks = u.width / 8;
    const uint16_t *q = a.q + ((int64_t)u.row * a.n_head + u.head0) * u.width;
    for (int i = threadIdx.x; i < S::heads * chunks; i += S::threads) {
        const int  head = i / chunks, c = i % chunks;
        const bool there = head < u.n_head;
        fm_cp_async16(fm__chunk(to, row_bytes, head, c),
                      there ? q + (int64_t)head * u.width + c * 8 : q, there);
    }
    fm_cp_async_commit();
}

FM_DEVICE const unsigned char *cached_token(const fm_mla_absorbed_args &a, int slot, int chunks)
{
    return (const unsigned char *)a.cache.latent + (int64_t)slot * (chunks * 16);
}

/* Bytes wait in plain rows until they are widened. */
template <class S>
FM_DEVICE unsigned char *ring_chunk(unsigned char *stage, int row_bytes, int row, int chunk)
{
    return S::bytes ? stage + row * (row_bytes / 2) + chunk * 16
                    : fm__chunk(stage, row_bytes, row, chunk);
}

/* Block `i` of the part on its way into the ring; zeros behind the last key.  A
 * warp takes four tokens at a time: whole warps of 16-byte chunks of each, then
 * what is left of all four together. */
template <class S>
FM_DEVICE void fetch_keys(const fm_mla_absorbed_args &a, const layout<S> &m, const unit &u, int i)
{
    const int      chunks = u.width / (S::bytes ? 16 : 8), even = chunks / 32 * 32;
    const int      rest = chunks - even, left = u.n_key - i * KEYS;
    unsigned char *to = m.ring + i % S::stages * m.stage_bytes;
    for (int k = u.warp * 4; left > 0 && k < KEYS; k += S::warps * 4) {
        const int *slot = m.slot + i * KEYS + k;
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const unsigned char *from = cached_token(a, k + t < left ? slot[t] : 0, chunks);
            for (int c = u.lane; c < even; c += 32)
                fm_cp_async16(ring_chunk<S>(to, m.row_bytes, k + t, c), from + c * 16,
                              k + t < left);
        }
        for (int c = u.lane; c < 4 * rest; c += 32) {
            const int            t = c / rest, at = even + c % rest;
            const unsigned char *from = cached_token(a, k + t < left ? slot[t] : 0, chunks);
            fm_cp_async16(ring_chunk<S>(to, m.row_bytes, k + t, at), from + at * 16, k + t < left);
        }
    }
    fm_cp_async_commit();
}

/* e4m3 bytes of the ring to the bf16 tile; the tokens' scales enter later. */
template <class S>
FM_DEVICE void widen_keys(const layout<S> &m, const unit &u, const unsigned char *from)
{
    const int chunks = u.width / 8;
    for (int j = threadIdx.x; j < KEYS * chunks; j += S::threads) {
        const int   k = j / chunks, c = j % chunks;
        const uint2 bytes = *(const uint2 *)(from + k * (m.row_bytes / 2) + c * 8);
        uint32_t    v[4];
        fm_bf16x4_of_e4m3x4(v, bytes.x);
        fm_bf16x4_of_e4m3x4(v + 2, bytes.y);
        *(uint4 *)fm__chunk(m.tile, m.row_bytes, k, c) = make_uint4(v[0], v[1], v[2], v[3]);
    }
}

/* s = q k for the warp's heads and keys.  Every fourth step of 16 columns goes
 * into the same sum, so that four products are under way. */
template <class S>
FM_DEVICE void score(float s[][4], const uint32_t held[][4], unsigned char *q, unsigned char *tile,
                     int row_bytes, const unit &u)
{
    const int n = S::key_tiles;
    float     sum[4][n][4] = {};
#pragma unroll(S::bytes ? 6 : STEPS) /* e4m3 has no registers for more */
    for (int k = 0; k < STEPS; k++) {
        if (k * 32 >= u.width) break;
        uint32_t a[2][4], b[4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (!S::held) fm__load_a(a[i], q, row_bytes, u.head_tile * 16, k * 4 + i * 2);
#pragma unroll
        for (int t = 0; t < n; t++) {
            fm__load_keys8(b, tile, row_bytes, (u.key_warp * n + t) * 8, k * 4);
            fm_mma_bf16_16816(sum[k % 2 * 2][t], S::held ? held[2 * k] : a[0], b);
            fm_mma_bf16_16816(sum[k % 2 * 2 + 1][t], S::held ? held[2 * k + 1] : a[1], b + 2);
        }
    }
#pragma unroll
    for (int t = 0; t < n; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[t][i] = (sum[0][t][i] + sum[1][t][i]) + (sum[2][t][i] + sum[3][t][i]);
}

/* A warp's 16 heads over its own keys, eight at a time; lane/4 is the head, and
 * +8.  Sums of eights stay apart to the end, so that their order is the same
 * however many of them a warp has. */
template <class S> struct sums {
    float max[2], sum[2][S::key_tiles];
};

/* Scores as the softmax wants them, and the maximum of each head over the warp's
 * keys; scale[t][i] of the keys if they are e4m3. */
template <class S>
FM_DEVICE void find_peaks(float s[][4], float scale[][2], const layout<S> &m, const unit &u,
                          int key0)
{
    const int n = S::key_tiles, first = key0 + u.key_warp * n * 8 + u.lane % 4 * 2;
    float     peak[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int t = 0; t < n; t++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = first + t * 8 + (i & 1);
            if (S::bytes && i < 2) scale[t][i] = key < u.n_key ? m.slot_scale[key] : 0;
            if (S::bytes) s[t][i] *= scale[t][i & 1];
            if (key >= u.n_key) s[t][i] = -INFINITY;
            peak[i >> 1] = fmaxf(peak[i >> 1], s[t][i]);
        }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float most = fm__quad_max(peak[r]);
        const int   head = u.head_tile * 16 + u.lane / 4 + 8 * r;
        if (u.lane % 4 == 0) m.peak[u.key_warp * S::heads + head] = most;
    }
}

/* Scores to weights, in shared memory, and the factor for what was summed before. */
template <class S>
FM_DEVICE void weigh(float s[][4], sums<S> &h, const layout<S> &m, const unit &u,
                     int key0, float scale)
{
    const int n = S::key_tiles, heads = S::heads;
    float     key_scale[n][2];
    find_peaks(s, key_scale, m, u, key0);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int head = u.head_tile * 16 + u.lane / 4 + 8 * r;
        float     max  = h.max[r];
#pragma unroll
        for (int w = 0; w < S::key_warps; w++) max = fmaxf(max, m.peak[w * heads + head]);
        const float alpha = fm_exp2_fast((h.max[r] - max) * scale);
        if (u.key_warp == 0 && u.lane % 4 == 0) m.alpha[head] = alpha;
        h.max[r] = max;
#pragma unroll
        for (int t = 0; t < n; t++) {
            const float x = fm_exp2_fast(fmaf(s[t][2 * r], scale, -max * scale));
            const float y = fm_exp2_fast(fmaf(s[t][2 * r + 1], scale, -max * scale));
            h.sum[r][t]   = fmaf(h.sum[r][t], alpha, x + y);
            *(uint32_t *)(weight_chunk(m.weight, head, u.key_warp * n + t) + u.lane % 4 * 4) =
                S::bytes ? fm_bf16x2_of_f32(x * key_scale[t][0], y * key_scale[t][1])
                         : fm_bf16x2_of_f32(x, y);
        }
    }
    __syncthreads();
}

/* z = z * alpha + weights * values, for the warp's columns. */
template <class S>
FM_DEVICE void add_values(float z[][2 * S::pairs][4], const layout<S> &m,
                          unsigned char *tile, const unit &u)
{
    const int pairs = S::pairs, warps = S::warps;
#pragma unroll
    for (int h = 0; h < S::tiles; h++) {
        const float low = m.alpha[h * 16 + u.lane / 4], high = m.alpha[h * 16 + u.lane / 4 + 8];
#pragma unroll
        for (int j = 0; j < 2 * pairs; j++) {
            z[h][j][0] *= low, z[h][j][1] *= low;
            z[h][j][2] *= high, z[h][j][3] *= high;
        }
    }
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) {
        uint32_t p[S::tiles][4];
#pragma unroll
        for (int h = 0; h < S::tiles; h++)
            fm_ldmatrix_x4(p[h], weight_chunk(m.weight, h * 16 + u.lane % 16, k * 2 + u.lane / 16));
#pragma unroll
        for (int j = 0; j < pairs; j++) {
            const int col = (j * warps + u.warp) * 16;
            if (!S::fixed && col >= u.kv_lora) break;
            uint32_t v[4];
            fm__load_values(v, tile, m.row_bytes, k * 16, col / 8);
#pragma unroll
            for (int h = 0; h < S::tiles; h++) {
                fm_mma_bf16_16816(z[h][2 * j], p[h], v);
                fm_mma_bf16_16816(z[h][2 * j + 1], p[h], v + 2);
            }
        }
    }
}

/* Two neighbouring columns of one head: the answer if the row has one part, else a part. */
template <bool WHOLE>
FM_DEVICE void store_pair(const fm_mla_absorbed_args &a, const unit &u, int64_t index, int head,
                          int col, float x, float y, float factor)
{
    if (head >= u.n_head) return;
    const int64_t at = (index * a.n_head + u.head0 + head) * u.kv_lora + col;
    if (WHOLE) *(uint32_t *)(a.z + at) = fm_bf16x2_of_f32(x * factor, y * factor);
    else       *(float2 *)(a.part_z + at) = make_float2(x, y);
}

template <class S, bool WHOLE>
FM_DEVICE void store_columns(const fm_mla_absorbed_args &a, const layout<S> &m, const unit &u,
                             int64_t index, const float z[][2 * S::pairs][4])
{
#pragma unroll
    for (int h = 0; h < S::tiles; h++) {
        const int   head = h * 16 + u.lane / 4;
        const float low = 1.0f / m.alpha[head], high = 1.0f / m.alpha[head + 8];
#pragma unroll
        for (int j = 0; j < 2 * S::pairs; j++) {
            const int col = (j / 2 * S::warps + u.warp) * 16 + j % 2 * 8 + u.lane % 4 * 2;
            if (!S::fixed && col >= u.kv_lora) break;
            store_pair<WHOLE>(a, u, index, head, col, z[h][j][0], z[h][j][1], low);
            store_pair<WHOLE>(a, u, index, head + 8, col, z[h][j][2], z[h][j][3], high);
        }
    }
}

/* Each head's sum over all keys, ascending, to alpha; sums and maxima of a part to memory. */
template <class S>
FM_DEVICE void join_sums(const fm_mla_absorbed_args &a, const layout<S> &m, const unit &u,
                         const sums<S> &h, int64_t index, bool whole)
{
    const int n = S::key_tiles, heads = S::heads;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int head = u.head_tile * 16 + u.lane / 4 + 8 * r;
#pragma unroll
        for (int t = 0; t < n; t++) {
            const float sum = fm__quad_sum(h.sum[r][t]);
            if (u.lane % 4 == 0) m.peak[(u.key_warp * n + t) * heads + head] = sum;
        }
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int head = u.head_tile * 16 + u.lane / 4 + 8 * r;
        if (u.key_warp || u.lane % 4) continue;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++) sum += m.peak[i * heads + head];
        m.alpha[head] = sum;
        if (whole || head >= u.n_head) continue;
        float *to = a.part_sum + (index * a.n_head + u.head0 + head) * 2;
        to[0]     = h.max[r] * (a.scale * fm__log2_e);
        to[1]     = sum;
    }
    __syncthreads();
}

/* The queries, the page table, and the first blocks of keys. */
template <class S>
FM_DEVICE void begin_unit(const fm_mla_absorbed_args &a, const layout<S> &m, const unit &u,
                          uint32_t held[][4])
{
    const int      ahead = S::ahead;
    unsigned char *q     = S::held ? m.ring + ahead * m.stage_bytes : m.q;
    fetch_queries<S>(a, q, m.row_bytes, u);
    find_slots(a, m, u);
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < ahead; i++) fetch_keys(a, m, u, i);
    if (!S::held) return;
    fm_cp_async_wait<S::ahead>();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 2 * STEPS; k++) {
        if (k * 16 >= u.width) break;
        fm__load_a(held[k], q, m.row_bytes, 0, k * 2);
    }
}

template <class S>
FM_DEVICE void run_unit(const fm_mla_absorbed_args &a, const layout<S> &m, const unit &u,
                        int64_t index, bool whole)
{
    uint32_t held[S::held ? 2 * STEPS : 1][4];
    float    z[S::tiles][2 * S::pairs][4] = {};
    sums<S>  h = {{-INFINITY, -INFINITY}, {}};
    begin_unit(a, m, u, held);
    for (int i = 0; i * KEYS < u.n_key; i++) {
        fm_cp_async_wait<S::ahead - 1>();
        __syncthreads(); /* block i is here, and block i-1 has been used by all */
        unsigned char *tile = m.ring + i % S::stages * m.stage_bytes;
        if (S::bytes) {
            widen_keys(m, u, tile);
            tile = m.tile;
            __syncthreads();
        }
        fetch_keys(a, m, u, i + S::ahead);
        float s[S::key_tiles][4];
        score<S>(s, held, m.q, tile, m.row_bytes, u);
        weigh(s, h, m, u, i * KEYS, a.scale * fm__log2_e);
        add_values(z, m, tile, u);
    }
    join_sums(a, m, u, h, index, whole);
    if (whole) store_columns<S, true>(a, m, u, u.row, z);
    else       store_columns<S, false>(a, m, u, index, z);
}

template <int TILES, bool FIXED, bool E4M3>
FM_KERNEL((shape<TILES, FIXED, E4M3>::threads), (shape<TILES, FIXED, E4M3>::per_sm))
attend_absorbed(const fm_mla_absorbed_args a)
{
    typedef shape<TILES, FIXED, E4M3> S;
    FM_SHARED_BYTES(memory);
    unit u;
    u.width   = FIXED ? FM_MLA_WIDTH_MAX : a.cache.width;
    u.kv_lora = FIXED ? FM_MLA_LATENT_MAX : a.kv_lora;
    u.lane    = threadIdx.x & 31;
    u.warp    = threadIdx.x >> 5;
    u.head0   = blockIdx.x * S::heads;
    u.n_head  = min(a.n_head - u.head0, S::heads);
    u.head_tile = u.warp % S::tiles;
    u.key_warp  = u.warp / S::tiles;
    const layout<S> m(memory, u.width, a.rows.part);
    fm_grid_wait();
    fm_grid_release(); /* the merge may line up */
    const int n_row = min(*a.rows.n_row, a.rows.max_row);
    const int n     = min(a.rows.unit0[n_row], a.rows.max_unit);
    for (int i = blockIdx.y; i < n; i += gridDim.y) {
        u.row           = a.rows.unit[i].row;
        u.part          = a.rows.unit[i].part;
        const int n_key = a.rows.n_key[u.row];
        u.n_key         = min(n_key - u.part * a.rows.part, a.rows.part);
        run_unit<S>(a, m, u, i, n_key <= a.rows.part);
    }
}

#endif
