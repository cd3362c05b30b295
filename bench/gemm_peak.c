/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/gemm_peak.h"

#include <immintrin.h>
#include <math.h>

#include "base/clock.h"
#include "base/rng.h"

#define WANTED(a, b, c, d, e, f)                                                                   \
    __asm__ volatile("" ::"v"(a), "v"(b), "v"(c), "v"(d), "v"(e), "v"(f))

enum { ROUNDS = 400000, SUMS = 12, TILES = 8 }; /* enough sums to hide the latency */

typedef struct {
    unsigned char  palette, start_row, reserved[14];
    unsigned short row_bytes[16];
    unsigned char  rows[16];
} shapes;

/* Numbers of either sign as bf16 pairs or as f32: zeros draw less current and so run faster than
 * what is ever multiplied in earnest. */
void fm_bench_numbers(void *p, size_t bytes)
{
    uint32_t *to = p;
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        to[i] = (fm_rng_u32(7, i) & 0x807f807f) | 0x3f003f00;
}

/* `step(s)` adds products of `a` to s. */
#define PEAK(name, isa, vector, step, flops)                                                       \
    __attribute__((target(isa))) static double name(void)                                          \
    {                                                                                              \
        vector x[SUMS + 1];                                                                        \
        fm_bench_numbers(x, sizeof x);                                                             \
        vector       s0 = x[0], s1 = x[1], s2 = x[2], s3 = x[3], s4 = x[4], s5 = x[5], a = x[12];  \
        vector       s6 = x[6], s7 = x[7], s8 = x[8], s9 = x[9], s10 = x[10], s11 = x[11];         \
        const double began = fm_now();                                                             \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            s0 = step(s0), s1 = step(s1), s2 = step(s2), s3 = step(s3);                            \
            s4 = step(s4), s5 = step(s5), s6 = step(s6), s7 = step(s7);                            \
            s8 = step(s8), s9 = step(s9), s10 = step(s10), s11 = step(s11);                        \
            __asm__ volatile("" : "+v"(a));                                                        \
        }                                                                                          \
        WANTED(s0, s1, s2, s3, s4, s5);                                                            \
        WANTED(s6, s7, s8, s9, s10, s11);                                                          \
        return (double)ROUNDS * SUMS * (flops) / (fm_now() - began);                               \
    }

#define FMA_AVX2(s) _mm256_fmadd_ps(a, a, s)
#define FMA_AVX512(s) _mm512_fmadd_ps(a, a, s)
#define DOT_AVX512(s) _mm512_dpbf16_ps(s, (__m512bh)a, (__m512bh)a)

PEAK(peak_fma_avx2, "avx2,fma", __m256, FMA_AVX2, 16)
PEAK(peak_fma_avx512, "avx512f", __m512, FMA_AVX512, 32)
PEAK(peak_dot_avx512, "avx512f,avx512bf16", __m512, DOT_AVX512, 64)

#define AMX __attribute__((target("amx-tile,amx-bf16")))

/* Four products at a time.  More tiles hide more latency, fewer leave room to rename them where
 * another hyperthread is at work. */
AMX static void on_eight_tiles(void)
{
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

AMX static void on_six_tiles(void)
{
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
}

AMX static void on_four_tiles(void)
{
    _tile_dpbf16ps(0, 2, 3);
    _tile_dpbf16ps(1, 2, 3);
    _tile_dpbf16ps(0, 2, 3);
    _tile_dpbf16ps(1, 2, 3);
}

AMX static void load_numbers(int n_tile)
{
    _Alignas(64) char x[TILES][1024];
    shapes            all = {.palette = 1};
    fm_bench_numbers(x, sizeof x);
    for (int t = 0; t < TILES; t++) all.row_bytes[t] = 64, all.rows[t] = 16;
    __asm__ volatile("" ::"r"(&all), "r"(x) : "memory");
    _tile_loadconfig(&all); /* zeros, which take no room, in all of them */
    _tile_loadd(0, x[0], 64);
    _tile_loadd(1, x[1], 64);
    _tile_loadd(2, x[2], 64);
    _tile_loadd(3, x[3], 64);
    if (n_tile > 4) _tile_loadd(4, x[4], 64);
    if (n_tile > 4) _tile_loadd(5, x[5], 64);
    if (n_tile > 6) _tile_loadd(6, x[6], 64);
    if (n_tile > 6) _tile_loadd(7, x[7], 64);
}

#define PEAK_AMX(name, products, n_tile)                                                           \
    AMX static double name(void)                                                                   \
    {                                                                                              \
        load_numbers(n_tile);                                                                      \
        const double began = fm_now();                                                             \
        for (int r = 0; r < ROUNDS / 16; r++) products();                                          \
        return ROUNDS / 16 * 4 * 16.0 * 16 * 32 * 2 / (fm_now() - began);                          \
    }

PEAK_AMX(peak_of_eight, on_eight_tiles, 8)
PEAK_AMX(peak_of_six, on_six_tiles, 6)
PEAK_AMX(peak_of_four, on_four_tiles, 4)

static double peak_dot_amx(void)
{
    return fmax(peak_of_eight(), fmax(peak_of_six(), peak_of_four()));
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
