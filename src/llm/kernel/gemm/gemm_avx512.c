/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of up to 8 rows x 32 outputs.  A row's sums run over k in one
 * ascending order with the same instructions in every tile, so m only chooses
 * how many rows share a load of the weights.
 *
 *     bf16  vdpbf16ps on a pair of k: two loads of 16 outputs x 2 and, for each
 *           row, one broadcast of its pair
 *     fp8   the same on weights expanded to bf16; each 128 k are summed by
 *           themselves, then c += scale * part
 *     int4  the same on groups of 32 k, with a scale for each output
 *     f32   fma on single k                                                  */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS = 8,     /* four already keep the multiplier busy; more than eight rows that
                     are a multiple of 4 KB apart would push each other out of L1 */
    ALONE = 3,    /* tiles this low are read fast enough without prefetching */
    AHEAD = 4096, /* bytes between reading and prefetching: a slice of fp8 */
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
    const float *const *x_scale; /* fp8: factors of each row's slices, or NULL */
    int                 slice;   /* of 128 k that `scale` and w begin with */
} operands;

typedef void tile_fn(float *c, const operands *o);

typedef struct {
    __m512bh half[2];
} pair_row;

INLINE pair_row load_bf16(const char *w)
{
    return (pair_row){{(__m512bh)_mm512_loadu_si512(w), (__m512bh)_mm512_loadu_si512(w + 64)}};
}

/* e4m3 in the upper byte of each word to bf16, times 2^8: sign, exponent and m
 * move to their places, and the exponent e+120, being e+128 now, lacks one bit.
 * Numbers without exponent are m * 2^-9; what they lack is looked up by m (the
 * lookup reads five bits of `lower`, of which the upper two are then zero).
 * Branching on them would be faster on most weights and slower on zeros. */
INLINE __m512bh bf16_of(__m512i upper, __m512i lower, __mmask32 tiny)
{
    const __m512i lack = _mm512_castsi128_si512(
        _mm_setr_epi16(0, 0x3f10, 0x3fa0, 0x3ff0, 0x4040, 0x4070, 0x4020, 0x4010));
    const __m512i with =
        _mm512_mask_permutexvar_epi16(_mm512_set1_epi16(0x4000), tiny, lower, lack);
    const __m512i field = _mm512_set1_epi16((short)0x87f0), t = _mm512_srai_epi16(upper, 4);
    return (__m512bh)_mm512_ternarylogic_epi32(t, field, with, 0x6a); /* (t & field) ^ with */
}

