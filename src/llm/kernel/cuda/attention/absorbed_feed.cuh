/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads: shared memory, and the warps that have boxes of keys
 * brought to it (pages of any size: absorbed_copy.cuh).
 *
 *     q         [64, 576] of the work's heads
 *     stage     two, each a block of 64 keys; blocks take turns over all the work
 *               of a thread block
 *
 * A block of keys is multiplied by warpgroup `stage`, which leaves the weights in
 * the last tile of the stage: values do not need it.
 *
 * mbarriers (full, empty, q_empty) and named barriers (the others):
 *
 *     full      a third of a stage has landed; with a work's first block its queries too
 *     empty     both warpgroups have used the stage, in all blocks of a cluster
 *     q_empty   both have their last scores with these queries; by the stage of the
 *               block that comes with the next ones
 *     DONE      weights and maxima of the stage's block are there for the other
 *     SUMMED    the sums of its weights, too
 *     OWN       the warps of a warpgroup */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_FEED_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_FEED_CUH

#include "llm/kernel/cuda/ptx/cluster.cuh"
#include "llm/kernel/cuda/attention/absorbed.cuh"
#include "llm/kernel/cuda/ptx/wgmma.cuh"

enum {
    WIDE_HEADS   = 64,
    TILE         = 64 * 128, /* bytes: 64 rows, 64 columns */
    ROW_TILES    = FM_MLA_WIDTH_MAX / 64,
    BYTE_TILES   = (ROW_TILES + 1) / 2, /* e4m3: as large, 128 columns */
    THIRDS       = 3,
    THIRD_TILES  = ROW_TILES / THIRDS,
    EIGHTS       = KEYS / 8,
    GROUP        = 128,       /* threads of a warpgroup */
    USERS        = 2 * GROUP, /* that multiply */
    FEEDERS      = 64,        /* that fill a stage */
    FEEDER_WARPS = FEEDERS / 32,
    FEEDER_KEYS  = 32, /* of a warp */

    WIDE_THREADS     = USERS + 2 * FEEDERS,
    USER_REGISTERS   = 224,
    FEEDER_REGISTERS = 56,
};

enum {
    DONE   = 1, /* + stage */
    OWN    = 3, /* + stage */
    SUMMED = 5, /* + stage */
};

/* BOXES: pages hold whole boxes of keys, which a tile map brings.  BLOCKS: of a cluster,
 * each with a group of heads of its own; boxes come to all of them. */
template <bool E4M3, bool BOXES, int BLOCKS> struct wide_shape {
    static const bool bytes   = E4M3;
    static const bool boxes   = BOXES;
    static const int  blocks  = BLOCKS;
    static const int  fillers = BOXES ? 1 : FEEDERS; /* that say what has landed */
    static const int  tiles   = E4M3 ? BYTE_TILES : ROW_TILES; /* that a box has */

    /* The third of the columns with which its tile i is needed first. */
    static constexpr __host__ __device__ int third_of(int i)
    {
        return (E4M3 ? 2 * i : i) / THIRD_TILES;
    }
};

struct wide_layout {
    unsigned char *q, *stage;              /* stage: [2]; tiles begin at multiples of 1024 */
    float4        *sum;                    /* [4][GROUP] of the thread in either warpgroup */
    float         *max, *total;            /* [2][64] by stage */
    float         *key_scale;              /* e4m3: [2][64] */
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
            fm_mbarrier_init(&m.empty[i], S::blocks * USERS / 32);
            fm_mbarrier_init(&m.q_empty[i], USERS / 32);
        }
        fm_cluster_show_barriers();
    }
    if (S::blocks > 1) fm_cluster_sync();
    else               __syncthreads();
}

/* --- whose turn it is --------------------------------------------------------------- */

/* A cluster has neighbouring units, so that parts of one row follow each other, each of its
 * thread blocks with a group of heads of its own. */
struct wide_walk {
    int n_unit, work, end; /* work: the cluster's groups of heads * n_unit + unit */
};

