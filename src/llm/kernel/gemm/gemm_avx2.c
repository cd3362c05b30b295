/* SPDX-License-Identifier: Apache-2.0 */
/* There is no product of short numbers here, so everything becomes f32 first.
 * One kind of tile (12 sums in registers: 6 rows x 16 outputs; or 2 x 32) does
 * the sums of all three types in ascending k, from weights that are
 *
 *     few rows    widened in registers as they come from the panel
 *     many rows   widened into L1 once for all rows, 128 k at a time
 *
 * The numbers and their order are the same, so the choice moves no bit. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS     = 6,
    SLICE    = FM__SCALE_K,
    FEW_BF16 = 24, /* rows up to which tiles read the panel */
    FEW_FP8  = 6,
};

/* What a tile finds at w: [k][32] singles, or pairs of k as in the panel. */
typedef enum { SINGLES, BF16, FP8 } source;

typedef struct {
    const float *x[ROWS];
    const char  *w;
    const char  *soon; /* what to prefetch meanwhile, `step` bytes for each k */
    int          step, k;
    float        x_scale[ROWS]; /* of fp8: the factor of each row */
} operands;

/* What widening takes. */
typedef struct {
    _Alignas(32) uint32_t upper[8], e4m3[8];
} constants;

#define EIGHT(x)                                                                                   \
    {                                                                                              \
        x, x, x, x, x, x, x, x                                                                     \
    }
static const constants known = {EIGHT(0xffff0000u), EIGHT(0x87f00000u)};

/* The same address, but the compiler does not know, so it reads there again
 * what it would rather keep, and there is no register left but those of sums.
 * (Singles are read once.) */
INLINE const void *again(const void *at, source from)
{
    if (from != SINGLES) __asm__ volatile("" : "+r"(at));
    return at;
}

INLINE __m256i load(const void *from) { return _mm256_loadu_si256((const __m256i *)from); }

/* A lane is an output's pair: even k below, odd k above. */
INLINE __m256 f32_of_bf16(__m256i pairs, int odd, const constants *t)
{
    return _mm256_castsi256_ps(odd ? _mm256_and_si256(pairs, load(t->upper))
                                   : _mm256_slli_epi32(pairs, 16));
}

/* A lane is an output of both halves: k, k, k + 1, k + 1.  With its exponent moved to bf16's place
 * e4m3 is 2^120 too small, subnormals included: x is made 2^64 times larger to keep products
 * normal, and the factor of a sum takes the rest. */
INLINE __m256 f32_of_fp8(__m256i pairs, int half, int odd, const constants *t)
{
    const int     up  = 24 - 16 * odd - 8 * half; /* to the top of the lane */
    const __m256i top = up ? _mm256_slli_epi32(pairs, up) : pairs;
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_srai_epi32(top, 4), load(t->e4m3)));
}

static const float x_beside_fp8 = 0x1p64f, sum_of_fp8 = 0x1p56f;

/* Eight outputs, the panel's v-th, at even or odd k of the pair at w. */
INLINE __m256 weights(const char *w, source from, int v, int odd, const constants *t)
{
    switch (from) {
    case BF16: return f32_of_bf16(load(w + v * 32), odd, t);
    case FP8: return f32_of_fp8(load(w + v % 2 * 32), v / 2, odd, t);
    default: return _mm256_castsi256_ps(load(w + odd * FM_PANEL * 4 + v * 32));
    }
}

INLINE int pair_bytes(source from)
{
    return 2 * FM_PANEL * (from == SINGLES ? 4 : from == BF16 ? 2 : 1);
}

/* `rows` x 8 `wide` outputs from the panel's v0-th eight on: 2 x 32, or 6 x 16. */
typedef __m256 sums[ROWS][4];
typedef struct {
    source from;
    int    rows, v0, wide;
} shape;

