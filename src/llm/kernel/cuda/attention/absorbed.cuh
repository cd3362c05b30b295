/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form, common to its kernels: addresses of a part's cached tokens, queries and
 * keys in shared memory, and their products.
 *
 * A head's answer over one part is defined key block by key block, 64 keys each:
 *
 *     score     two chains of k16 products, even and odd steps, added
 *     maximum   over this block and those before, followed when it has risen by more
 *               than MAX_RISE powers of two; what was summed then shrinks to it
 *     weights   powers of two, rounded to bf16; their sums stay apart by the
 *               key's number modulo 64 (in pairs), eights are added at the end
 *     z         one chain of k16 products over all keys of the part, divided by the sum
 *
 * Every kernel keeps to it, so which one takes a row is a matter of speed.
 *
 * FIXED: the widths are 512 + 64; else they are read from the arguments. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_CUH

#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/attention/tile.cuh"

enum {
    KEYS         = FM_MLA_LATENT_KEYS,
    TILE_HEADS   = 16,                    /* heads of an mma */
    WARPS        = KEYS / 8,              /* a warp has eight keys of a block */
    THREADS      = WARPS * 32,
    STEPS        = FM_MLA_WIDTH_MAX / 32, /* pairs of k16 steps */
    WEIGHT_BYTES = KEYS * 2,
    MAX_RISE     = 8,
};

template <bool FIXED, bool E4M3> struct shape {
    static const bool fixed  = FIXED; /* all columns are there: no branch between products */
    static const bool bytes  = E4M3;  /* the cache is */
    static const bool held   = FIXED || !E4M3; /* queries in registers: else there are too few */
    static const int  stages = 3;
    /* e4m3 bytes leave the ring when they are widened, bf16 blocks when they have been
     * multiplied. */
    static const int  ahead  = E4M3 ? stages : stages - 1;
};

/* Shared memory of a block, in order; rows are row_bytes apart. */
template <class S> struct layout {
    unsigned char *ring, *tile, *weight, *q; /* tile: e4m3; q: if they are not held */
    float         *peak, *alpha; /* [16][WARPS] maxima or sums of eight keys each, [16] */
    int            row_bytes, stage_bytes;

    __host__ __device__ layout(unsigned char *base, int width)
    {
        row_bytes   = (width * 2 + 127) / 128 * 128;
        stage_bytes = KEYS * row_bytes / (S::bytes ? 2 : 1);
        ring        = base;
        tile        = ring + S::stages * stage_bytes;
        weight      = tile + (S::bytes ? KEYS * row_bytes : 0);
        q           = weight + TILE_HEADS * WEIGHT_BYTES;
        peak        = (float *)(q + (S::held ? 0 : TILE_HEADS * row_bytes));
        alpha       = peak + TILE_HEADS * WARPS;
    }

    __host__ __device__ unsigned char *end() const { return (unsigned char *)(alpha + TILE_HEADS); }
};

/* What a thread knows of its block: work is a group of heads of a unit. */
struct place {
    int warp, lane;
    int width, kv_lora;
    int n_group; /* of 16 or 64 heads */
    int n_work;
};

/* An item of work: its queries are item -1, then come the blocks of keys. */
struct cursor {
    int         work, item, n_key; /* keys of the part */
    fm_mla_unit unit;
};

/* The last part goes to the row's end. */
FM_DEVICE int part_keys(const fm_mla_rows &rows, const fm_mla_unit &unit)
{
    const int rest = unit.n_key - unit.part * rows.part;
    return rest <= fm_mla_last_max(rows.part) ? rest : rows.part;
}

/* Is the part the whole row? */
FM_DEVICE bool is_whole(const fm_mla_rows &rows, const fm_mla_unit &unit)
{
    return unit.n_key <= fm_mla_last_max(rows.part);
}

FM_DEVICE fm_mla_unit unit_at(const fm_mla_rows &rows, int i)
{
    const int4 v = *(const int4 *)(rows.unit + i);
    return {v.x, v.y, v.z, v.w};
}

