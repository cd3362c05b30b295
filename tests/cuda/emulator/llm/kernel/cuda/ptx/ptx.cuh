/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's twin of src/llm/kernel/cuda/ptx/ptx.cuh: the same contracts, in
 * the same order. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_CUH
#define FM_LLM_KERNEL_CUDA_PTX_CUH

#include <stdint.h>
#include <time.h>

#include "base/number.h"
#include "llm/kernel/cuda/ptx/launch.cuh"
#include "product.h"

#define FM_WARP 0xffffffffu

/* --- asynchronous copies ---------------------------------------------------- */

FM_DEVICE void fm_cp_async16(void *smem, const void *gmem, bool pred)
{
    fm_emu_copy(smem, gmem, 16, pred);
}

FM_DEVICE void fm_cp_async4(void *smem, const void *gmem, bool pred)
{
    fm_emu_copy(smem, gmem, 4, pred);
}

FM_DEVICE void fm_cp_async_commit()
{
    fm_emu_copy_commit();
}

template <int N> FM_DEVICE void fm_cp_async_wait()
{
    fm_emu_copy_wait(N);
}

/* --- 8x8 matrices ----------------------------------------------------------- */

struct fm_emu_matrices {
    uint32_t   *r;
    const void *row;
};

/* Element (i, j) of matrix m is with lane 4i + j/2, or transposed 4j + i/2. */
template <int N, bool TRANS, bool STORE> void fm_emu_move_matrices(void *const *all, unsigned)
{
    for (int m = 0; m < N; m++)
        for (int i = 0; i < 8; i++) {
            char *row = (char *)((fm_emu_matrices *)all[8 * m + i])->row;
            fm_emu_need_shared(STORE ? "stmatrix" : "ldmatrix", row, 16, 16);
            for (int j = 0; j < 8; j += TRANS ? 1 : 2) {
                const int lane = TRANS ? 4 * j + i / 2 : 4 * i + j / 2, bytes = TRANS ? 2 : 4;
                char *in_register = (char *)&((fm_emu_matrices *)all[lane])->r[m] + (TRANS ? i % 2 * 2 : 0);
                if (STORE) memcpy(row + 2 * j, in_register, bytes);
                else memcpy(in_register, row + 2 * j, bytes);
            }
        }
}

FM_DEVICE void fm_ldmatrix_x4(uint32_t r[4], const void *row)
{
    fm_emu_matrices mine = {r, row};
    fm_emu_meet("ldmatrix.x4", FM_WARP, &mine, fm_emu_move_matrices<4, false, false>);
}

FM_DEVICE void fm_ldmatrix_x4_trans(uint32_t r[4], const void *row)
{
    fm_emu_matrices mine = {r, row};
    fm_emu_meet("ldmatrix.x4.trans", FM_WARP, &mine, fm_emu_move_matrices<4, true, false>);
}

FM_DEVICE void fm_ldmatrix_x2_trans(uint32_t r[2], const void *row)
{
    fm_emu_matrices mine = {r, row};
    fm_emu_meet("ldmatrix.x2.trans", FM_WARP, &mine, fm_emu_move_matrices<2, true, false>);
}

FM_DEVICE void fm_stmatrix_x4(void *row, const uint32_t r[4])
{
    fm_emu_matrices mine = {const_cast<uint32_t *>(r), row};
    fm_emu_meet("stmatrix.x4", FM_WARP, &mine, fm_emu_move_matrices<4, false, true>);
}

FM_DEVICE void fm_mma_bf16_16816(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    fm_emu_product mine = {d, a, b};
    fm_emu_meet("mma.m16n8k16", FM_WARP, &mine, fm_emu_multiply);
}

/* --- within a warp ---------------------------------------------------------- */

FM_DEVICE int fm_lane_here() { return threadIdx.x & 31; }

FM_DEVICE float fm_shfl_xor(float x, int lanes)
{
    return __shfl_xor_sync(FM_WARP, x, lanes);
}

FM_DEVICE float fm_shfl_down(float x, int lanes)
{
    return __shfl_down_sync(FM_WARP, x, (unsigned)lanes);
}

FM_DEVICE float fm_warp_sum(float x)
{
    for (int lanes = 16; lanes; lanes /= 2) x += fm_shfl_xor(x, lanes);
    return x;
}

FM_DEVICE float fm_warp_max(float x)
{
    for (int lanes = 16; lanes; lanes /= 2) x = fmaxf(x, fm_shfl_xor(x, lanes));
    return x;
}

/* --- between warps and grids ------------------------------------------------ */

