/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of bf16 rows in shared memory for attention: swizzled addresses, mma fragments, and the
 * steps of an online softmax.
 *
 * A row is a multiple of 128 bytes; its 16-byte chunk c lies at c ^ (row % 8),
 * so that eight rows read at one column touch all banks once. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_TILE_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_TILE_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"

static const float fm__log2_e = 1.44269504f; /* exponentials are powers of two here */

FM_DEVICE unsigned char *fm__chunk(unsigned char *tile, int row_bytes, int row, int chunk)
{
    return tile + row * row_bytes + ((chunk ^ (row & 7)) << 4);
}

/* a[16,16] of rows row.. and columns 8*chunk.. */
FM_DEVICE void fm__load_a(uint32_t a[4], unsigned char *tile, int row_bytes, int row, int chunk)
{
    const int lane = threadIdx.x & 31;
    fm_ldmatrix_x4(a, fm__chunk(tile, row_bytes, row + (lane & 15), chunk + (lane >> 4)));
}

/* b of eight keys and 32 of their columns: b[0..1] for the first 16, b[2..3] for the others */
FM_DEVICE void fm__load_keys8(uint32_t b[4], unsigned char *tile, int row_bytes, int row, int chunk)
{
    const int lane = threadIdx.x & 31;
    fm_ldmatrix_x4(b, fm__chunk(tile, row_bytes, row + (lane & 7), chunk + (lane >> 3)));
}

/* b of sixteen keys and 16 of their columns: b[0..1] for the first 8 keys, then the others */
FM_DEVICE void fm__load_keys16(uint32_t b[4], unsigned char *tile, int row_bytes, int row,
                               int chunk)
{
    const int lane = threadIdx.x & 31;
    fm_ldmatrix_x4(b, fm__chunk(tile, row_bytes, row + (lane & 7) + (lane >> 4 << 3),
                                chunk + (lane >> 3 & 1)));
}

/* b of sixteen values, summed over, and 16 of their columns: b[0..1] for the first 8 columns */
FM_DEVICE void fm__load_values(uint32_t b[4], unsigned char *tile, int row_bytes, int row,
                               int chunk)
{
    const int lane = threadIdx.x & 31;
    fm_ldmatrix_x4_trans(b, fm__chunk(tile, row_bytes, row + (lane & 15), chunk + (lane >> 4)));
}

/* Over the four lanes that share a row of an accumulator. */
FM_DEVICE float fm__quad_max(float x)
{
    x = fmaxf(x, fm_shfl_xor(x, 1));
    return fmaxf(x, fm_shfl_xor(x, 2));
}

FM_DEVICE float fm__quad_sum(float x)
{
    x += fm_shfl_xor(x, 1);
    return x + fm_shfl_xor(x, 2);
}

/* Where the token at position `pos` lies; the table is the sequence's own. */
FM_DEVICE int fm__slot(const int32_t *table, int page_size, int pos)
{
    return table[pos / page_size] * page_size + pos % page_size;
}

#endif
