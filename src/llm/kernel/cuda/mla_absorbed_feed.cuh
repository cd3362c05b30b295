/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads: shared memory, and the warps that fill it.
 *
 *     q         [64, 576] of the work's heads
 *     stage     two, each a block of 64 keys; blocks take turns over all the work
 *               of a thread block
 *
 * A block of keys is multiplied by warpgroup `stage`, which leaves the weights in
 * the last tile of the stage: values do not need it.
 *
 * Who waits for whom:
 *
 *     full      a third of a stage has landed; with a work's first block its queries too
 *     empty     both warpgroups have used the stage
 *     q_empty   both have their last scores with these queries; by the stage of the
 *               block that comes with the next ones
 *     DONE      weights, maximum and sums of the stage's block are there for the other
 *     OWN       the warps of a warpgroup */
#ifndef FM_LLM_KERNEL_CUDA_MLA_ABSORBED_FEED_CUH
#define FM_LLM_KERNEL_CUDA_MLA_ABSORBED_FEED_CUH

#include "llm/kernel/cuda/bulk.cuh"
#include "llm/kernel/cuda/mla_absorbed.cuh"
#include "llm/kernel/cuda/wgmma.cuh"

enum {
    WIDE_HEADS  = 64,
    TILE        = 64 * 128, /* bytes: 64 rows, 64 columns */
    ROW_TILES   = FM_MLA_WIDTH_MAX / 64,
    THIRDS      = 3,
    THIRD_TILES = ROW_TILES / THIRDS,
    EIGHTS      = KEYS / 8,
    GROUP       = 128,       /* threads of a warpgroup */
    USERS       = 2 * GROUP, /* that multiply */
    FEEDERS     = 64,        /* that fill a stage */
    FEEDER_KEYS = 32,        /* of a warp */

    WIDE_THREADS     = USERS + 2 * FEEDERS,
    USER_REGISTERS   = 224,
    FEEDER_REGISTERS = 56,
};

enum {
    DONE = 1, /* + stage */
    OWN  = 3, /* + stage */
};

/* BOXES: pages hold whole boxes of keys, which a tile map brings. */
template <bool E4M3, bool BOXES> struct wide_shape {
    static const bool bytes   = E4M3;
    static const bool boxes   = BOXES;
    static const int  fillers = BOXES ? 1 : FEEDERS; /* that say what has landed */
};

struct wide_layout {
    unsigned char *q, *stage;             /* stage: [2]; tiles begin at multiples of 1024 */
    float4        *sum;                   /* [4][GROUP] of the thread in either warpgroup */
    float         *max, *total;           /* [2][64] by stage */
    float         *key_scale;             /* e4m3: [2][64] */
    fm_mbarrier   *full, *empty, *q_empty; /* [2][THIRDS], [2], [2] */

    __host__ __device__ explicit wide_layout(unsigned char *base)
    {
        q         = base;
        stage     = q + ROW_TILES * TILE;
        sum       = (float4 *)(stage + 2 * ROW_TILES * TILE);
        max       = (float *)(sum + 4 * GROUP);
        total     = max + 2 * WIDE_HEADS;
        key_scale = total + 2 * WIDE_HEADS;
        full      = (fm_mbarrier *)(key_scale + 2 * KEYS);
        empty     = full + 2 * THIRDS;
        q_empty   = empty + 2;
    }

    __host__ __device__ unsigned char *end() const { return (unsigned char *)(q_empty + 2); }
};

FM_DEVICE unsigned char *stage_of(const wide_layout &m, int i)
{
    return m.stage + i * (ROW_TILES * TILE);
}

template <class S> FM_DEVICE void wide_barriers_begin(const wide_layout &m)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * THIRDS; i++) fm_mbarrier_init(&m.full[i], S::fillers);
        for (int i = 0; i < 2; i++) {
            fm_mbarrier_init(&m.empty[i], USERS / 32);
            fm_mbarrier_init(&m.q_empty[i], USERS / 32);
        }
    }
    __syncthreads();
}

/* --- whose turn it is --------------------------------------------------------------- */

/* A thread block has neighbouring units of one group of heads, so that parts of one
 * row follow each other; the other groups' blocks are at the same units meanwhile. */
struct wide_walk {
    int n_unit, work, end; /* work: group of heads * n_unit + unit */
};

