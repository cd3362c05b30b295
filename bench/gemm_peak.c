/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/gemm_peak.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"

enum { ROUNDS = 400000, SUMS = 12 }; /* enough sums to hide the latency */

#define PEAK(name, isa, vector, start, step, flops)                                                \
    __attribute__((target(isa))) static double name(void)                                          \
    {                                                                                              \
        vector       sum[SUMS];                                                                    \
        const double began = fm_now();                                                             \
        for (int i = 0; i < SUMS; i++) sum[i] = start;                                             \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++)                                \
            {                                                                                      \
                sum[i] = step;                                                                     \
                __asm__ volatile("" : "+v"(sum[i]));                                               \
            }                                                                                      \
        }                                                                                          \
        return (double)ROUNDS * SUMS * (flops) / (fm_now() - began);                               \
    }

PEAK(peak_fma_avx2, "avx2,fma", __m256, _mm256_setzero_ps(),
     _mm256_fmadd_ps(sum[i], sum[i], sum[i]), 16)
PEAK(peak_fma_avx512, "avx512f", __m512, _mm512_setzero_ps(),
     _mm512_fmadd_ps(sum[i], sum[i], sum[i]), 32)
PEAK(peak_dot_avx512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
     _mm512_dpbf16_ps(sum[i], (__m512bh)sum[i], (__m512bh)sum[i]), 64)

/* Four tiles of 16 x 16 sums over 32 k, as the kernel has them. */
__attribute__((target("amx-tile,amx-bf16"))) static double peak_dot_amx(void)
{
    struct {
        unsigned char  palette, start_row, reserved[14];
        unsigned short row_bytes[16];
        unsigned char  rows[16];
    } shapes = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        shapes.row_bytes[t] = 64;
        shapes.rows[t]      = 16;
    }
    __asm__ volatile("" ::"r"(&shapes) : "memory");
    _tile_loadconfig(&shapes);
    const double began = fm_now();
    for (int r = 0; r < ROUNDS / 8; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    return ROUNDS / 8 * 4 * 16.0 * 16 * 32 * 2 / (fm_now() - began);
}

static double once(fm_isa isa, fm_dtype type)
{
    if (isa == FM_ISA_REF) return 0;
    if (isa == FM_ISA_AVX2) return peak_fma_avx2();
    if (type == FM_F32) return peak_fma_avx512();
    return isa == FM_ISA_AMX ? peak_dot_amx() : peak_dot_avx512();
}

double fm_bench_peak(fm_isa isa, fm_dtype type)
{
    double best = 0;
    for (int i = 0; i < 5; i++) best = fmax(best, once(isa, type));
    return best;
}
