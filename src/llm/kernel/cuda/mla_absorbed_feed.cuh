/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads: shared memory, and the warp that has boxes of keys
 * brought to it (pages of any size: mla_absorbed_copy.cuh).
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

#endif