/* One k, 16 outputs at a time. */
INLINE void add_products_of_k(sums sum, const operands *o, const char *w, shape s, int p, int odd)
{
    const char *pair = again(w, s.from);
#pragma GCC unroll 2
    for (int v = 0; v < s.wide; v += 2) {
        const __m256 low  = weights(pair, s.from, s.v0 + v, odd, again(&known, s.from));
        const __m256 high = weights(pair, s.from, s.v0 + v + 1, odd, again(&known, s.from));
#pragma GCC unroll 6
        for (int i = 0; i < s.rows; i++) {
            const __m256 a = _mm256_broadcast_ss(o->x[i] + p + odd);

            sum[i][v]     = _mm256_fmadd_ps(a, low, sum[i][v]);
            sum[i][v + 1] = _mm256_fmadd_ps(a, high, sum[i][v + 1]);
        }
    }
}

INLINE void add_products(sums sum, const operands *o, shape s)
{
    const char *w = o->w, *soon = o->soon;
    for (int p = 0; p < o->k; p += 2, w += pair_bytes(s.from))
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; odd++, soon += o->step) {
            _mm_prefetch(soon, _MM_HINT_T0);
            add_products_of_k(sum, o, w, s, p, odd);
        }
}

/* c += x w, the products joining c one by one. */
INLINE void run_sum(float *c, const operands *o, shape s)
{
    sums sum;
#pragma GCC unroll 6
    for (int i = 0; i < s.rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < s.wide; v++)
            sum[i][v] = _mm256_loadu_ps(c + i * FM_PANEL + (s.v0 + v) * 8);
    add_products(sum, o, s);
#pragma GCC unroll 6
    for (int i = 0; i < s.rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < s.wide; v++)
            _mm256_storeu_ps(c + i * FM_PANEL + (s.v0 + v) * 8, sum[i][v]);
}

/* c += scale * (x w), a factor for each 16 outputs */
INLINE void run_scaled(float *c, const operands *o, const float *scale, shape s)
{
    sums sum;
#pragma GCC unroll 6
    for (int i = 0; i < s.rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < s.wide; v++) sum[i][v] = _mm256_setzero_ps();
    add_products(sum, o, s);
#pragma GCC unroll 6
    for (int i = 0; i < s.rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < s.wide; v++) {
            float       *to     = c + i * FM_PANEL + (s.v0 + v) * 8;
            const float  by     = o->x_scale[i] * scale[(s.v0 + v) / 2];
            const __m256 factor = _mm256_set1_ps(by * sum_of_fp8);
            _mm256_storeu_ps(to, _mm256_fmadd_ps(factor, sum[i][v], _mm256_loadu_ps(to)));
        }
}

INLINE void run_shape(float *c, const operands *o, const float *scale, shape s)
{
    if (scale)
        run_scaled(c, o, scale, s);
    else
        run_sum(c, o, s);
}

INLINE void run_at_once(float *c, const operands *o, const float *scale, source from, int rows)
{
    run_shape(c, o, scale, (shape){from, rows, 0, 4});
}

INLINE void run_by_halves(float *c, const operands *o, const float *scale, source from, int rows)
{
    run_shape(c, o, scale, (shape){from, rows, 0, 2});
    run_shape(c, o, scale, (shape){from, rows, 2, 2});
}

/* `scale` is [2] or NULL. */
INLINE void run_tile(float *c, const operands *o, const float *scale, source from, int rows)
{
    switch (rows) {
    case 1: run_at_once(c, o, scale, from, 1); break;
    case 2: run_at_once(c, o, scale, from, 2); break;
    case 3: run_by_halves(c, o, scale, from, 3); break;
    case 4: run_by_halves(c, o, scale, from, 4); break;
    case 5: run_by_halves(c, o, scale, from, 5); break;
    default: run_by_halves(c, o, scale, from, 6);
    }
}

typedef void tile_fn(float *c, const operands *o, const float *scale, int rows);

static void run_singles(float *c, const operands *o, const float *scale, int rows)
{
    run_tile(c, o, scale, SINGLES, rows);
}

static void run_bf16(float *c, const operands *o, const float *scale, int rows)
{
    (void)scale;
    run_tile(c, o, NULL, BF16, rows);
}

static void run_fp8(float *c, const operands *o, const float *scale, int rows)
{
    run_tile(c, o, scale, FP8, rows);
}

static void widen_x(float *restrict to, const fm_bf16 *restrict x, int k, float by)
{
    for (int p = 0; p < k; p += 8) {
        const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(x + p)));
        const __m256  y = _mm256_castsi256_ps(_mm256_slli_epi32(a, 16));
        _mm256_store_ps(to + p, _mm256_mul_ps(y, _mm256_set1_ps(by)));
    }
}