FM_DEVICE void fm_barrier(int id, int threads)
{
    fm_emu_barrier(id, threads);
}

FM_DEVICE void fm_barrier_arrive(int id, int threads)
{
    fm_emu_barrier_arrive(id, threads);
}

FM_DEVICE void fm_grid_wait()
{
}

FM_DEVICE void fm_grid_release()
{
}

/* Not the host's clock: of another epoch, and one part in ten thousand fast. */
FM_DEVICE uint64_t fm_device_clock()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    return ns + ns / 10000 + 77000000000u;
}

/* --- numbers ---------------------------------------------------------------- */

FM_DEVICE uint32_t fm_bf16x2_of_f32(float lo, float hi)
{
    return (uint32_t)fm_bf16_of_f32(hi) << 16 | fm_bf16_of_f32(lo);
}

FM_DEVICE float fm_f32_of_bf16_lo(uint32_t v)
{
    return fm_emu_half_of(v, 0);
}

FM_DEVICE float fm_f32_of_bf16_hi(uint32_t v)
{
    return fm_emu_half_of(v, 1);
}

static inline uint16_t fm_emu_f16(float x)
{
    const uint16_t sign = (uint16_t)(fm_bits_of_f32(x) >> 31 << 15);
    const float    m    = fabsf(x);
    if (isnan(x)) return 0x7fff;
    if (m >= 65504) return sign | 0x7bff;
    if (m == 0) return sign;
    int exponent;
    frexpf(m, &exponent); /* m < 2^exponent */
    const int   unit = (exponent < -13 ? -13 : exponent) - 11; /* 2^unit between neighbours */
    const float n    = nearbyintf(ldexpf(m, -unit));           /* 0 … 2048, ties to even */
    return (uint16_t)(sign | (((unit + 24) << 10) + (int)n));
}

FM_DEVICE uint32_t fm_f16x2_of_f32(float lo, float hi)
{
    return (uint32_t)fm_emu_f16(hi) << 16 | fm_emu_f16(lo);
}

FM_DEVICE float2 fm_f32_of_f16x2(uint32_t v)
{
    return make_float2(fm_f32_of_f16((uint16_t)v), fm_f32_of_f16((uint16_t)(v >> 16)));
}

FM_DEVICE uint32_t fm_mul_bf16x2(uint32_t a, uint32_t b)
{
    return fm_bf16x2_of_f32(fm_f32_of_bf16_lo(a) * fm_f32_of_bf16_lo(b),
                            fm_f32_of_bf16_hi(a) * fm_f32_of_bf16_hi(b));
}

FM_DEVICE uint32_t fm_bytes_or_signs(uint32_t x, uint32_t selector)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t digit = selector >> 4 * i & 15, byte = x >> 8 * (digit & 3) & 0xff;
        v |= (digit & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << 8 * i;
    }
    return v;
}

template <int I> FM_DEVICE uint32_t fm_bf16x2_of_e4m3(uint32_t e4m3x4)
{
    const uint32_t wide = fm_bytes_or_signs(e4m3x4, 0x9180 + 0x1111 * I);
    return fm_mul_bf16x2(wide * 16 & 0x87f087f0u, 0x7b807b80u);
}

FM_DEVICE void fm_bf16x4_of_e4m3x4(uint32_t bf16x2[2], uint32_t e4m3x4)
{
    bf16x2[0] = fm_bf16x2_of_e4m3<0>(e4m3x4);
    bf16x2[1] = fm_bf16x2_of_e4m3<2>(e4m3x4);
}

static inline uint8_t fm_emu_e4m3(float x)
{
    const uint8_t sign = (uint8_t)(fm_bits_of_f32(x) >> 31 << 7);
    const float   m    = fabsf(x);
    if (isnan(x)) return 0x7f;
    if (m >= 448) return sign | 0x7e;
    if (m == 0) return sign;
    int exponent;
    frexpf(m, &exponent); /* m < 2^exponent */
    const int   unit = (exponent < -5 ? -5 : exponent) - 4; /* 2^unit between neighbours */
    const float n    = nearbyintf(ldexpf(m, -unit));        /* 0 … 16, ties to even */
    return (uint8_t)(sign | (((unit + 9) << 3) + (int)n));
}

FM_DEVICE uint16_t fm_e4m3x2_of_f32(float lo, float hi)
{
    return (uint16_t)(fm_emu_e4m3(hi) << 8 | fm_emu_e4m3(lo));
}

FM_DEVICE float fm_exp2_fast(float x)
{
    return exp2f(x);
}

#endif
