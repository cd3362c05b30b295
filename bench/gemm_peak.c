/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/gemm_peak.h"

#include <immintrin.h>
#include <math.h>

#include "base/clock.h"

enum { ROUNDS = 400000, SUMS = 12 }; /* enough sums to hide the latency */

/* The compiler is not to know what is in these. */
#define UNKNOWN(a, b, c, d, e, f)                                                                  \
    __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f))

/* `step(s)` adds products of `a` to s. */
#define PEAK(name, isa, vector, zero, step, flops)                                                 \
    __attribute__((target(isa))) static double name(void)                                          \
    {                                                                                              \
        vector       s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero, a = zero;   \
        vector       s6 = zero, s7 = zero, s8 = zero, s9 = zero, s10 = zero, s11 = zero;           \
        const double began = fm_now();                                                             \
        UNKNOWN(s0, s1, s2, s3, s4, s5);                                                           \
        UNKNOWN(s6, s7, s8, s9, s10, s11);                                                         \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            s0 = step(s0), s1 = step(s1), s2 = step(s2), s3 = step(s3);                            \
            s4 = step(s4), s5 = step(s5), s6 = step(s6), s7 = step(s7);                            \
            s8 = step(s8), s9 = step(s9), s10 = step(s10), s11 = step(s11);                        \
            __asm__ volatile("" : "+v"(a));                                                        \
        }                                                                                          \
        UNKNOWN(s0, s1, s2, s3, s4, s5);                                                           \
        UNKNOWN(s6, s7, s8, s9, s10, s11);                                                         \
        return (double)ROUNDS * SUMS * (flops) / (fm_now() - began);                               \
    }

#define FMA_AVX2(s) _mm256_fmadd_ps(a, a, s)
#define FMA_AVX512(s) _mm512_fmadd_ps(a, a, s)
#define DOT_AVX512(s) _mm512_dpbf16_ps(s, (__m512bh)a, (__m512bh)a)

PEAK(peak_fma_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), FMA_AVX2, 16)
PEAK(peak_fma_avx512, "avx512f", __m512, _mm512_setzero_ps(), FMA_AVX512, 32)
PEAK(peak_dot_avx512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), DOT_AVX512, 64)

/* Four tiles of 16 x 16 sums over 32 k. */
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