INLINE pair_row load_fp8(const char *w)
{
    const __m512i   b     = _mm512_loadu_si512(w);
    const __mmask32 tiny0 = _mm512_testn_epi16_mask(b, _mm512_set1_epi16(0x0078));
    const __mmask32 tiny1 = _mm512_testn_epi16_mask(b, _mm512_set1_epi16(0x7800));
    return (pair_row){
        {bf16_of(_mm512_slli_epi16(b, 8), b, tiny0), bf16_of(b, _mm512_srli_epi16(b, 8), tiny1)}};
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

INLINE void add_scaled(float *c, __m512 part[ROWS][2], const operands *o, int rows)
{
    const __m512 s0 = _mm512_set1_ps(fm__scale_of_wide(o->scale[0]));
    const __m512 s1 = _mm512_set1_ps(fm__scale_of_wide(o->scale[1]));
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++, c += FM_PANEL) {
        const __m512 by = _mm512_set1_ps(fm__factor_of_row(o->x_scale, i, o->slice));
        const __m512 f0 = _mm512_mul_ps(by, s0), f1 = _mm512_mul_ps(by, s1);
        _mm512_storeu_ps(c, _mm512_fmadd_ps(f0, part[i][0], _mm512_loadu_ps(c)));
        _mm512_storeu_ps(c + FM__HALF,
                         _mm512_fmadd_ps(f1, part[i][1], _mm512_loadu_ps(c + FM__HALF)));
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

/* What one function does for a tile; all but a slice go over the whole of k. */
typedef enum { BF16, FP8, FP8_SLICE, INT4, F32 } kind;

INLINE void run_sum(float *c, const operands *o, int rows, kind w)
{
    __m512 sum[ROWS][2];
    clear(sum, rows);
    if (w == BF16) add_pairs(sum, o, rows, load_bf16, 128, 128);
    else add_singles(sum, o, rows);
    store(c, sum, rows);
}

/* A slice expanded to bf16 beforehand. */
INLINE void run_slice(float *c, const operands *o, int rows)
{
    __m512 part[ROWS][2];
    clear(part, rows);
    add_pairs(part, o, rows, load_bf16, 128, 64);
    add_scaled(c, part, o, rows);
}

/* Slice after slice, expanded in registers. */
INLINE void run_fp8(float *c, const operands *whole, int rows)
{
    operands o = *whole;
    for (int p = 0; p < whole->k; p += FM__SCALE_K, o.scale += 2, o.slice++) {
        __m512 part[ROWS][2];
        o.k = fm__least(FM__SCALE_K, whole->k - p);
        clear(part, rows);
        add_pairs(part, &o, rows, load_fp8, 64, 64);
        add_scaled(c, part, &o, rows);
        o.at += FM__SCALE_K * 2;
        o.w += FM__SCALE_K * FM_PANEL;
        o.soon += FM__SCALE_K * FM_PANEL;
    }
}

/* int4 in the lower four bits of each word to bf16; the lookup reads five bits, so the 16 entries
 * stand there twice. */
INLINE __m512bh bf16_of_int4(__m512i words)
{
    const __m512i value = _mm512_broadcast_i64x4(_mm256_setr_epi16(
        0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, (short)0xc100, (short)0xc0e0,
        (short)0xc0c0, (short)0xc0a0, (short)0xc080, (short)0xc040, (short)0xc000, (short)0xbf80));
    return (__m512bh)_mm512_permutexvar_epi16(words, value);
}

INLINE pair_row pair_of_int4(__m512i b)
{
    return (pair_row){{bf16_of_int4(b), bf16_of_int4(_mm512_srli_epi16(b, 8))}};
}

INLINE void add_pair(__m512 sum[ROWS][2], const operands *o, int rows, size_t at, pair_row r)
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        const __m512bh a = broadcast_pair(o->x[i], at);
        sum[i][0]        = _mm512_dpbf16_ps(sum[i][0], r.half[0], a);
        sum[i][1]        = _mm512_dpbf16_ps(sum[i][1], r.half[1], a);
    }
}

INLINE __m512 factors_of_group(const char *group, int half)
{
    const fm_bf16 *s = fm__group_scales(group) + half * FM__HALF;
    const __m512i  a = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)s));
    return _mm512_castsi512_ps(_mm512_slli_epi32(a, 16));
}

/* c[rows, 32] += factors of the group's outputs * part */
INLINE void add_group(float *c, __m512 part[ROWS][2], const char *group, int rows)
{
    const __m512 s0 = factors_of_group(group, 0), s1 = factors_of_group(group, 1);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++, c += FM_PANEL) {
        _mm512_storeu_ps(c, _mm512_fmadd_ps(s0, part[i][0], _mm512_loadu_ps(c)));
        _mm512_storeu_ps(c + FM__HALF,
                         _mm512_fmadd_ps(s1, part[i][1], _mm512_loadu_ps(c + FM__HALF)));
    }
}

INLINE void run_int4(float *c, const operands *o, int rows)
{
    for (int p = 0; p < o->k; p += FM__GROUP_K) {
        const char *group = fm__group_at(o->w, p);
        __m512      part[ROWS][2];
        clear(part, rows);
        for (int q = 0; q < FM__GROUP_K; q += 4) {
            const __m512i b  = _mm512_loadu_si512(group + q * 16);
            const size_t  at = (size_t)(p + q) * 2;
            _mm_prefetch(group + q * 16 + AHEAD, _MM_HINT_T0);
            add_pair(part, o, rows, at, pair_of_int4(b));
            add_pair(part, o, rows, at + 4, pair_of_int4(_mm512_srli_epi16(b, 4)));
        }
        add_group(c, part, group, rows);
    }
}

