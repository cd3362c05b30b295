/* SPDX-License-Identifier: Apache-2.0 */
/* The expanded form for keys of 128 + 64 columns and values of 128: a block
 * takes 128 rows of a prompt span and one head, a warpgroup 64 of the rows.
 *
 *     registers   queries, sums, the scores of one block of keys
 *     ring        five blocks of 64 keys and values, loaded by cp.async
 *
 * A warpgroup asks for the scores of block n and then for the sums of block n-1,
 * and while the tensor cores do the latter it makes weights of the scores.  The
 * second warpgroup is half a block behind the first: one makes weights while
 * the tensor cores work for the other.
 *
 *     first     S(n) O(n-1) ......... weigh S(n) │ turn n+1 │ S(n+1) O(n) .........
 *     second    ... weigh S(n-1) │ S(n) O(n-1) . │ turn n+1 │ weigh S(n) │ S(n+1) O(n)
 *
 * Turn n is where all threads meet: block n has landed, and block n-3 has been
 * used by all.  Block n+2 is fetched into its place, while the scores of block n
 * are waited for. */
#include "llm/kernel/cuda/attention/expanded.cuh"
#include "llm/kernel/cuda/attention/mla_internal.h"
#include "llm/kernel/cuda/ptx/wgmma.cuh"

enum {
    NOPE      = 128,
    ROPE      = 64,
    V_DIM     = 128,
    THREADS   = FM__EXPANDED_WARPS * 32,
    ROWS      = 64, /* of a warpgroup */
    KEYS      = FM_MLA_BLOCK_KEYS,
    KEY_STEPS = (NOPE + ROPE) / 16,
    TILE      = KEYS * 128, /* bytes of 64 columns */
    VALUES    = 3 * TILE,   /* where they begin behind the keys */
    STAGE     = 5 * TILE,
    STAGES    = 5,
    AHEAD     = STAGES - 3, /* blocks on their way when one has landed */
    SHARED    = STAGES * STAGE,
    QUERY     = FM_MLA_TILE_ROWS * 128,
    QUERIES   = SHARED - 3 * QUERY, /* where they lie until they are in registers */
    HEADS     = 8, /* heads whose tiles run at the same time, so that L2 holds their keys */
};

typedef fm__expanded_tile tile;
typedef fm__expanded_sums sums;

/* N rows of CHUNKS * 16 bytes, of which n_row exist, into tiles of 128-byte rows. */
template <int N, int CHUNKS>
FM_DEVICE void fetch_rows(unsigned char *to, const uint16_t *from, int stride, int n_row)
{
    enum { STEP = THREADS / CHUNKS };
    const int row = threadIdx.x / CHUNKS, c = threadIdx.x % CHUNKS;
    to += c / 8 * (N * 128);
    from += (int64_t)row * stride + c * 8;
#pragma unroll
    for (int i = 0; i < N / STEP; i++) {
        fm_cp_async16(fm__chunk(to, 128, row + i * STEP, c % 8), from, row + i * STEP < n_row);
        from += STEP * stride;
    }
}

FM_DEVICE void fetch_queries(const fm_mla_expanded_args &a, const tile &t, unsigned char *to)
{
    const uint16_t *from = a.q + fm__expanded_row(a, t, 0) * (NOPE + ROPE);
#pragma unroll
    for (int i = 0; i < 3; i++)
        fetch_rows<FM_MLA_TILE_ROWS, 8>(to + i * QUERY, from + i * 64, a.n_head * (NOPE + ROPE),
                                        t.n_row);
    fm_cp_async_commit();
}

FM_DEVICE void load_queries(uint32_t (&q)[KEY_STEPS][4], unsigned char *from)
{
#pragma unroll
    for (int k = 0; k < KEY_STEPS; k++)
        fm__load_a(q[k], from + k / 4 * QUERY, 128, (threadIdx.x >> 5) * 16, k % 4 * 2);
}

FM_DEVICE void fetch_block(const fm_mla_expanded_args &a, const tile &t, unsigned char *memory,
                           int block)
{
    const int first = block * KEYS, left = t.n_key - first;
    if (left > 0) {
        unsigned char *to = memory + block % STAGES * STAGE;
        const int64_t  at = (int64_t)first * a.key_stride;
        fetch_rows<KEYS, 16>(to, t.key + at, a.key_stride, left);
        fetch_rows<KEYS, 8>(to + 2 * TILE, t.key_rope + (int64_t)first * a.rope_stride,
                            a.rope_stride, left);
        fetch_rows<KEYS, 16>(to + VALUES, t.value + at, a.key_stride, left);
    }
    fm_cp_async_commit();
}