FM_DEVICE wide_walk begin_walk(const fm_mla_absorbed_args &a)
{
    const int n_row  = min(*a.rows.n_row, a.rows.max_row);
    const int n_unit = min(a.rows.unit0[n_row], a.rows.max_unit);
    const int64_t n  = (int64_t)n_unit * ((a.n_head + WIDE_HEADS - 1) / WIDE_HEADS);
    return {n_unit, (int)(n * blockIdx.x / gridDim.x), (int)(n * (blockIdx.x + 1) / gridDim.x)};
}

FM_DEVICE cursor work_at(const fm_mla_absorbed_args &a, const wide_walk &k)
{
    cursor at = {k.work, 0, 0, {}};
    at.unit   = unit_at(a.rows, k.work % k.n_unit);
    at.n_key  = part_keys(a.rows, at.unit);
    return at;
}

FM_DEVICE int group_of(const wide_walk &k)
{
    return k.work / k.n_unit;
}

/* Does the next work need other queries? */
FM_DEVICE bool changes_queries(const fm_mla_absorbed_args &a, const wide_walk &k, const cursor &at)
{
    const int next = k.work + 1;
    return next < k.end && (next % k.n_unit == 0 ||
                            unit_at(a.rows, next % k.n_unit).row != at.unit.row);
}

/* Of block n of the thread block's work: which phase of its stage's barriers it is. */
FM_DEVICE int phase_of(int n) { return n >> 1 & 1; }

/* How often queries came with a block of each stage. */
struct query_turns {
    int n[2];
};

/* Until queries may come with a block of `stage`: the first ones when the kernel before
 * has made them, keys are older. */
FM_DEVICE void wait_for_queries(const wide_layout &m, int stage, bool is_first, query_turns &turns)
{
    if (is_first) {
        fm_grid_wait();
        fm_grid_release();
    } else {
        fm_mbarrier_wait(&m.q_empty[stage], (stage ? turns.n[1]++ : turns.n[0]++) & 1);
    }
}

FM_DEVICE int slot_of_key(const fm_mla_absorbed_args &a, const cursor &at, int key)
{
    if (at.item * KEYS + key >= at.n_key) return -1;
    const int32_t *table = a.cache.page + (int64_t)at.unit.table * a.cache.max_page;
    return fm__slot(table, a.cache.page_size, at.unit.part * a.rows.part + at.item * KEYS + key);
}

/* --- boxes: copies that the hardware makes ------------------------------------------- */

/* One warp asks, a lane for each of the boxes. */
struct wide_maps {
    const fm_tile_map *keys, *queries;
    int                box; /* keys of one; a power of two from 8 on */
};

FM_DEVICE void ask_for_box(const wide_layout &m, const wide_maps &maps, int stage, int key, int slot)
{
#pragma unroll
    for (int t = 0; t < ROW_TILES; t++) {
        unsigned char *to = stage_of(m, stage) + t * TILE + key * 128;
        fm_bulk_tile(to, maps.keys, t * 128, slot, &m.full[stage * THIRDS + t / THIRD_TILES]);
    }
}

FM_DEVICE void ask_for_block(const fm_mla_absorbed_args &a, const wide_layout &m,
                             const wide_maps &maps, const cursor &at, int n, bool with_queries)
{
    const int lane = threadIdx.x % 32, stage = n % 2;
    const int keys = min(at.n_key - at.item * KEYS, (int)KEYS), key = lane * maps.box;
    const int slot = key < KEYS ? slot_of_key(a, at, key) : -1;
    const int landing = (keys + maps.box - 1) / maps.box * maps.box * 128 + with_queries * TILE;
    fm_mbarrier_wait(&m.empty[stage], !phase_of(n));
    if (lane < THIRDS) fm_mbarrier_expect(&m.full[stage * THIRDS + lane], landing * THIRD_TILES);
    __syncwarp();
    if (slot >= 0) ask_for_box(m, maps, stage, key, slot);
    __syncwarp();
}

/* A lane for each tile. */
FM_DEVICE void ask_for_queries(const wide_layout &m, const wide_maps &maps, int stage, int row)
{
    const int t = threadIdx.x % 32;
    if (t < ROW_TILES)
        fm_bulk_tile(m.q + t * TILE, maps.queries, t * 128, row,
                     &m.full[stage * THIRDS + t / THIRD_TILES]);
    __syncwarp();
}

