/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads over an e4m3 cache whose pages hold whole boxes: bytes
 * become bf16 in their stage, by the warpgroup that multiplies the block.
 *
 *     tiles of bf16     0 1 2 3  4   5   6   7   8
 *     and of bytes              0 1 2 3 4 5 6 7 8 -
 *
 * Two tiles of bytes lie side by side in the rows of one.  Tile t covers those of tiles
 * 2t - 8 and 2t - 7, of its own third or before. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_WIDEN_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_WIDEN_CUH

#include "llm/kernel/cuda/attention/absorbed_feed.cuh"

enum { WARP_KEYS = KEYS / 4, KEY_EIGHTS = WARP_KEYS / 8 }; /* of a warp of the warpgroup */

/* Four lanes have a key's tile.  Of eight lanes, whose accesses are one, the keys differ in
 * bits 0 and 2: both bytes and what they become lie in all banks. */
FM_DEVICE int key_of_lane(int warp, int i)
{
    const int lane = threadIdx.x & 31;
    return warp * WARP_KEYS + 8 * i + (lane / 8 ^ lane / 4 % 2 * 5);
}

FM_DEVICE void load_bytes_of(uint4 (&v)[KEY_EIGHTS], unsigned char *stage, int warp, int tile)
{
    unsigned char *from = stage + (ROW_TILES - BYTE_TILES + tile / 2) * TILE;
#pragma unroll
    for (int i = 0; i < KEY_EIGHTS; i++)
        v[i] = *(const uint4 *)fm__chunk(from, 128, key_of_lane(warp, i),
                                         tile % 2 * 4 + threadIdx.x % 4);
}

FM_DEVICE void store_widened_of(const uint4 (&v)[KEY_EIGHTS], unsigned char *stage, int warp,
                                int tile)
{
    const int c = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < KEY_EIGHTS; i++) {
        uint32_t       w[8];
        unsigned char *to  = stage + tile * TILE;
        const int      key = key_of_lane(warp, i);
        fm_bf16x4_of_e4m3x4(w, v[i].x);
        fm_bf16x4_of_e4m3x4(w + 2, v[i].y);
        fm_bf16x4_of_e4m3x4(w + 4, v[i].z);
        fm_bf16x4_of_e4m3x4(w + 6, v[i].w);
        *(uint4 *)fm__chunk(to, 128, key, c)     = make_uint4(w[0], w[1], w[2], w[3]);
        *(uint4 *)fm__chunk(to, 128, key, c + 1) = make_uint4(w[4], w[5], w[6], w[7]);
    }
}

/* A block, by thirds.  A warp's rows are its own: no other reads or covers them. */
FM_DEVICE void widen_block(const wide_layout &m, int stage, int phase, int warp)
{
    unsigned char *at = stage_of(m, stage);
#pragma unroll 1
    for (int third = 0; third < THIRDS; third++) {
        uint4 v[THIRD_TILES][KEY_EIGHTS];
        fm_mbarrier_wait(&m.full[stage * THIRDS + third], phase);
#pragma unroll
        for (int t = 0; t < THIRD_TILES; t++)
            load_bytes_of(v[t], at, warp, third * THIRD_TILES + t);
        __syncwarp();
#pragma unroll
        for (int t = 0; t < THIRD_TILES; t++)
            store_widened_of(v[t], at, warp, third * THIRD_TILES + t);
    }
    fm_tile_fence();
    fm_barrier(OWN + stage, GROUP);
}

#endif