FM_DEVICE void take_turn(const tile &t, int n)
{
    if (n * KEYS >= t.n_key) return;
    fm_cp_async_wait<AHEAD - 1>();
    fm_tile_fence();
    fm_barrier(1, THREADS);
}

FM_DEVICE void ask_scores(float (&s)[KEYS / 2], const uint32_t (&q)[KEY_STEPS][4],
                          unsigned char *memory, int block)
{
    const fm_tile key = fm_tile_by_row(memory + block % STAGES * STAGE);
#pragma unroll
    for (int k = 0; k < KEY_STEPS; k++)
        fm_wgmma_rs<KEYS>(s, q[k], fm_tile_at(key, k / 4 * TILE + k % 4 * 32), k > 0);
    fm_wgmma_commit();
}

FM_DEVICE void ask_sums(sums &h, const uint32_t (&p)[KEYS / 16][4], unsigned char *memory,
                        int block)
{
    const fm_tile value = fm_tile_by_k(memory + block % STAGES * STAGE + VALUES, TILE);
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
        fm_wgmma_rs<V_DIM, 1>(h.o, p[k], fm_tile_at(value, k * 2048));
    fm_wgmma_commit();
}

/* Of a block at key_pos; row_pos is the warp's first. */
FM_DEVICE void weigh(float (&s)[KEYS / 2], sums &h, float alpha[2], float scale, int key_pos,
                     int row_pos)
{
    const int lane = threadIdx.x & 31;
    if (key_pos + KEYS - 1 > row_pos) fm__mask(s, key_pos + lane % 4 * 2, row_pos + lane / 4);
    fm__weigh(s, h, alpha, scale);
}

FM_DEVICE void make_operand(uint32_t (&p)[KEYS / 16][4], const float *s)
{
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) fm__weights_of(p[k], s, k);
}

/* Blocks 0 .. n_block-1 of the pass for the warpgroup's rows; turn 0 is past.  The
 * branch of a turn between weigh() and the wait behind it is needed: in one piece
 * ptxas moves the wait to the front, and no weight is made under a product. */
FM_DEVICE void meet_blocks(const fm_mla_expanded_args &a, const tile &t, sums &h,
                           const uint32_t (&q)[KEY_STEPS][4], unsigned char *memory, int n_block,
                           bool is_behind)
{
    const float scale   = a.scale * fm__log2_e;
    const int   row_pos = t.pos0 + (threadIdx.x >> 5) * 16;
    int         key_pos = a.spans.key_begin;
    float       s[KEYS / 2], alpha[2];
    uint32_t    p[KEYS / 16][4];
    fm_wgmma_fence();
    ask_scores(s, q, memory, 0);
    fetch_block(a, t, memory, AHEAD);
    fm_wgmma_wait<0>();
    fm_wgmma_hold(s);
    if (is_behind) take_turn(t, 1);
    weigh(s, h, alpha, scale, key_pos, row_pos);
    if (!is_behind) take_turn(t, 1);
    fm__shrink(h, alpha);
    make_operand(p, s);
    for (int n = 1; n < n_block; n++) {
        fm_wgmma_fence();
        ask_scores(s, q, memory, n);
        ask_sums(h, p, memory, n - 1);
        fetch_block(a, t, memory, n + AHEAD);
        fm_wgmma_wait<1>();
        fm_wgmma_hold(s);
        if (is_behind) take_turn(t, n + 1);
        weigh(s, h, alpha, scale, key_pos += KEYS, row_pos);
        if (!is_behind) take_turn(t, n + 1);
        fm_wgmma_wait<0>();
        fm_wgmma_hold(h.o);
        fm__shrink(h, alpha);
        make_operand(p, s);
    }
    fm_wgmma_fence();
    ask_sums(h, p, memory, n_block - 1);
    fm_wgmma_wait<0>();
    fm_wgmma_hold(h.o);
}

