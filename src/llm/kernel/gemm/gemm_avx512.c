/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of up to 8 rows x 32 outputs.  A row's sums run over k in one
 * ascending order with the same instructions in every tile, so m only chooses
 * how many rows share a load of the weights.
 *
 *     bf16  vdpbf16ps on a pair of k: two loads of 16 outputs x 2 and, for each
 *           row, one broadcast of its pair
 *     fp8   the same on weights expanded to bf16; each 128 k are summed by
 *           themselves, then c += scale * part
 *     f32   fma on single k                                                  */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS  = 8,    /* four already keep the multiplier busy; more than eight rows that
                     are a multiple of 4 KB apart would push each other out of L1 */
    ALONE = 3,    /* tiles this low are read fast enough without prefetching */
    AHEAD = 4096, /* bytes between reading and prefetching */
};

typedef const void *const *rows_of; /* x, from the tile's first row on */

/* Where a tile starts and what it is made of. */
typedef struct {
    rows_of      x;
    size_t       at; /* byte of the x rows at which w begins */
    const char  *w;
    const char  *soon;  /* what to prefetch meanwhile */
    const float *scale; /* [2], fp8 only */
    int          k;
} operands;

typedef void tile_fn(float *c, const operands *o);

typedef struct {
    __m512bh half[2];
} pair_row;

INLINE pair_row load_bf16(const char *w)
{
    return (pair_row){{(__m512bh)_mm512_loadu_si512(w), (__m512bh)_mm512_loadu_si512(w + 64)}};
}

/* e4m3 to bf16, times 2^8: sign, exponent and m move to their places, and an
 * exponent e+120 that has become e+128 needs but one bit more. */
INLINE __m512i moved(__m512i upper_byte)
{
    const __m512i field = _mm512_set1_epi16((short)0x87f0), high = _mm512_set1_epi16(0x4000);
    const __m512i t = _mm512_srai_epi16(upper_byte, 4);
    return _mm512_ternarylogic_epi32(t, field, high, 0xea); /* (t & field) | high */
}

/* Numbers without exponent are m * 2^-9; what is wrong in them so far is looked
 * up by m (the lookup reads five bits, of which the upper two are then zero). */
INLINE __m512i mended(__m512i v, __mmask32 tiny, __m512i byte)
{
    const __m512i wrong = _mm512_castsi128_si512(
        _mm_setr_epi16(0x4000, 0x7f10, 0x7fa0, 0x7ff0, 0x0040, 0x0070, 0x0020, 0x0010));
    return _mm512_xor_si512(v, _mm512_maskz_permutexvar_epi16(tiny, byte, wrong));
}

/* One weight in several thousand is that small, hence the branch. */
INLINE pair_row load_fp8(const char *w)
{
    const __m512i   b    = _mm512_loadu_si512(w);
    __m512i         v0   = moved(_mm512_slli_epi16(b, 8));
    __m512i         v1   = moved(b);
    const __mmask64 tiny = _mm512_testn_epi8_mask(b, _mm512_set1_epi8(0x78));
    if (__builtin_expect(!_kortestz_mask64_u8(tiny, tiny), 0)) {
        v0 = mended(v0, _mm512_testn_epi16_mask(b, _mm512_set1_epi16(0x0078)), b);
        v1 = mended(v1, _mm512_testn_epi16_mask(b, _mm512_set1_epi16(0x7800)),
                    _mm512_srli_epi16(b, 8));
    }
    return (pair_row){{(__m512bh)v0, (__m512bh)v1}};
}

INLINE __m512bh broadcast_pair(const void *row, size_t at)
{
    int32_t pair;
    memcpy(&pair, (const char *)row + at, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

INLINE void clear(__m512 sum[ROWS][2], int rows)
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
}

INLINE void prefetch(const char *w, int bytes)
{
    _mm_prefetch(w, _MM_HINT_T0);
    if (bytes > 64) _mm_prefetch(w + 64, _MM_HINT_T0);
}

/* `bytes` and `soon` are the steps of w and of what is prefetched. */
INLINE void add_pairs(__m512 sum[ROWS][2], const operands *o, int rows, pair_row load(const char *),
                      int bytes, int soon)
{
    const char  *w = o->w, *next = o->soon;
    const size_t to = o->at + (size_t)o->k * 2;
    for (size_t at = o->at; at < to; at += 16)
#pragma GCC unroll 4
        for (size_t p = 0; p < 16; p += 4, w += bytes, next += soon) {
            if (rows > ALONE) prefetch(next, soon);
            const pair_row r = load(w);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                const __m512bh a = broadcast_pair(o->x[i], at + p);
                sum[i][0]        = _mm512_dpbf16_ps(sum[i][0], r.half[0], a);
                sum[i][1]        = _mm512_dpbf16_ps(sum[i][1], r.half[1], a);
            }
        }
}

INLINE void store(float *c, __m512 sum[ROWS][2], int rows)
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++, c += FM_PANEL) {
        _mm512_storeu_ps(c, sum[i][0]);
        _mm512_storeu_ps(c + FM__HALF, sum[i][1]);
    }
}

