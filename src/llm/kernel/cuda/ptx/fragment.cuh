/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles in shared memory and the operands of mma.m16n8k16 in registers.
 *
 * Weights are the m16 operand and tokens the n8 operand in every product here,
 * so that a tile shape never changes the sum of an output: one mma after the
 * other, k ascending.
 *
 * Rows of a tile are 128 or 256 bytes, and the 16-byte chunks of a row are
 * permuted by its number so that the eight rows of an 8x8 matrix lie in eight
 * different groups of banks.
 *
 * E4M3 weights.  ldmatrix moves pairs of bytes as if they were 16-bit elements:
 * a lane receives the four bytes k = 4c..4c+3 of its row (c = lane%4) where a
 * bf16 fragment has k = 2c, 2c+1, 2c+8, 2c+9.  The product does not care which
 * k is called which, as long as both operands agree: tokens are then read with
 * one 8-byte load, k = 4c..4c+3, and the weights need no rearranging. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_FRAGMENT_CUH
#define FM_LLM_KERNEL_CUDA_PTX_FRAGMENT_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"

/* Byte of chunk `c` of row `r`: what ldmatrix reads. */
template <int ROW_BYTES> FM_DEVICE int fm__chunk(int r, int c)
{
    return r * ROW_BYTES + ((c ^ (r & 7)) << 4);
}

/* The same for rows of tokens that are multiplied with E4M3 weights: four rows of two chunks
 * each, half a warp's 8-byte loads, lie in different banks. */
template <int ROW_BYTES> FM_DEVICE int fm__chunk_pair(int r, int c)
{
    return r * ROW_BYTES + ((c ^ (r & 3) << 1) << 4);
}

/* BF16 weights: rows row0..row0+15, k of chunks c and c+1, as one m16k16 operand. */
template <int ROW_BYTES>
FM_DEVICE void fm__weights_bf16(uint32_t a[4], const uint8_t *tile, int row0, int c)
{
    const int lane = threadIdx.x & 31;
    fm_ldmatrix_x4(a, tile + fm__chunk<ROW_BYTES>(row0 + (lane & 15), c + (lane >> 4)));
}

/* BF16 tokens row0..row0+7, k of chunks c..c+3: the n8 operands of two k16 steps. */
template <int ROW_BYTES>
FM_DEVICE void fm__tokens_bf16(uint32_t b[4], const uint8_t *tile, int row0, int c)
{
    const int lane = threadIdx.x & 31;
    fm_ldmatrix_x4(b, tile + fm__chunk<ROW_BYTES>(row0 + (lane & 7), c + (lane >> 3)));
}

/* E4M3 weights: rows row0..row0+15, 32 k of chunks c and c+1: two m16k16 operands. */
template <int ROW_BYTES>
FM_DEVICE void fm__weights_e4m3(uint32_t a[2][4], const uint8_t *tile, int row0, int c)
{
    const int lane = threadIdx.x & 31;
    uint32_t  byte4[4];
    fm_ldmatrix_x4(byte4, tile + fm__chunk<ROW_BYTES>(row0 + (lane & 15), c + (lane >> 4)));
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t v[2];
        fm_bf16x4_of_e4m3x4(v, byte4[i]);
        a[i >> 1][i & 1]       = v[0];
        a[i >> 1][(i & 1) + 2] = v[1];
    }
}

/* The tokens for E4M3 weights: the n8 operand of k16 step `s`, k permuted as the weights' is. */
template <int ROW_BYTES>
FM_DEVICE void fm__tokens_e4m3(uint32_t b[2], const uint8_t *tile, int row0, int s)
{
    const int   lane = threadIdx.x & 31;
    const int   at   = fm__chunk_pair<ROW_BYTES>(row0 + (lane >> 2), 2 * s + (lane >> 1 & 1));
    const uint2 v    = *(const uint2 *)(tile + at + (lane & 1) * 8);
    b[0]             = v.x;
    b[1]             = v.y;
}

/* An m16n8 result has a row of two tokens in each lane.  Lanes of neighbouring
 * rows swap one value: afterwards pair[h] holds rows 2(lane/8) + 8h and the next
 * of token fm__pair_token(), which a row-major output stores at once. */
FM_DEVICE int fm__pair_token()
{
    const int lane = threadIdx.x & 31;
    return 2 * (lane & 3) + (lane >> 2 & 1);
}

FM_DEVICE int fm__pair_row()
{
    return (threadIdx.x & 31) >> 3 << 1;
}

FM_DEVICE void fm__pair_rows(float2 pair[2], const float d[4])
{
    const bool odd = (threadIdx.x & 31) >> 2 & 1;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float mine = odd ? d[2 * h + 1] : d[2 * h], other = odd ? d[2 * h] : d[2 * h + 1];
        const float got = fm_shfl_xor(other, 4);
        pair[h]         = odd ? make_float2(got, mine) : make_float2(mine, got);
    }
}

/* SwiGLU of one channel, far closer than the bf16 it becomes: a task's sums are gated at
 * once while no product runs. */
FM_DEVICE float fm__gated(float gate, float up)
{
    return __fdividef(gate, 1 + __expf(-gate)) * up;
}

#endif