template <class S> FM_DEVICE wide_walk begin_walk(const fm_mla_absorbed_args &a)
{
    const int     n_row   = min(*a.rows.n_row, a.rows.max_row);
    const int     n_unit  = min(a.rows.unit0[n_row], a.rows.max_unit);
    const int     n_group = (a.n_head + WIDE_HEADS - 1) / WIDE_HEADS;
    const int64_t n       = (int64_t)n_unit * (n_group / S::blocks);
    const int     cluster = blockIdx.x / S::blocks, n_cluster = gridDim.x / S::blocks;
    return {n_unit, (int)(n * cluster / n_cluster), (int)(n * (cluster + 1) / n_cluster)};
}

FM_DEVICE cursor work_at(const fm_mla_absorbed_args &a, const wide_walk &k)
{
    cursor at = {k.work, 0, 0, {}};
    at.unit   = unit_at(a.rows, k.work % k.n_unit);
    at.n_key  = part_keys(a.rows, at.unit);
    return at;
}

template <class S> FM_DEVICE int group_of(const wide_walk &k)
{
    return k.work / k.n_unit * S::blocks + fm_cluster_rank();
}

/* Does the next work need other queries? */
FM_DEVICE bool changes_queries(const fm_mla_absorbed_args &a, const wide_walk &k, const cursor &at)
{
    const int next = k.work + 1;
    return next < k.end && (next % k.n_unit == 0 ||
                            unit_at(a.rows, next % k.n_unit).row != at.unit.row);
}

/* Of block n of the thread block's work: its stage, and which phase of the stage's barriers
 * it is. */
FM_DEVICE int stage_at(int n) { return n & 1; }
FM_DEVICE int phase_of(int n) { return n >> 1 & 1; }

/* How often queries came with a block of each stage. */
struct query_turns {
    int n[2];
};

/* Waits until queries may be loaded with a block of `stage`: the first ones when the kernel before
 * has written them; the keys were written earlier. */
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

/* A block of keys of this thread block's work, and its number there. */
struct wide_block {
    wide_walk k;
    cursor    at;
    int       n;
    bool      with_queries;
};

FM_DEVICE bool is_there(const wide_block &b) { return b.k.work < b.k.end; }

template <class S> FM_DEVICE wide_block first_block(const fm_mla_absorbed_args &a)
{
    wide_block b = {begin_walk<S>(a), {}, 0, true};
    if (is_there(b)) b.at = work_at(a, b.k);
    else             fm_grid_wait(); /* who comes next waits for this kernel alone */
    return b;
}

FM_DEVICE void go_on(const fm_mla_absorbed_args &a, wide_block &b)
{
    b.n++, b.at.item++;
    b.with_queries = false;
    if (b.at.item * KEYS < b.at.n_key) return;
    b.with_queries = changes_queries(a, b.k, b.at);
    b.k.work++;
    if (is_there(b)) b.at = work_at(a, b.k);
}

/* --- boxes: copies that the hardware makes ------------------------------------------- */

/* One warp asks, a lane for each of the boxes. */
struct wide_maps {
    const fm_tile_map *keys, *queries;
    int                box; /* keys of one; a power of two from 8 on */
};

/* Block n: the slot of the lane's box or -1, keys that come, and the row of queries that
 * come with it or -1. */
struct box_request {
    int   n, slot, keys, q_row;
    float scale[2]; /* e4m3: of keys `lane` and lane + 32 */
};

/* Looked up before there is room. */
template <class S>
FM_DEVICE box_request request_of(const fm_mla_absorbed_args &a, const wide_maps &maps,
                                 const wide_block &b)
{
    const int   lane = threadIdx.x % 32, key = lane * maps.box;
    const int   keys = min(b.at.n_key - b.at.item * KEYS, (int)KEYS);
    box_request r    = {b.n, -1, (keys + maps.box - 1) / maps.box * maps.box, -1, {0, 0}};
    if (key < KEYS) r.slot = slot_of_key(a, b.at, key);
    if (b.with_queries) r.q_row = b.at.unit.row * a.n_head + group_of<S>(b.k) * WIDE_HEADS;
    if (S::bytes) r.scale[0] = scale_of_slot(a.cache, slot_of_key(a, b.at, lane));
    if (S::bytes) r.scale[1] = scale_of_slot(a.cache, slot_of_key(a, b.at, lane + 32));
    return r;
}