INLINE void widen_w(float *restrict to, const char *restrict w, source from, int k)
{
    for (int p = 0; p < k; p += 2, w += pair_bytes(from))
        for (int odd = 0; odd < 2; odd++, to += FM_PANEL)
            for (int v = 0; v < 4; v++)
                _mm256_store_ps(to + v * 8, weights(w, from, v, odd, &known));
}

/* Rows of the next tile: evenly many in each, since a few alone fill no pipe. */
static int rows_of_tile(int left)
{
    const int tiles = (left + ROWS - 1) / ROWS;
    return (left + tiles - 1) / tiles;
}

static void fetch_rows(const void *const *x, int n, int from, int k)
{
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p += 32) _mm_prefetch((const fm_bf16 *)x[i] + from + p, _MM_HINT_T0);
}

/* All rows with a slice of w, k from `from` on. */
INLINE void run_slice(tile_fn *run, float *c, const void *const *x, const float *const *x_scale,
                      const operands *slice, const float *scale, int from, int m)
{
    _Alignas(32) float wide[ROWS][SLICE];
    operands           o = *slice;
    for (int i = 0, rows; i < m; i += rows) {
        rows = rows_of_tile(m - i);
        for (int r = 0; r < rows; r++) {
            widen_x(wide[r], (const fm_bf16 *)x[i + r] + from, o.k, scale ? x_beside_fp8 : 1);
            o.x[r]       = wide[r];
            o.x_scale[r] = fm__factor_of_row(x_scale, i + r, from / SLICE);
        }
        fetch_rows(x + i + rows, fm__least(rows, m - i - rows), from, o.k);
        run(c + (size_t)i * FM_PANEL, &o, scale, rows);
    }
}

/* While a slice of the panel is worked on, the next one is fetched. */
INLINE void run_panel(float *c, const void *const *x, const float *const *x_scale, const char *w,
                      const float *scale, int m, int k, source from, int few)
{
    _Alignas(32) float wide[SLICE * FM_PANEL];
    const int          bytes = SLICE / 2 * pair_bytes(from);
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int at = 0; at < k; at += SLICE, w += bytes) {
        operands     o = {.w = w, .soon = w + bytes, .step = bytes / SLICE};
        const float *s = scale ? scale + at / SLICE * 2 : NULL;
        o.k            = fm__least(SLICE, k - at);
        if (m <= few) {
            run_slice(from == BF16 ? run_bf16 : run_fp8, c, x, x_scale, &o, s, at, m);
        } else {
            widen_w(wide, w, from, o.k);
            o.w = (const char *)wide;
            run_slice(run_singles, c, x, x_scale, &o, s, at, m);
        }
    }
}

void fm__gemm_bf16_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                        const float *restrict scale, int m, int k)
{
    (void)scale;
    run_panel(c, x, NULL, w, NULL, m, k, BF16, FEW_BF16);
}

void fm__gemm_fp8_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    run_panel(c, x, NULL, w, scale, m, k, FP8, FEW_FP8);
}

void fm__gemm_scaled_avx2(float *restrict c, const void *const *restrict x,
                          const float *const *restrict x_scale, const void *restrict w,
                          const float *restrict scale, int m, int k)
{
    run_panel(c, x, x_scale, w, scale, m, k, FP8, FEW_FP8);
}

/* Slices here, too: a tile's halves and the other tiles find them in L1. */
void fm__gemm_f32_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    const int   bytes = SLICE / 2 * pair_bytes(SINGLES);
    const char *panel = w;
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int at = 0; at < k; at += SLICE, panel += bytes) {
        operands o = {.w = panel, .soon = panel + bytes, .step = bytes / SLICE};
        o.k        = fm__least(SLICE, k - at);
        for (int i = 0, rows; i < m; i += rows) {
            rows = rows_of_tile(m - i);
            for (int r = 0; r < rows; r++) o.x[r] = (const float *)x[i + r] + at;
            run_singles(c + (size_t)i * FM_PANEL, &o, NULL, rows);
        }
    }
}
