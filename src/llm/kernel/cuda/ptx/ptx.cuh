/* SPDX-License-Identifier: Apache-2.0 */
/* One wrapper per instruction.  Each of these has a twin with the same
 * contract in tests/cuda/emulator/llm/kernel/cuda/ptx/ptx.cuh; instructions that
 * are not emulated (TMA, mbarrier, wgmma) belong in a header of their own.
 *
 * Whole warps call the collectives: shuffles, ldmatrix, mma. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_PTX_CUH
#define FM_LLM_KERNEL_CUDA_PTX_PTX_CUH

#include <stdint.h>

#include "llm/kernel/cuda/ptx/launch.cuh"

#define FM_WARP 0xffffffffu

FM_DEVICE uint32_t fm_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* --- asynchronous copies, both sides aligned to their size ------------------ */

/* pred false writes zeros and reads nothing.  Landed only after a wait, and
 * seen by other threads only after a barrier behind it. */
FM_DEVICE void fm_cp_async16(void *smem, const void *gmem, bool pred)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                     fm_shared_address(smem)),
                 "l"(__cvta_generic_to_global(gmem)), "r"(pred ? 16 : 0)
                 : "memory");
}

/* The same of 4 bytes, both sides aligned to that. */
FM_DEVICE void fm_cp_async4(void *smem, const void *gmem, bool pred)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(fm_shared_address(smem)),
                 "l"(__cvta_generic_to_global(gmem)), "r"(pred ? 4 : 0)
                 : "memory");
}

FM_DEVICE void fm_cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most N of this thread's committed groups are still in flight. */
template <int N> FM_DEVICE void fm_cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* --- 8x8 matrices of 16-bit elements between shared memory and registers ---- */

/* Lane 8j+i names row i (16 bytes, aligned) of matrix j; r[j] of lane l becomes
 * elements 2(l%4), 2(l%4)+1 of row l/4; transposed: of column l/4. */
FM_DEVICE void fm_ldmatrix_x4(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(fm_shared_address(row))
                 : "memory");
}

FM_DEVICE void fm_ldmatrix_x4_trans(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(fm_shared_address(row))
                 : "memory");
}

/* Rows from lanes 0..15; the other lanes' addresses are not used. */
FM_DEVICE void fm_ldmatrix_x2_trans(uint32_t r[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(fm_shared_address(row))
                 : "memory");
}

/* The inverse of fm_ldmatrix_x4. */
FM_DEVICE void fm_stmatrix_x4(void *row, const uint32_t r[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     fm_shared_address(row)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

/* d[16,8] += a[16,16] b[16,8], f32 sums.  With g = lane/4 and t = 2(lane%4):
 *     a[0] row g,   k t, t+1     a[1] row g+8, k t, t+1
 *     a[2] row g,   k t+8, t+9   a[3] row g+8, k t+8, t+9
 *     b[0] k t, t+1, column g    b[1] k t+8, t+9, column g
 *     d[0], d[1] row g, columns t, t+1     d[2], d[3] row g+8 */
FM_DEVICE void fm_mma_bf16_16816(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* --- within a warp ---------------------------------------------------------- */

/* The lane, read where it stands: what depends on it is not kept in registers for a whole loop. */
FM_DEVICE int fm_lane_here()
{
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

FM_DEVICE float fm_shfl_xor(float x, int lanes)
{
    return __shfl_xor_sync(FM_WARP, x, lanes);
}

FM_DEVICE float fm_shfl_down(float x, int lanes)
{
    return __shfl_down_sync(FM_WARP, x, lanes);
}

/* Pairwise, the same order and the same bits in every lane. */
FM_DEVICE float fm_warp_sum(float x)
{
#pragma unroll
    for (int lanes = 16; lanes; lanes /= 2) x += fm_shfl_xor(x, lanes);
    return x;
}

FM_DEVICE float fm_warp_max(float x)
{
#pragma unroll
    for (int lanes = 16; lanes; lanes /= 2) x = fmaxf(x, fm_shfl_xor(x, lanes));
    return x;
}

/* --- between warps and grids ------------------------------------------------ */

/* `threads` threads, whole warps, meet at barrier `id` (1..15; 0 is __syncthreads). */
FM_DEVICE void fm_barrier(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Counts as one that came there, but does not wait: what it wrote is seen by those who
 * do.  `threads` are all that come, waiting or not. */
FM_DEVICE void fm_barrier_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Until everything before this grid in the stream is finished and visible. */
FM_DEVICE void fm_grid_wait()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* The next grid of the stream may begin its part before fm_grid_wait(). */
FM_DEVICE void fm_grid_release()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* Nanoseconds of a clock that all multiprocessors share. */
FM_DEVICE uint64_t fm_device_clock()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/* --- numbers ---------------------------------------------------------------- */

/* lo in bits 0..15; to nearest even */
FM_DEVICE uint32_t fm_bf16x2_of_f32(float lo, float hi)
{
    uint32_t v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
    return v;
}

FM_DEVICE float fm_f32_of_bf16_lo(uint32_t v)
{
    return __uint_as_float(v << 16);
}

FM_DEVICE float fm_f32_of_bf16_hi(uint32_t v)
{
    return __uint_as_float(v & 0xffff0000u);
}

/* lo in bits 0..15; to nearest even, at most +-65504 */
FM_DEVICE uint32_t fm_f16x2_of_f32(float lo, float hi)
{
    uint32_t v;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
    return v;
}

FM_DEVICE float2 fm_f32_of_f16x2(uint32_t v)
{
    float2 x;
    asm("{ .reg .b16 lo, hi;\n\t"
        "mov.b32 {lo, hi}, %2;\n\t"
        "cvt.f32.f16 %0, lo;\n\t"
        "cvt.f32.f16 %1, hi; }"
        : "=f"(x.x), "=f"(x.y)
        : "r"(v));
    return x;
}

FM_DEVICE uint32_t fm_mul_bf16x2(uint32_t a, uint32_t b)
{
    uint32_t v;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

/* Four bytes of x: a hex digit of the selector names one, plus 8 its sign eight times. */
FM_DEVICE uint32_t fm_bytes_or_signs(uint32_t x, uint32_t selector)
{
    uint32_t v;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(v) : "r"(x), "r"(selector));
    return v;
}

/* e4m3 bytes I and I+1 of four, exactly; the two NaN codes become +-480.  The byte's
 * sign and its other bits moved into place are the value * 2^-120.  Half of the four
 * instructions are multiplications: shifts and masks have half the throughput. */
template <int I> FM_DEVICE uint32_t fm_bf16x2_of_e4m3(uint32_t e4m3x4)
{
    const uint32_t wide = fm_bytes_or_signs(e4m3x4, 0x9180 + 0x1111 * I); /* 16-bit integers */
    return fm_mul_bf16x2(wide * 16 & 0x87f087f0u, 0x7b807b80u /* 2^120, twice */);
}

FM_DEVICE void fm_bf16x4_of_e4m3x4(uint32_t bf16x2[2], uint32_t e4m3x4)
{
    bf16x2[0] = fm_bf16x2_of_e4m3<0>(e4m3x4);
    bf16x2[1] = fm_bf16x2_of_e4m3<2>(e4m3x4);
}

/* To nearest even, at most +-448; lo in bits 0..7. */
FM_DEVICE uint16_t fm_e4m3x2_of_f32(float lo, float hi)
{
    uint16_t v;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(v) : "f"(hi), "f"(lo));
    return v;
}

/* 2^x to about 2 ulp; -inf gives 0 */
FM_DEVICE float fm_exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