/* Each thread block of a cluster multicasts some of the tiles to all. */
template <class S> FM_DEVICE bool is_mine(int tile)
{
    return S::blocks == 1 || tile % S::blocks == fm_cluster_rank();
}

template <class S> FM_DEVICE void prefetch_box(const wide_maps &maps, const box_request &r)
{
    if (r.slot < 0) return;
#pragma unroll
    for (int i = 0; i < S::tiles; i++)
        if (is_mine<S>(i)) fm_bulk_tile_prefetch(maps.keys, i * 128, r.slot);
}

/* Bytes land in the second half of the stage, two tiles of columns in one. */
template <class S>
FM_DEVICE void ask_for_box(const wide_layout &m, const wide_maps &maps, const box_request &r)
{
    const int stage = stage_at(r.n), key = threadIdx.x % 32 * maps.box;
    if (r.slot < 0) return;
#pragma unroll
    for (int i = 0; i < S::tiles; i++) {
        unsigned char *to = stage_of(m, stage) + (ROW_TILES - S::tiles + i) * TILE + key * 128;
        fm_mbarrier   *full = &m.full[stage * THIRDS + S::third_of(i)];
        if (!is_mine<S>(i)) continue;
        if (S::blocks == 1) fm_bulk_tile(to, maps.keys, i * 128, r.slot, full);
        else                fm_bulk_tile_to_all(to, maps.keys, i * 128, r.slot, full, S::blocks);
    }
}

/* What is to come with a third of a block. */
template <class S>
FM_DEVICE void expect_third(const wide_layout &m, const box_request &r, int third)
{
    int bytes = r.q_row < 0 ? 0 : TILE * THIRD_TILES;
#pragma unroll
    for (int i = 0; i < S::tiles; i++) bytes += S::third_of(i) == third ? r.keys * 128 : 0;
    fm_mbarrier_expect(&m.full[stage_at(r.n) * THIRDS + third], bytes);
}

/* For this thread block alone, a lane for each tile. */
FM_DEVICE void ask_for_queries(const wide_layout &m, const wide_maps &maps, int stage, int row)
{
    const int t = threadIdx.x % 32;
    if (t < ROW_TILES)
        fm_bulk_tile(m.q + t * TILE, maps.queries, t * 128, row,
                     &m.full[stage * THIRDS + t / THIRD_TILES]);
    __syncwarp();
}

template <class S>
FM_DEVICE void ask_for_block(const wide_layout &m, const wide_maps &maps, const box_request &r,
                             query_turns &turns)
{
    const int lane = threadIdx.x % 32, stage = stage_at(r.n);
    fm_mbarrier_wait(&m.empty[stage], !phase_of(r.n));
    if (S::bytes) m.key_scale[stage * KEYS + lane] = r.scale[0];
    if (S::bytes) m.key_scale[stage * KEYS + lane + 32] = r.scale[1];
    __syncwarp();
    if (lane < THIRDS) expect_third<S>(m, r, lane);
    __syncwarp();
    ask_for_box<S>(m, maps, r);
    __syncwarp();
    if (r.q_row < 0) return;
    wait_for_queries(m, stage, r.n == 0, turns);
    ask_for_queries(m, maps, stage, r.q_row);
}

/* Loads the blocks of a stage; each is prefetched into L2 before its place in shared memory is
 * free. */
template <class S>
FM_DEVICE void run_boxes(const fm_mla_absorbed_args &a, const wide_layout &m, const wide_maps &maps,
                         int stage)
{
    query_turns turns = {};
    wide_block  b     = first_block<S>(a);
    if (stage == 1 && is_there(b)) go_on(a, b);
    while (is_there(b)) {
        const box_request r = request_of<S>(a, maps, b);
        prefetch_box<S>(maps, r);
        ask_for_block<S>(m, maps, r, turns);
        go_on(a, b);
        if (is_there(b)) go_on(a, b);
    }
}

#endif