FM_DEVICE void ask_for_all(const fm_mla_absorbed_args &a, const wide_layout &m,
                           const wide_maps &maps)
{
    int         n = 0;
    bool        is_new = true;
    query_turns turns = {};
    wide_walk   k = begin_walk(a);
    if (k.work >= k.end) fm_grid_wait(); /* who comes next waits for this kernel alone */
    for (; k.work < k.end; k.work++) {
        cursor at = work_at(a, k);
        for (; at.item * KEYS < at.n_key; at.item++, n++, is_new = false) {
            ask_for_block(a, m, maps, at, n, is_new);
            if (!is_new) continue;
            wait_for_queries(m, n % 2, n == 0, turns);
            ask_for_queries(m, maps, n % 2,
                            at.unit.row * a.n_head + group_of(k) * WIDE_HEADS);
        }
        is_new = changes_queries(a, k, at);
    }
}

/* --- pages of any size: copies of 16 bytes, a stage's by warps of its own -------------- */

/* A third of the columns of a warp's 32 keys, zeros for those not there: eight lanes
 * have a key's tile, so four keys are copied at once.  slot: of the lane's key. */
FM_DEVICE void copy_third(const fm_mla_absorbed_args &a, unsigned char *stage, int key0, int third,
                          int slot)
{
    const int lane = threadIdx.x & 31, c = lane % 8;
#pragma unroll 2
    for (int k = lane / 8; k < FEEDER_KEYS; k += 4) {
        const int            s    = __shfl_sync(FM_WARP, slot, k);
        const unsigned char *from = (const unsigned char *)a.cache.latent +
                                    (int64_t)max(s, 0) * (FM_MLA_WIDTH_MAX * 2) + c * 16;
        unsigned char *to = fm__chunk(stage, 128, key0 + k, c);
#pragma unroll
        for (int t = 0; t < THIRD_TILES; t++)
            fm_cp_async16(to + (third * THIRD_TILES + t) * TILE,
                          from + (third * THIRD_TILES + t) * 128, s >= 0);
    }
    fm_cp_async_commit();
}

/* The queries of the work's heads by thirds; i: of this thread among those of the stage. */
FM_DEVICE void copy_queries(const fm_mla_absorbed_args &a, unsigned char *to, int row, int head0,
                            int i)
{
    const int       c = i % 8;
    const uint16_t *q = a.q + ((int64_t)row * a.n_head + head0) * FM_MLA_WIDTH_MAX;
#pragma unroll 1
    for (int third = 0; third < THIRDS; third++) {
#pragma unroll 1
        for (int head = i / 8; head < WIDE_HEADS; head += FEEDERS / 8) {
            const bool there = head0 + head < a.n_head;
#pragma unroll
            for (int t = 0; t < THIRD_TILES; t++) {
                const int tile = third * THIRD_TILES + t;
                fm_cp_async16(fm__chunk(to, 128, head, c) + tile * TILE,
                              there ? q + head * FM_MLA_WIDTH_MAX + c * 8 + tile * 64 : q, there);
            }
        }
        fm_cp_async_commit();
    }
}

/* --- e4m3: bytes land in the second half of the stage and are widened in place ------ */

/* Where the lane's 16 bytes of a key lie: four lanes have the 64 bytes of a tile.  A
 * warp's bytes lie where its own widened rows will. */
FM_DEVICE unsigned char *byte_chunk(unsigned char *stage, int tile, int key)
{
    const int half = ROW_TILES + tile;
    return stage + half / 2 * TILE + key / FEEDER_KEYS * (TILE / 2) + half % 2 * (TILE / 4) +
           key % FEEDER_KEYS * 64 + threadIdx.x % 4 * 16;
}

/* The same third, eight keys at once. */
FM_DEVICE void copy_bytes(const fm_mla_absorbed_args &a, unsigned char *stage, int key0, int third,
                          int slot)
{
    const int lane = threadIdx.x & 31;
#pragma unroll 1
    for (int k = lane / 4; k < FEEDER_KEYS; k += 8) {
        const int            s    = __shfl_sync(FM_WARP, slot, k);
        const unsigned char *from = (const unsigned char *)a.cache.latent +
                                    (int64_t)max(s, 0) * FM_MLA_WIDTH_MAX + lane % 4 * 16;
#pragma unroll
        for (int i = 0; i < THIRD_TILES; i++) {
            const int t = third * THIRD_TILES + i;
            fm_cp_async16(byte_chunk(stage, t, key0 + k), from + t * 64, s >= 0);
        }
    }
    fm_cp_async_commit();
}

/* What the same lane copied: nobody else has to have waited. */
FM_DEVICE void load_bytes(uint4 (&v)[FEEDER_KEYS / 8], unsigned char *stage, int key0, int tile)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < FEEDER_KEYS / 8; i++)
        v[i] = *(const uint4 *)byte_chunk(stage, tile, key0 + lane / 4 + 8 * i);
}

