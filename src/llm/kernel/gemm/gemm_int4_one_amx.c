/* SPDX-License-Identifier: Apache-2.0 */
/* INT4 panels times one row, without tiles but with the bits of tile products
 * (gemm_quant_amx.c).
 *
 * A tile product sums the even k of its 32 and the odd k, each in ascending order, and adds both.
 * VDPBF16PS adds two products to a sum one after the other, that of the upper words first: with k
 * in the upper word and k + 2 in the lower one it takes two steps of such a sum.  An output's
 * weights of four k are 32 bits of a panel:
 *
 *     byte               0            1           2           3
 *     bits 0 .. 3        k            k           k + 1       k + 1
 *     bits 4 .. 7        k + 2        k + 2       k + 3       k + 3
 *     half of panel      first        second      first       second
 *
 * A VPMULTISHIFTQB picks k + 2, k + 2, k and k of one byte, AND and OR make them indices of a
 * table whose entries 0 .. 15 are lower bytes of BF16 numbers and 16 .. 31 upper ones, and VPERMB
 * looks them up.  Nothing is stored, so that one row takes weights from memory faster than tiles
 * do.  VDPBF16PS takes more than two cycles: for two rows tiles are faster
 * (gemm_int4_few_amx.c). */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/gemm/widen_amx.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    DEPTH    = FM__STEP_K,
    LINES    = 8, /* of a step's weights */
    LINE     = 64,
    AHEAD    = 2, /* steps between ordering x and use: the loads must find the store */
    RING     = 4,
    PREFETCH = 8192, /* bytes between use and prefetching */
};

typedef struct {
    __m512i pick[2][2]; /* [even or odd k][half] where the bytes of a dword come from */
    __m512i bytes, four, upper;
} lookup;

static lookup lookup_of_int4(void)
{
    const __m512i lower = _mm512_set1_epi16(0x0f0f);
    lookup        t     = {.four = lower, .upper = _mm512_set1_epi16(0x1000)};
    for (int odd = 0; odd < 2; odd++)
        for (int h = 0; h < 2; h++) {
            const uint64_t at    = (uint64_t)(odd * 16 + h * 8);
            const uint64_t dword = (at + 4) | (at + 4) << 8 | at << 16 | at << 24;
            t.pick[odd][h] = _mm512_set1_epi64((long long)(dword | (dword + 0x20202020) << 32));
        }
    t.bytes = _mm512_inserti32x4(fm__int4_lower_bytes(),
                                 _mm512_castsi512_si128(fm__int4_upper_bytes()), 1);
    return t;
}

INLINE __m512bh look_up(const lookup *t, __m512i b, int odd, int h)
{
    const __m512i v     = _mm512_multishift_epi64_epi8(t->pick[odd][h], b);
    const __m512i index = _mm512_ternarylogic_epi32(v, t->four, t->upper, 0xea);
    return (__m512bh)_mm512_permutexvar_epi8(index, t->bytes);
}

/* Words of x in the order of the products: k + 2, k, k + 3, k + 1. */
typedef struct {
    _Alignas(64) uint32_t word[RING][DEPTH / 2];
} ordered;

static inline void order_x(ordered *to, const void *x, int step)
{
    const __m512i order = _mm512_broadcast_i32x4(
        _mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
    const __m512i v = _mm512_loadu_si512((const char *)x + (size_t)step * LINE);
    _mm512_store_si512(to->word[step % RING], _mm512_shuffle_epi8(v, order));
}

/* The sums of a step: [half][even or odd k]. */
typedef struct {
    __m512 of[2][2];
} sums;

/* c[32] += scale * sums of a step, whose weights begin at w. */
INLINE void settle(float *c, const sums *s, const char *w)
{
    fm__fetch_soon(w + LINES * LINE + PREFETCH);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const __m512 by   = fm__scales_of_group(fm__group_scales(w) + h * FM__HALF);
        const __m512 both = _mm512_add_ps(s->of[h][0], s->of[h][1]);
        const __m512 tile = _mm512_add_ps(_mm512_setzero_ps(), both); /* -0 becomes 0 */
        float       *to   = c + h * FM__HALF;
        _mm512_storeu_ps(to, _mm512_fmadd_ps(by, tile, _mm512_loadu_ps(to)));
    }
}

/* n steps from `step` on, side by side: two make eight chains of sums. */
INLINE void add_steps(float *c, const ordered *x, const char *w, const lookup *t, int step, int n)
{
    sums sum[2];
#pragma GCC unroll 2
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) sum[i].of[q / 2][q % 2] = _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int p = 0; p < LINES; p++)
#pragma GCC unroll 2
        for (int i = 0; i < n; i++) {
            const char   *at = w + i * FM__GROUP_BYTES + p * LINE;
            const __m512i b  = _mm512_loadu_si512(at);
            fm__fetch_soon(at + PREFETCH);
#pragma GCC unroll 4
            for (int q = 0; q < 4; q++) {
                const int      odd = q / 2, h = q % 2;
                const uint32_t two = x->word[(step + i) % RING][p * 2 + odd];
                sum[i].of[h][odd]  = _mm512_dpbf16_ps(sum[i].of[h][odd],
                                                      (__m512bh)_mm512_set1_epi32((int)two),
                                                      look_up(t, b, odd, h));
            }
        }
#pragma GCC unroll 2
    for (int i = 0; i < n; i++) settle(c, &sum[i], w + i * FM__GROUP_BYTES);
}

void fm__gemm_int4_one_amx(float *restrict c, const void *restrict x, const void *restrict w, int k)
{
    const lookup t      = lookup_of_int4();
    const int    n_step = k / DEPTH;
    ordered      in;
    memset(c, 0, FM_PANEL * sizeof *c);
    for (int s = 0; s < AHEAD && s < n_step; s++) order_x(&in, x, s);
    for (int s = 0; s < n_step; s += 2) {
        for (int i = s + AHEAD; i < s + AHEAD + 2 && i < n_step; i++) order_x(&in, x, i);
        if (s + 1 < n_step) add_steps(c, &in, fm__group_at(w, s * DEPTH), &t, s, 2);
        else add_steps(c, &in, fm__group_at(w, s * DEPTH), &t, s, 1);
    }
}
