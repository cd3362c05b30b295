/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma of E4M3 operands: 64 rows of a and N columns of b, both tiles of shared memory
 * (wgmma.cuh) with 128 k in the 128 bytes of a row; a product takes 32 k, the next 32 lie at
 * fm_tile_at(t, 32).
 *
 * Precision.  Inside a step the tensor core keeps about 13 bits below the largest term, the sum
 * so far among them: 1.2e-4 of the sum of absolute products at 32 k, 1.6e-4 at 128 (measured on
 * an H200).  Sums of more than 128 k are therefore added in f32.  The bits of an output depend on
 * its own 32 k operands and its sum alone: not on N, nor on which operand is a.
 * The emulator's twin models this by cutting every term 13 bits below the largest. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_WGMMA_E4M3_CUH
#define FM_LLM_KERNEL_CUDA_PTX_WGMMA_E4M3_CUH

#include "llm/kernel/cuda/ptx/wgmma.cuh"

/* A tile by row whose groups of 8 rows lie `apart` bytes from each other: with 2048, every other
 * group of a matrix of 128 rows. */
FM_DEVICE fm_tile fm_tile_by_groups(const void *smem, int apart)
{
    return fm_tile_base(smem) | 1ull << 16 | (fm_tile)(apart >> 4) << 32 | 1ull << 62;
}

#define FM_D48                                                                                     \
    FM_D32                                                                                         \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define FM_D72                                                                                     \
    FM_D64                                                                                         \
    ", %64, %65, %66, %67, %68, %69, %70, %71"
#define FM_D80                                                                                     \
    FM_D72                                                                                         \
    ", %72, %73, %74, %75, %76, %77, %78, %79"
#define FM_D96                                                                                     \
    FM_D80                                                                                         \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define FM_O48(d, i) FM_O32(d, i), FM_O16(d, i + 32)
#define FM_O72(d, i) FM_O64(d, i), FM_O8(d, i + 64)
#define FM_O80(d, i) FM_O64(d, i), FM_O16(d, i + 64)
#define FM_O96(d, i) FM_O64(d, i), FM_O32(d, i + 64)

template <int N> struct fm_wgmma_bytes;

#define FM_WGMMA_E4M3(N, R, A, B, P)                                                               \
    template <> struct fm_wgmma_bytes<N> {                                                         \
        FM_DEVICE void ss(float (&d)[R], fm_tile a, fm_tile b, bool add)                           \
        {                                                                                          \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #P ", 0;"                              \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" FM_D##R      \
                         "}, %" #A ", %" #B ", p, 1, 1; }"                                         \
                         : FM_O##R(d, 0)                                                           \
                         : "l"(a), "l"(b), "r"((int)add));                                         \
        }                                                                                          \
    };

FM_WGMMA_E4M3(8, 4, 4, 5, 6)
FM_WGMMA_E4M3(16, 8, 8, 9, 10)
FM_WGMMA_E4M3(32, 16, 16, 17, 18)
FM_WGMMA_E4M3(64, 32, 32, 33, 34)
FM_WGMMA_E4M3(96, 48, 48, 49, 50)
FM_WGMMA_E4M3(128, 64, 64, 65, 66)
FM_WGMMA_E4M3(144, 72, 72, 73, 74)
FM_WGMMA_E4M3(160, 80, 80, 81, 82)
FM_WGMMA_E4M3(192, 96, 96, 97, 98)
#undef FM_WGMMA_E4M3

/* d += a b for 32 k, or with add false d = a b; d as in fm_wgmma_ss. */
template <int N>
FM_DEVICE void fm_wgmma_e4m3(float (&d)[N / 2], fm_tile a, fm_tile b, bool add = true)
{
    fm_wgmma_bytes<N>::ss(d, a, b, add);
}

#endif