FM_DEVICE void store_widened(const uint4 (&v)[FEEDER_KEYS / 8], unsigned char *stage, int key0,
                             int tile)
{
    const int lane = threadIdx.x & 31, c = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < FEEDER_KEYS / 8; i++) {
        const int      row = key0 + lane / 4 + 8 * i;
        unsigned char *to  = stage + tile * TILE;
        uint32_t       w[8];
        fm_bf16x4_of_e4m3x4(w, v[i].x);
        fm_bf16x4_of_e4m3x4(w + 2, v[i].y);
        fm_bf16x4_of_e4m3x4(w + 4, v[i].z);
        fm_bf16x4_of_e4m3x4(w + 6, v[i].w);
        *(uint4 *)fm__chunk(to, 128, row, c)     = make_uint4(w[0], w[1], w[2], w[3]);
        *(uint4 *)fm__chunk(to, 128, row, c + 1) = make_uint4(w[4], w[5], w[6], w[7]);
    }
}

/* Tile t covers the bytes of tiles 2t - 9 and 2t - 8, all of them read before: of the
 * last tile its own. */
FM_DEVICE void widen_third(unsigned char *stage, int key0, int third)
{
    uint4 v[FEEDER_KEYS / 8];
#pragma unroll 1
    for (int t = third * THIRD_TILES; t < (third + 1) * THIRD_TILES; t++) {
        load_bytes(v, stage, key0, t);
        __syncwarp();
        store_widened(v, stage, key0, t);
    }
}

/* --- their walk ---------------------------------------------------------------------- */

FM_DEVICE void tell_full(const wide_layout &m, int stage, int third)
{
    fm_tile_fence();
    fm_mbarrier_arrive(&m.full[stage * THIRDS + third]);
}

/* The last three copies are under way: of thirds of the keys, or with new queries of
 * thirds of these. */
template <class S> FM_DEVICE void end_thirds(const wide_layout &m, int key0, int stage)
{
#pragma unroll 1
    for (int third = 0; third < THIRDS; third++) {
        if (third == 0)      fm_cp_async_wait<2>();
        else if (third == 1) fm_cp_async_wait<1>();
        else                 fm_cp_async_wait<0>();
        if (S::bytes) widen_third(stage_of(m, stage), key0, third);
        tell_full(m, stage, third);
    }
}

template <class S>
FM_DEVICE void begin_keys(const fm_mla_absorbed_args &a, unsigned char *to, int key0, int slot)
{
#pragma unroll 1
    for (int third = 0; third < THIRDS; third++) {
        if (S::bytes) copy_bytes(a, to, key0, third, slot);
        else          copy_third(a, to, key0, third, slot);
    }
}

/* One block of keys; `n` is its number in the work of this thread block. */
template <class S>
FM_DEVICE void feed_block(const fm_mla_absorbed_args &a, const wide_layout &m, const cursor &at,
                          int n, int head0, bool with_queries, query_turns &turns)
{
    const int i = threadIdx.x % FEEDERS, stage = n % 2, key0 = i / 32 * FEEDER_KEYS;
    const int slot = slot_of_key(a, at, i);
    fm_mbarrier_wait(&m.empty[stage], !phase_of(n));
    begin_keys<S>(a, stage_of(m, stage), key0, slot);
    if (with_queries) {
        wait_for_queries(m, stage, n == 0, turns);
        copy_queries(a, m.q, at.unit.row, head0, i);
    }
    if (S::bytes) m.key_scale[stage * KEYS + i] = scale_of_slot(a.cache, slot);
    end_thirds<S>(m, key0, stage);
}

/* All blocks of this thread block that go through one stage. */
template <class S> FM_DEVICE void run_feed(const fm_mla_absorbed_args &a, const wide_layout &m)
{
    const int   stage = __shfl_sync(FM_WARP, (int)(threadIdx.x - USERS) / FEEDERS, 0); /* of all */
    int         n = 0;
    bool        is_new = true;
    query_turns turns = {};
    wide_walk   k = begin_walk(a);
    if (k.work >= k.end) fm_grid_wait(); /* who comes next waits for this kernel alone */
    for (; k.work < k.end; k.work++) {
        cursor at = work_at(a, k);
        for (; at.item * KEYS < at.n_key; at.item++, n++, is_new = false)
            if (n % 2 == stage)
                feed_block<S>(a, m, at, n, group_of(k) * WIDE_HEADS, is_new, turns);
        is_new = changes_queries(a, k, at);
    }
}

#endif
