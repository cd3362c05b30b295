/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads where pages do not hold whole boxes of keys: copies of
 * 16 bytes, a stage's by warps of its own. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_COPY_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_COPY_CUH

#include "llm/kernel/cuda/attention/absorbed_feed.cuh"

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

/* Each lane reads what it copied itself: no barrier with other lanes is needed. */
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

/* All blocks of a stage. */
template <class S>
FM_DEVICE void run_copies(const fm_mla_absorbed_args &a, const wide_layout &m, int stage)
{
    query_turns turns = {};
    for (wide_block b = first_block<S>(a); is_there(b); go_on(a, b))
        if (stage_at(b.n) == stage)
            feed_block<S>(a, m, b.at, b.n, group_of<S>(b.k) * WIDE_HEADS, b.with_queries, turns);
}

#endif
