/* SPDX-License-Identifier: Apache-2.0 */
/* There is no product of short numbers here, so everything becomes f32 first:
 * 128 k of the panel and of up to six rows of x are expanded into L1, and one
 * tile of 6 rows x 16 outputs (12 sums in registers, 2 vectors of weights) does
 * the sums of all three types in ascending k. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS = 6, SLICE = FM__SCALE_K };

typedef struct {
    const float *x[ROWS];
    const float *w; /* [k][32], from the half's first output */
    int          k;
} operands;

INLINE void add_singles(__m256 sum[ROWS][2], const operands *o, int rows)
{
    const float *w = o->w;
    for (int p = 0; p < o->k; p++, w += FM_PANEL) {
        const __m256 w0 = _mm256_loadu_ps(w), w1 = _mm256_loadu_ps(w + 8);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const __m256 a = _mm256_broadcast_ss(o->x[i] + p);
            sum[i][0]      = _mm256_fmadd_ps(a, w0, sum[i][0]);
            sum[i][1]      = _mm256_fmadd_ps(a, w1, sum[i][1]);
        }
    }
}

/* c += x w, the products joining c one by one. */
INLINE void run_sum(float *c, const operands *o, int rows)
{
    __m256 sum[ROWS][2];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        sum[i][0] = _mm256_loadu_ps(c + i * FM_PANEL);
        sum[i][1] = _mm256_loadu_ps(c + i * FM_PANEL + 8);
    }
    add_singles(sum, o, rows);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        _mm256_storeu_ps(c + i * FM_PANEL, sum[i][0]);
        _mm256_storeu_ps(c + i * FM_PANEL + 8, sum[i][1]);
    }
}

/* c += scale * (x w) */
INLINE void run_scaled(float *c, const operands *o, float scale, int rows)
{
    const __m256 s = _mm256_set1_ps(scale);
    __m256       sum[ROWS][2];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    add_singles(sum, o, rows);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++, c += FM_PANEL) {
        _mm256_storeu_ps(c, _mm256_fmadd_ps(s, sum[i][0], _mm256_loadu_ps(c)));
        _mm256_storeu_ps(c + 8, _mm256_fmadd_ps(s, sum[i][1], _mm256_loadu_ps(c + 8)));
    }
}

/* Both halves of a tile; `scale` [2] or NULL. */
INLINE void run_rows(float *c, operands o, const float *scale, int rows)
{
    for (int half = 0; half < 2; half++, c += FM__HALF, o.w += FM__HALF)
        if (scale) run_scaled(c, &o, scale[half], rows);
        else run_sum(c, &o, rows);
}

static void run_tile(float *c, const operands *o, const float *scale, int rows)
{
    switch (rows) {
    case 1: run_rows(c, *o, scale, 1); break;
    case 2: run_rows(c, *o, scale, 2); break;
    case 3: run_rows(c, *o, scale, 3); break;
    case 4: run_rows(c, *o, scale, 4); break;
    case 5: run_rows(c, *o, scale, 5); break;
    default: run_rows(c, *o, scale, 6);
    }
}

static void widen_x(float *restrict to, const fm_bf16 *restrict x, int k)
{
    for (int p = 0; p < k; p += 8) {
        const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(x + p)));
        _mm256_store_ps(to + p, _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)));
    }
}

/* A lane is an output's pair: even k below, odd k above. */
static void widen_bf16(float *restrict to, const fm_bf16 *restrict w, int k)
{
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000);
    for (int p = 0; p < k; p += 2, to += 2 * FM_PANEL)
        for (int j = 0; j < FM_PANEL; j += 8, w += 16) {
            const __m256i a = _mm256_loadu_si256((const __m256i *)w);
            _mm256_store_ps(to + j, _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)));
            _mm256_store_ps(to + FM_PANEL + j, _mm256_castsi256_ps(_mm256_and_si256(a, upper)));
        }
}

/* e4m3 in the upper byte of each lane.  With its exponent moved to f32's place
 * it is 2^120 too small, subnormals included, so one product makes it exact. */
INLINE __m256 f32_of_fp8(__m256i a)
{
    const __m256i moved =
        _mm256_and_si256(_mm256_srai_epi32(a, 4), _mm256_set1_epi32((int)0x87f00000));
    return _mm256_mul_ps(_mm256_castsi256_ps(moved), _mm256_set1_ps(0x1p120f));
}

/* A lane is an output of both halves: k, k, k + 1, k + 1. */
static void widen_fp8(float *restrict to, const fm_fp8 *restrict w, int k)
{
    for (int p = 0; p < k; p += 2, to += 2 * FM_PANEL)
        for (int j = 0; j < FM__HALF; j += 8, w += 32) {
            const __m256i a = _mm256_loadu_si256((const __m256i *)w);
            _mm256_store_ps(to + j, f32_of_fp8(_mm256_slli_epi32(a, 24)));
            _mm256_store_ps(to + FM__HALF + j, f32_of_fp8(_mm256_slli_epi32(a, 16)));
            _mm256_store_ps(to + FM_PANEL + j, f32_of_fp8(_mm256_slli_epi32(a, 8)));
            _mm256_store_ps(to + FM_PANEL + FM__HALF + j, f32_of_fp8(a));
        }
}

/* All rows against a widened slice of the panel that begins at k = from. */
static void run_slice(float *c, const void *const *x, const float *w, const float *scale, int m,
                      int from, int k)
{
    _Alignas(32) float wide[ROWS][SLICE];
    for (int i = 0, rows; i < m; i += rows) {
        operands o = {.w = w, .k = k};
        rows       = fm__least(ROWS, m - i);
        for (int r = 0; r < rows; r++) {
            widen_x(wide[r], (const fm_bf16 *)x[i + r] + from, k);
            o.x[r] = wide[r];
        }
        run_tile(c + (size_t)i * FM_PANEL, &o, scale, rows);
    }
}

void fm__gemm_bf16_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                        const float *restrict scale, int m, int k)
{
    _Alignas(32) float wide[SLICE * FM_PANEL];
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int p = 0; p < k; p += SLICE) {
        const int n = fm__least(SLICE, k - p);
        widen_bf16(wide, (const fm_bf16 *)w + (size_t)p * FM_PANEL, n);
        run_slice(c, x, wide, NULL, m, p, n);
    }
}

void fm__gemm_fp8_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    _Alignas(32) float wide[SLICE * FM_PANEL];
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int p = 0; p < k; p += SLICE, scale += 2) {
        const int n = fm__least(SLICE, k - p);
        widen_fp8(wide, (const fm_fp8 *)w + (size_t)p * FM_PANEL, n);
        run_slice(c, x, wide, scale, m, p, n);
    }
}

void fm__gemm_f32_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int i = 0, rows; i < m; i += rows) {
        operands o = {.w = w, .k = k};
        rows       = fm__least(ROWS, m - i);
        for (int r = 0; r < rows; r++) o.x[r] = x[i + r];
        run_tile(c + (size_t)i * FM_PANEL, &o, NULL, rows);
    }
}