FM_DEVICE cursor begin_work(const fm_mla_absorbed_args &a, const place &u, int work)
{
    cursor at = {work, -1, 0, {}};
    if (work >= u.n_work) return at;
    at.unit  = unit_at(a.rows, work / u.n_group);
    at.n_key = part_keys(a.rows, at.unit);
    return at;
}

FM_DEVICE bool is_last_item(const cursor &at)
{
    return (at.item + 1) * KEYS >= at.n_key;
}

FM_DEVICE void advance(const fm_mla_absorbed_args &a, const place &u, cursor &at)
{
    if (is_last_item(at)) at = begin_work(a, u, at.work + gridDim.x);
    else                  at.item++;
}

/* Lane k < 8 finds key 8 * warp + k of the item; -1: behind the last. */
FM_DEVICE int find_slot(const fm_mla_absorbed_args &a, const place &u, const cursor &at)
{
    const int key = at.item * KEYS + u.warp * 8 + (u.lane & 7);
    if (at.item < 0 || key >= at.n_key) return -1;
    const int32_t *table = a.cache.page + (int64_t)at.unit.table * a.cache.max_page;
    return fm__slot(table, a.cache.page_size, at.unit.part * a.rows.part + key);
}

/* What a head's scores are measured from, behind a block with the largest score `peak`.  It
 * lags, so that weights may reach 2^MAX_RISE: sums shrink in few of the blocks.  scale: of
 * scores to powers of two. */
FM_DEVICE float raise_max(float max, float peak, float scale)
{
    return (peak - max) * scale > MAX_RISE ? peak : max;
}

FM_DEVICE float scale_of_slot(const fm_mla_cache &cache, int slot)
{
    if (slot < 0) return 0;
    return cache.slot_scale ? cache.slot_scale[slot] : cache.scale;
}

/* A group's queries, zeros for heads that are not there. */
template <class S>
FM_DEVICE void fetch_queries(const fm_mla_absorbed_args &a, unsigned char *to, int row_bytes,
                             const place &u, const cursor &at)
{
    const int       chunks = u.width / 8, head0 = at.work % u.n_group * TILE_HEADS;
    const uint16_t *q = a.q + ((int64_t)at.unit.row * a.n_head + head0) * u.width;
    for (int i = threadIdx.x; i < TILE_HEADS * chunks; i += THREADS) {
        const int  head = i / chunks, c = i % chunks;
        const bool there = head0 + head < a.n_head;
        fm_cp_async16(fm__chunk(to, row_bytes, head, c),
                      there ? q + (int64_t)head * u.width + c * 8 : q, there);
    }
}

/* Bytes wait in plain rows until they are widened. */
template <class S>
FM_DEVICE unsigned char *ring_chunk(unsigned char *stage, int row_bytes, int row, int chunk)
{
    return S::bytes ? stage + row * (row_bytes / 2) + chunk * 16
                    : fm__chunk(stage, row_bytes, row, chunk);
}

FM_DEVICE const unsigned char *cached_token(const fm_mla_absorbed_args &a, int slot, int chunks)
{
    return (const unsigned char *)a.cache.latent + (int64_t)max(slot, 0) * (chunks * 16);
}

/* The warp's eight keys on their way, zeros behind the last.  Four tokens at a
 * time: whole warps of 16-byte chunks of each, then what is left of all four. */
template <class S>
FM_DEVICE void fetch_keys(const fm_mla_absorbed_args &a, unsigned char *to, int row_bytes,
                          const place &u, int slot)
{
    const int chunks = u.width / (S::bytes ? 16 : 8), even = chunks / 32 * 32;
    const int rest = chunks - even;
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const int            s    = __shfl_sync(FM_WARP, slot, k + t);
            const unsigned char *from = cached_token(a, s, chunks);
            for (int c = u.lane; c < even; c += 32)
                fm_cp_async16(ring_chunk<S>(to, row_bytes, u.warp * 8 + k + t, c), from + c * 16,
                              s >= 0);
        }
        for (int i = 0; i < 4 * rest; i += 32) {
            const int c = i + u.lane, t = min(c / rest, 3), s = __shfl_sync(FM_WARP, slot, k + t);
            const int at = even + c - t * rest;
            if (c < 4 * rest)
                fm_cp_async16(ring_chunk<S>(to, row_bytes, u.warp * 8 + k + t, at),
                              cached_token(a, s, chunks) + at * 16, s >= 0);
        }
    }
}