/* Blocks of the pass of which some row of the warpgroup sees a key. */
FM_DEVICE int blocks_of(const fm_mla_expanded_args &a, const tile &t, int row0)
{
    const int end = min(t.pos0 + min(row0 + ROWS, t.n_row), a.spans.key_end);
    return row0 < t.n_row ? max(end - a.spans.key_begin + KEYS - 1, 0) / KEYS : 0;
}

/* Through 4 KB of shared memory of each warp, to write whole rows. */
FM_DEVICE void store_rows(const fm_mla_expanded_args &a, const tile &t, const sums &h,
                          unsigned char *memory)
{
    const int      lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const float    f[2] = {1.0f / fm__quad_sum(h.sum[0]), 1.0f / fm__quad_sum(h.sum[1])};
    unsigned char *mine = memory + warp * (16 * V_DIM * 2);
#pragma unroll
    for (int j = 0; j < V_DIM / 8; j += 2) {
        const uint2    low = fm__result(h, f, j), high = fm__result(h, f, j + 1);
        const uint32_t r[4] = {low.x, low.y, high.x, high.y};
        fm_stmatrix_x4(fm__chunk(mine, V_DIM * 2, lane & 15, j + (lane >> 4)), r);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
        const int   from = i + lane / 16, row = warp * 16 + from;
        const uint4 v = *(const uint4 *)fm__chunk(mine, V_DIM * 2, from, lane % 16);
        if (row < t.n_row)
            *(uint4 *)(a.o + fm__expanded_row(a, t, row) * V_DIM + lane % 16 * 8) = v;
    }
}

FM_DEVICE void run_tile(const fm_mla_expanded_args &a, const tile &t, unsigned char *memory)
{
    const int group = (int)__shfl_sync(FM_WARP, threadIdx.x / 128, 0); /* known to be uniform */
    const int n_block = blocks_of(a, t, group * ROWS), n_all = (t.n_key + KEYS - 1) / KEYS;
    uint32_t  q[KEY_STEPS][4];
    sums      h = {{}, {-INFINITY, -INFINITY}, {0, 0}};
    fetch_queries(a, t, memory + QUERIES);
    for (int n = 0; n < AHEAD; n++) fetch_block(a, t, memory, n);
    if (a.spans.key_begin > 0) fm__load_state(a, t, h);
    fm_cp_async_wait<AHEAD>();
    __syncthreads();
    load_queries(q, memory + QUERIES);
    take_turn(t, 0); /* all have read their queries */

    if (n_block > 0) meet_blocks(a, t, h, q, memory, n_block, group > 0);
    fetch_block(a, t, memory, n_block + AHEAD);
    for (int n = n_block + 1; n < n_all; n++) { /* for the other warpgroup */
        take_turn(t, n);
        fetch_block(a, t, memory, n + AHEAD);
    }
    /* The stage behind the last block is unused. */
    if (fm__is_last_pass(a, t)) store_rows(a, t, h, memory + n_all % STAGES * STAGE);
    else if (a.state_o)         fm__store_state(a, t, h);
}

/* Tiles of a few heads together, the longest first, then those of the next few. */
FM_KERNEL(THREADS, 1) attend_wide(const fm_mla_expanded_args a)
{
    FM_SHARED_BYTES(memory);
    const int most = a.spans.max_tile, block = blockIdx.x;
    const int head0 = block / (HEADS * most) * HEADS, n_head = min(a.n_head - head0, (int)HEADS);
    const int within = block - head0 * most, number = within / n_head;
    fm_grid_wait();
    const fm_mla_tile at = a.spans.tile[number]; /* before it is known whether there is one */
    if (number >= *a.spans.n_tile) return;
    tile t  = fm__expanded_tile_of(a, at, head0 + within % n_head);
    t.nope  = NOPE;
    t.rope  = ROPE;
    t.v_dim = V_DIM;
    if (t.n_key > 0) run_tile(a, t, memory); /* else an earlier pass wrote its rows */
}

fm_status fm__mla_expanded_wide_init(void)
{
    FM_CUDA(fm_allow_shared(attend_wide, SHARED));
    return FM_OK;
}

fm_status fm__mla_expanded_wide(const fm_mla_expanded_args *a, fm_stream stream)
{
    const unsigned blocks = (unsigned)a->n_head * (unsigned)a->spans.max_tile;
    FM_LAUNCH(attend_wide, blocks, THREADS, SHARED, stream, *a);
    return fm_cuda_launched("mla expanded wide");
}