INLINE void run_tile(float *c, const operands *o, int rows, kind w)
{
    if (w == FP8) run_fp8(c, o, rows);
    else if (w == INT4) run_int4(c, o, rows);
    else if (w == FP8_SLICE) run_slice(c, o, rows);
    else run_sum(c, o, rows, w);
}

/* One function of each kind for every height of a tile. */
/* clang-format off */
#define TILES(rows)                                                                               \
    static void bf16_##rows(float *c, const operands *o) { run_tile(c, o, rows, BF16); }          \
    static void fp8_##rows(float *c, const operands *o) { run_tile(c, o, rows, FP8); }            \
    static void fp8_slice_##rows(float *c, const operands *o) { run_tile(c, o, rows, FP8_SLICE); } \
    static void int4_##rows(float *c, const operands *o) { run_tile(c, o, rows, INT4); }          \
    static void f32_##rows(float *c, const operands *o) { run_tile(c, o, rows, F32); }
#define ALL_KINDS(rows) {bf16_##rows, fp8_##rows, fp8_slice_##rows, int4_##rows, f32_##rows},
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6) TILES(7) TILES(8)

static tile_fn *const tile[ROWS + 1][5] = {
    {0},
    ALL_KINDS(1) ALL_KINDS(2) ALL_KINDS(3) ALL_KINDS(4)
    ALL_KINDS(5) ALL_KINDS(6) ALL_KINDS(7) ALL_KINDS(8)
};
/* clang-format on */

/* All rows, in tiles of nearly equal height. */
INLINE void run_tiles(kind w, float *c, operands o, int m)
{
    for (int left = (m + ROWS - 1) / ROWS; left; left--) {
        const int rows = (m + left - 1) / left;
        tile[rows][w](c, &o);
        c += (size_t)rows * FM_PANEL;
        o.x += rows;
        if (o.x_scale) o.x_scale += rows;
        m -= rows;
    }
}

void fm__gemm_bf16_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                          const float *restrict scale, int m, int k)
{
    (void)scale;
    const char *soon = (const char *)w + AHEAD;
    run_tiles(BF16, c, (operands){.x = x, .w = w, .soon = soon, .k = k}, m);
}

void fm__gemm_int4_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                          const float *restrict scale, int m, int k)
{
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    run_tiles(INT4, c, (operands){.x = x, .w = w, .k = k}, m);
}

void fm__gemm_f32_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    (void)scale;
    run_tiles(F32, c, (operands){.x = x, .w = w, .k = k}, m);
}

static void widen_fp8(char *out, const char *w, int k)
{
    for (int p = 0; p < k; p += 2, out += 128, w += 64) {
        const pair_row r = load_fp8(w);
        _mm512_storeu_si512(out, (__m512i)r.half[0]);
        _mm512_storeu_si512(out + 64, (__m512i)r.half[1]);
    }
}

/* One tile expands the weights in registers; several share an expanded slice. */
void fm__gemm_scaled_avx512(float *restrict c, const void *const *restrict x,
                            const float *const *restrict x_scale, const void *restrict w,
                            const float *restrict scale, int m, int k)
{
    _Alignas(64) char wide[FM__SCALE_K * FM_PANEL * 2]; /* stays in L1 */
    operands          o = {.x       = x,
                           .w       = w,
                           .soon    = (const char *)w + AHEAD,
                           .scale   = scale,
                           .k       = k,
                           .x_scale = x_scale};
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    if (m <= ROWS) {
        tile[m][FP8](c, &o);
        return;
    }
    o.w = wide;
    for (int p = 0; p < k; p += FM__SCALE_K, o.scale += 2, o.slice++) {
        o.at   = (size_t)p * 2;
        o.k    = fm__least(FM__SCALE_K, k - p);
        o.soon = (const char *)w + (size_t)p * FM_PANEL + AHEAD;
        widen_fp8(wide, (const char *)w + (size_t)p * FM_PANEL, o.k);
        run_tiles(FP8_SLICE, c, o, m);
    }
}

void fm__gemm_fp8_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    fm__gemm_scaled_avx512(c, x, NULL, w, scale, m, k);
}