INLINE void add_scaled(float *c, __m512 part[ROWS][2], const float *scale, int rows)
{
    const __m512 s0 = _mm512_set1_ps(fm__scale_of_wide(scale[0]));
    const __m512 s1 = _mm512_set1_ps(fm__scale_of_wide(scale[1]));
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++, c += FM_PANEL) {
        _mm512_storeu_ps(c, _mm512_fmadd_ps(s0, part[i][0], _mm512_loadu_ps(c)));
        _mm512_storeu_ps(c + FM__HALF,
                         _mm512_fmadd_ps(s1, part[i][1], _mm512_loadu_ps(c + FM__HALF)));
    }
}

INLINE void add_singles(__m512 sum[ROWS][2], const operands *o, int rows)
{
    const char  *w  = o->w;
    const size_t to = (size_t)o->k * 4;
    for (size_t at = 0; at < to; at += 16)
#pragma GCC unroll 4
        for (size_t p = 0; p < 16; p += 4, w += 128) {
            const __m512 w0 = _mm512_loadu_ps(w), w1 = _mm512_loadu_ps(w + 64);
            if (rows > ALONE) prefetch(w + AHEAD, 128);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                float a;
                memcpy(&a, (const char *)o->x[i] + at + p, sizeof a);
                sum[i][0] = _mm512_fmadd_ps(_mm512_set1_ps(a), w0, sum[i][0]);
                sum[i][1] = _mm512_fmadd_ps(_mm512_set1_ps(a), w1, sum[i][1]);
            }
        }
}

/* One function of each kind for every height of a tile. */
#define TILES(rows)                                                                                \
    static void bf16_##rows(float *c, const operands *o)                                           \
    {                                                                                              \
        __m512 sum[ROWS][2];                                                                       \
        clear(sum, rows);                                                                          \
        add_pairs(sum, o, rows, load_bf16, 128, 128);                                              \
        store(c, sum, rows);                                                                       \
    }                                                                                              \
    static void part_##rows(float *c, const operands *o)                                           \
    {                                                                                              \
        __m512 sum[ROWS][2];                                                                       \
        clear(sum, rows);                                                                          \
        add_pairs(sum, o, rows, load_bf16, 128, 64);                                               \
        add_scaled(c, sum, o->scale, rows);                                                        \
    }                                                                                              \
    static void fp8_##rows(float *c, const operands *o)                                            \
    {                                                                                              \
        __m512 sum[ROWS][2];                                                                       \
        clear(sum, rows);                                                                          \
        add_pairs(sum, o, rows, load_fp8, 64, 64);                                                 \
        add_scaled(c, sum, o->scale, rows);                                                        \
    }                                                                                              \
    static void f32_##rows(float *c, const operands *o)                                            \
    {                                                                                              \
        __m512 sum[ROWS][2];                                                                       \
        clear(sum, rows);                                                                          \
        add_singles(sum, o, rows);                                                                 \
        store(c, sum, rows);                                                                       \
    }
#define EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
EACH(TILES)

#define BF16(rows) [rows] = bf16_##rows,
#define PART(rows) [rows] = part_##rows,
#define FP8(rows) [rows] = fp8_##rows,
#define F32(rows) [rows] = f32_##rows,
static tile_fn *const bf16_tile[ROWS + 1] = {EACH(BF16)};
static tile_fn *const part_tile[ROWS + 1] = {EACH(PART)};
static tile_fn *const fp8_tile[ROWS + 1]  = {EACH(FP8)};
static tile_fn *const f32_tile[ROWS + 1]  = {EACH(F32)};

/* All rows, in tiles of nearly equal height. */
INLINE void run_tiles(tile_fn *const *tile, float *c, operands o, int m)
{
    for (int left = (m + ROWS - 1) / ROWS; left; left--) {
        const int rows = (m + left - 1) / left;
        tile[rows](c, &o);
        c += (size_t)rows * FM_PANEL;
        o.x += rows;
        m -= rows;
    }
}

void fm__gemm_bf16_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                          const float *restrict scale, int m, int k)
{
    (void)scale;
    const char *soon = (const char *)w + AHEAD;
    run_tiles(bf16_tile, c, (operands){.x = x, .w = w, .soon = soon, .k = k}, m);
}

void fm__gemm_f32_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    (void)scale;
    run_tiles(f32_tile, c, (operands){.x = x, .w = w, .k = k}, m);
}

void fm__widen_fp8_avx512(void *restrict to, const void *restrict w, int k)
{
    char       *out = to;
    const char *in  = w;
    for (int p = 0; p < k; p += 2, out += 128, in += 64) {
        const pair_row r = load_fp8(in);
        _mm512_storeu_si512(out, (__m512i)r.half[0]);
        _mm512_storeu_si512(out + 64, (__m512i)r.half[1]);
    }
}

/* One tile expands the weights in registers; several share an expanded slice. */
void fm__gemm_fp8_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    _Alignas(64) char wide[FM__SCALE_K * FM_PANEL * 2]; /* stays in L1 */
    operands          o = {.x = x, .scale = scale};
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int p = 0; p < k; p += FM__SCALE_K, o.scale += 2) {
        o.at = (size_t)p * 2;
        o.w  = (const char *)w + (size_t)p * FM_PANEL;
        o.k  = fm__least(FM__SCALE_K, k - p);
        o.soon = o.w + AHEAD;
        if (m <= ROWS) {
            run_tiles(fp8_tile, c, o, m);
            continue;
        }
        fm__widen_fp8_avx512(wide, o.w, o.k);
        o.w = wide;
        run_tiles(part_tile, c, o, m);
    }
}
