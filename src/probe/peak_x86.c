/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of multiply-adds for x86-64; elsewhere there are none. */
#include "probe/peak_internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/clock.h"

#define WANTED(a, b, c, d, e, f)                                                                   \
    __asm__ volatile("" ::"v"(a), "v"(b), "v"(c), "v"(d), "v"(e), "v"(f))

enum { ROUNDS = 400000, SUMS = 12, TILES = 8 }; /* enough sums to hide the latency */

typedef struct {
    unsigned char  palette, start_row, reserved[14];
    unsigned short row_bytes[16];
    unsigned char  rows[16];
} shapes;

/* `step(s)` adds products of `a` to s. */
#define PEAK(name, isa, vector, step, flops)                                                       \
    __attribute__((target(isa))) static fm__work name(void)                                        \
    {                                                                                              \
        vector x[SUMS + 1];                                                                        \
        fm_peak_numbers(x, sizeof x);                                                             \
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
        return (fm__work){(double)ROUNDS * SUMS * (flops), fm_now() - began};                        \
    }

#define FMA_SSE2(s) _mm_add_ps(_mm_mul_ps(a, a), s)
#define FMA_SSE2_F64(s) _mm_add_pd(_mm_mul_pd(a, a), s)
#define FMA_AVX2(s) _mm256_fmadd_ps(a, a, s)
#define FMA_AVX2_F64(s) _mm256_fmadd_pd(a, a, s)
#define FMA_AVX512(s) _mm512_fmadd_ps(a, a, s)
#define FMA_AVX512_F64(s) _mm512_fmadd_pd(a, a, s)
#define DOT_AVX512(s) _mm512_dpbf16_ps(s, (__m512bh)a, (__m512bh)a)

PEAK(peak_sse2, "sse2", __m128, FMA_SSE2, 8)
PEAK(peak_sse2_f64, "sse2", __m128d, FMA_SSE2_F64, 4)
PEAK(peak_fma_avx2_f64, "avx2,fma", __m256d, FMA_AVX2_F64, 8)
PEAK(peak_fma_avx512_f64, "avx512f", __m512d, FMA_AVX512_F64, 16)
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
    fm_peak_numbers(x, sizeof x);
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
    AMX static fm__work name(void)                                                                 \
    {                                                                                              \
        load_numbers(n_tile);                                                                      \
        const double began = fm_now();                                                             \
        for (int r = 0; r < ROUNDS / 16; r++) products();                                          \
        return (fm__work){ROUNDS / 16 * 4 * 16.0 * 16 * 32 * 2, fm_now() - began};                  \
    }

PEAK_AMX(peak_of_eight, on_eight_tiles, 8)
PEAK_AMX(peak_of_six, on_six_tiles, 6)
PEAK_AMX(peak_of_four, on_four_tiles, 4)

/* By level, then factor; bf16 is widened to f32 where no instruction takes it. */
static fm__peak_loop *const vector_loop[][FM_N_FACTOR] = {
    [FM_ISA_REF] = {[FM_FACTOR_F64] = peak_sse2_f64, [FM_FACTOR_F32] = peak_sse2},
    [FM_ISA_AVX2] = {[FM_FACTOR_F64]  = peak_fma_avx2_f64,
                     [FM_FACTOR_F32]  = peak_fma_avx2,
                     [FM_FACTOR_BF16] = peak_fma_avx2},
    [FM_ISA_AVX512] = {[FM_FACTOR_F64]  = peak_fma_avx512_f64,
                       [FM_FACTOR_F32]  = peak_fma_avx512,
                       [FM_FACTOR_BF16] = peak_dot_avx512},
};

void fm__peak_loops(fm__peak_loop *out[FM__PEAK_LOOPS], fm_isa isa, fm_factor f)
{
    const int is_amx = isa == FM_ISA_AMX && f == FM_FACTOR_BF16;
    const int level  = isa == FM_ISA_AMX ? FM_ISA_AVX512 : (int)isa;
    out[0]           = is_amx ? peak_of_eight : vector_loop[level][f];
    out[1]           = is_amx ? peak_of_six : NULL;
    out[2]           = is_amx ? peak_of_four : NULL;
    out[3]           = NULL;
}

#else

void fm__peak_loops(fm__peak_loop *out[FM__PEAK_LOOPS], fm_isa isa, fm_factor f)
{
    (void)isa;
    (void)f;
    out[0] = NULL;
}

#endif