template <class S>
FM_DEVICE void widen_chunk(unsigned char *tile, const unsigned char *from, int row_bytes, int k,
                           int c)
{
    const uint2 bytes = *(const uint2 *)(from + k * (row_bytes / 2) + c * 8);
    uint32_t    v[4];
    fm_bf16x4_of_e4m3x4(v, bytes.x);
    fm_bf16x4_of_e4m3x4(v + 2, bytes.y);
    *(uint4 *)fm__chunk(tile, row_bytes, k, c) = make_uint4(v[0], v[1], v[2], v[3]);
}

/* The warp's eight keys from e4m3 bytes of the ring to the bf16 tile, divided
 * among lanes as they were fetched; the tokens' scales enter later. */
template <class S>
FM_DEVICE void widen_keys(unsigned char *tile, const unsigned char *from, int row_bytes,
                          const place &u)
{
    const int chunks = u.width / 8, even = chunks / 32 * 32, rest = chunks - even;
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
#pragma unroll
        for (int t = 0; t < 4; t++)
            for (int c = u.lane; c < even; c += 32)
                widen_chunk<S>(tile, from, row_bytes, u.warp * 8 + k + t, c);
        for (int c = u.lane; c < 4 * rest; c += 32)
            widen_chunk<S>(tile, from, row_bytes, u.warp * 8 + k + c / rest, even + c % rest);
    }
}

/* The queries stay in registers, every warp the same ones. */
FM_DEVICE void hold_queries(uint32_t held[][4], unsigned char *q, int row_bytes, const place &u)
{
#pragma unroll
    for (int k = 0; k < 2 * STEPS; k++) {
        if (k * 16 >= u.width) break;
        fm__load_a(held[k], q, row_bytes, 0, k * 2);
    }
}

/* Or in a tile of their own: 16 rows of 16-byte chunks. */
template <class S> FM_DEVICE void keep_queries(const layout<S> &m, const unsigned char *q)
{
    for (int i = threadIdx.x; i < m.row_bytes; i += THREADS)
        ((uint4 *)m.q)[i] = ((const uint4 *)q)[i];
}

/* s = q k for 16 heads and the warp's eight keys. */
template <class S>
FM_DEVICE void score(float s[4], const uint32_t held[][4], const layout<S> &m, unsigned char *tile,
                     const place &u)
{
    float even[4] = {}, odd[4] = {};
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (k * 32 >= u.width) break;
        uint32_t a[2][4], b[4];
        if (!S::held) fm__load_a(a[0], m.q, m.row_bytes, 0, k * 4);
        if (!S::held) fm__load_a(a[1], m.q, m.row_bytes, 0, k * 4 + 2);
        fm__load_keys8(b, tile, m.row_bytes, u.warp * 8, k * 4);
        fm_mma_bf16_16816(even, S::held ? held[2 * k] : a[0], b);
        fm_mma_bf16_16816(odd, S::held ? held[2 * k + 1] : a[1], b + 2);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) s[i] = even[i] + odd[i];
}

/* Scores of keys that are not there are -inf; of e4m3 keys they are scaled,
 * lane k has the scale of the warp's key k. */
template <class S>
FM_DEVICE void mask_scores(float s[4], float key_scale[2], float scale, const place &u, int key0,
                           int n_key)
{
    const int mine = u.lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (S::bytes && i < 2) key_scale[i] = __shfl_sync(FM_WARP, scale, mine + i);
        if (S::bytes) s[i] *= key_scale[i & 1];
        if (key0 + u.warp * 8 + mine + (i & 1) >= n_key) s[i] = -INFINITY;
    }
}

/* COLUMNS columns of a head, 4 or 8, in PARTS parts from `i` on, and the parts' maxima and sums. */
enum { PARTS = 8 };

template <int COLUMNS> struct some_parts {
    uint32_t z[PARTS][COLUMNS / 2];
    float2   sum[PARTS];
};

/* 8 or 16 bytes. */
FM_DEVICE void load_words(uint32_t (&to)[2], const uint16_t *from)
{
    const uint2 v = *(const uint2 *)from;
    to[0] = v.x, to[1] = v.y;
}

