/* SPDX-License-Identifier: Apache-2.0 */
/* There is no product of short numbers here, so everything becomes f32 first:
 * 128 k of the panel and of up to six rows of x are expanded into L1, and one
 * kind of tile (12 sums in registers: 6 rows x 16 outputs, or 3 x 32) does the
 * sums of all three types in ascending k. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS = 6, SLICE = FM__SCALE_K, AHEAD = 1024 /* floats */ };

typedef struct {
    const float *x[ROWS];
    const float *w;    /* [k][32], from the tile's first output */
    const char  *soon; /* what to prefetch meanwhile, `step` bytes for each k */
    int          step, k;
} operands;

/* `rows` x 8 `wide` outputs: 3 x 32, or 6 x 16. */
typedef __m256 sums[ROWS][4];

INLINE void add_singles(sums sum, const operands *o, int rows, int wide)
{
    const float *w    = o->w;
    const char  *soon = o->soon;
    for (int p = 0; p < o->k; p++, w += FM_PANEL, soon += o->step) {
        __m256 b[4];
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++) b[v] = _mm256_loadu_ps(w + v * 8);
        _mm_prefetch(soon, _MM_HINT_T0);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const __m256 a = _mm256_broadcast_ss(o->x[i] + p);
#pragma GCC unroll 4
            for (int v = 0; v < wide; v++) sum[i][v] = _mm256_fmadd_ps(a, b[v], sum[i][v]);
        }
    }
}

/* c += x w, the products joining c one by one. */
INLINE void run_sum(float *c, const operands *o, int rows, int wide)
{
    sums sum;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++) sum[i][v] = _mm256_loadu_ps(c + i * FM_PANEL + v * 8);
    add_singles(sum, o, rows, wide);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++) _mm256_storeu_ps(c + i * FM_PANEL + v * 8, sum[i][v]);
}

/* c += scale * (x w), a factor for each 16 outputs */
INLINE void run_scaled(float *c, const operands *o, const float *scale, int rows, int wide)
{
    sums sum;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++) sum[i][v] = _mm256_setzero_ps();
    add_singles(sum, o, rows, wide);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++) {
            float       *to = c + i * FM_PANEL + v * 8;
            const __m256 s  = _mm256_set1_ps(scale[v / 2]);
            _mm256_storeu_ps(to, _mm256_fmadd_ps(s, sum[i][v], _mm256_loadu_ps(to)));
        }
}

INLINE void run_at_once(float *c, const operands *o, const float *scale, int rows, int wide)
{
    if (scale) run_scaled(c, o, scale, rows, wide);
    else run_sum(c, o, rows, wide);
}

INLINE void run_by_halves(float *c, operands o, const float *scale, int rows)
{
    run_at_once(c, &o, scale, rows, 2);
    o.w += FM__HALF;
    run_at_once(c + FM__HALF, &o, scale ? scale + 1 : NULL, rows, 2);
}

/* `scale` is [2] or NULL. */
static void run_tile(float *c, const operands *o, const float *scale, int rows)
{
    switch (rows) {
    case 1: run_at_once(c, o, scale, 1, 4); break;
    case 2: run_at_once(c, o, scale, 2, 4); break;
    case 3: run_at_once(c, o, scale, 3, 4); break;
    case 4: run_by_halves(c, *o, scale, 4); break;
    case 5: run_by_halves(c, *o, scale, 5); break;
    default: run_by_halves(c, *o, scale, 6);
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

/* A slice of the panel, k from `from` on, and what comes after it. */
typedef struct {
    _Alignas(32) float w[SLICE * FM_PANEL];
    const char *soon;
    int         step, from, k;
} slice;

static void run_slice(float *c, const void *const *x, const slice *s, const float *scale, int m)
{
    _Alignas(32) float wide[ROWS][SLICE];
    for (int i = 0, rows; i < m; i += rows) {
        operands o = {.w = s->w, .soon = s->soon, .step = s->step, .k = s->k};
        rows       = fm__least(ROWS, m - i);
        for (int r = 0; r < rows; r++) {
            widen_x(wide[r], (const fm_bf16 *)x[i + r] + s->from, s->k);
            o.x[r] = wide[r];
        }
        run_tile(c + (size_t)i * FM_PANEL, &o, scale, rows);
    }
}

void fm__gemm_bf16_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                        const float *restrict scale, int m, int k)
{
    const fm_bf16 *panel = w;
    slice          s     = {.step = FM_PANEL * 2};
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (; s.from < k; s.from += SLICE, panel += SLICE * FM_PANEL) {
        s.k = fm__least(SLICE, k - s.from);
        widen_bf16(s.w, panel, s.k);
        s.soon = (const char *)(panel + SLICE * FM_PANEL);
        run_slice(c, x, &s, NULL, m);
    }
}

void fm__gemm_fp8_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    const fm_fp8 *panel = w;
    slice         s     = {.step = FM_PANEL};
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (; s.from < k; s.from += SLICE, panel += SLICE * FM_PANEL, scale += 2) {
        s.k = fm__least(SLICE, k - s.from);
        widen_fp8(s.w, panel, s.k);
        s.soon = (const char *)(panel + SLICE * FM_PANEL);
        run_slice(c, x, &s, scale, m);
    }
}

void fm__gemm_f32_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    const float *panel = w;
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int i = 0, rows; i < m; i += rows) {
        operands o = {.w = panel, .step = FM_PANEL * 4, .k = k};
        o.soon     = (const char *)(panel + AHEAD);
        rows       = fm__least(ROWS, m - i);
        for (int r = 0; r < rows; r++) o.x[r] = x[i + r];
        run_tile(c + (size_t)i * FM_PANEL, &o, NULL, rows);
    }
}