FM_DEVICE void load_words(uint32_t (&to)[4], const uint16_t *from)
{
    const uint4 v = *(const uint4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

FM_DEVICE void store_words(uint16_t *to, const uint32_t (&x)[2])
{
    *(uint2 *)to = make_uint2(x[0], x[1]);
}

FM_DEVICE void store_words(uint16_t *to, const uint32_t (&x)[4])
{
    *(uint4 *)to = make_uint4(x[0], x[1], x[2], x[3]);
}

/* Behind the last part the last again: loads that do not wait for each other. */
template <int COLUMNS>
FM_DEVICE some_parts<COLUMNS> load_parts(const fm_mla_absorbed_args &a, int i, int end, int head,
                                         int col)
{
    some_parts<COLUMNS> p;
#pragma unroll
    for (int k = 0; k < PARTS; k++) {
        const int64_t at = (int64_t)min(i + k, end - 1) * a.n_head + head;
        load_words(p.z[k], a.part_z + at * a.kv_lora + col);
        p.sum[k] = *(const float2 *)(a.part_sum + at * 2);
    }
    return p;
}

FM_DEVICE float max_of_part(const fm_mla_absorbed_args &a, int i, int head)
{
    return a.part_sum[((int64_t)i * a.n_head + head) * 2];
}

template <int COLUMNS>
FM_DEVICE void add_parts(float (&z)[COLUMNS], float &sum, const some_parts<COLUMNS> &p, int n,
                         float max)
{
#pragma unroll
    for (int k = 0; k < PARTS; k++) {
        if (k >= n) break;
        const float w = p.sum[k].y * fm_exp2_fast(p.sum[k].x - max);
        sum += w;
#pragma unroll
        for (int i = 0; i < COLUMNS; i += 2) {
            const float2 x = fm_f32_of_f16x2(p.z[k][i / 2]);
            z[i]           = fmaf(x.x, w, z[i]);
            z[i + 1]       = fmaf(x.y, w, z[i + 1]);
        }
    }
}

/* z[row, head], some columns from `col`, from the row's parts, ascending; `now` are the first of
 * them, `max` is the largest of all maxima.  The next parts come while some are added. */
template <int COLUMNS>
FM_DEVICE void merge_columns(const fm_mla_absorbed_args &a, int row, int first, int end, int head,
                             int col, some_parts<COLUMNS> now, float max)
{
    float z[COLUMNS] = {}, sum = 0;
    for (int i = first; i < end; i += PARTS) {
        const bool          is_last = i + PARTS >= end;
        some_parts<COLUMNS> next;
        if (!is_last) next = load_parts<COLUMNS>(a, i + PARTS, end, head, col);
        add_parts(z, sum, now, end - i, max);
        if (!is_last) now = next;
    }
    const float f = 1.0f / sum;
    uint32_t    answer[COLUMNS / 2];
#pragma unroll
    for (int i = 0; i < COLUMNS; i += 2) answer[i / 2] = fm_bf16x2_of_f32(z[i] * f, z[i + 1] * f);
    store_words(a.z + ((int64_t)row * a.n_head + head) * a.kv_lora + col, answer);
}

/* Two neighbouring columns of one head: the answer if the row has one part, else a part. */
FM_DEVICE void store_pair(const fm_mla_absorbed_args &a, bool whole, int64_t index, int head,
                          int col, float x, float y, float factor)
{
    if (head >= a.n_head) return;
    const int64_t at = (index * a.n_head + head) * a.kv_lora + col;
    x *= factor, y *= factor;
    if (whole) *(uint32_t *)(a.z + at) = fm_bf16x2_of_f32(x, y);
    else       *(uint32_t *)(a.part_z + at) = fm_f16x2_of_f32(x, y);
}

FM_DEVICE void store_sum(const fm_mla_absorbed_args &a, int unit, int head, float max, float sum)
{
    float *to = a.part_sum + ((int64_t)unit * a.n_head + head) * 2;
    to[0]     = max * (a.scale * fm__log2_e);
    to[1]     = sum;
}

#endif
