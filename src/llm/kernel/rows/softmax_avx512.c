/* SPDX-License-Identifier: Apache-2.0 */
/* The online softmax with the keys as lanes.  In prompt attention it stands
 * between two products of AMX tiles and must not take longer than they do. */
#include <math.h>

#include "llm/kernel/exp_avx512.h"
#include "llm/kernel/rows/rows_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16, TILE = 32 };

/* One query's scores, tiles of 32 being `step` floats apart. */
typedef struct {
    const float *at;
    size_t       step;
    int          n; /* visible ones */
} scores;

INLINE __mmask16 first(int n)
{
    return (__mmask16)(n >= LANES ? 0xffff : n > 0 ? (1 << n) - 1 : 0);
}

INLINE const float *at(const scores *s, int k)
{
    return s->at + (size_t)(k / TILE) * s->step + (size_t)(k % TILE);
}

/* A NaN is passed over here; its own weight will be NaN. */
INLINE float largest(const scores *s)
{
    const int whole = s->n / TILE * TILE;
    __m512    a = _mm512_set1_ps(-INFINITY), b = a;
    for (int k = 0; k < whole; k += TILE) {
        const float *from = at(s, k);
        a                 = _mm512_max_ps(_mm512_loadu_ps(from), a);
        b                 = _mm512_max_ps(_mm512_loadu_ps(from + LANES), b);
    }
    for (int k = whole; k < s->n; k += LANES)
        a = _mm512_max_ps(_mm512_mask_loadu_ps(a, first(s->n - k), at(s, k)), a);
    return _mm512_reduce_max_ps(_mm512_max_ps(a, b));
}

/* From scores to weights: 2^(score * by - top). */
typedef struct {
    __m512 by, top;
} exponent;

INLINE __m512 weight(__m512 score, const exponent *e)
{
    const __m512 y = _mm512_fmsub_ps(score, e->by, e->top);
    return fm__exp2_avx512(_mm512_max_ps(_mm512_set1_ps(-FM__EXP2_LIMIT), y));
}

/* Keys from k on, of which those that may not be seen weigh nothing. */
INLINE __m512 last_weights(const scores *s, int k, const exponent *e)
{
    const __mmask16 seen = first(s->n - k);
    return _mm512_maskz_mov_ps(seen, weight(_mm512_maskz_loadu_ps(seen, at(s, k)), e));
}

/* n_key weights in bf16; returns their sum before rounding. */
INLINE float weigh(fm_bf16 *p, const scores *s, int n_key, float scale, float max)
{
    const float    log2_e = 1.44269504f;
    const exponent e      = {_mm512_set1_ps(scale * log2_e), _mm512_set1_ps(max * log2_e)};
    const int      whole  = s->n / TILE * TILE;
    __m512         sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    int            k      = 0;
    for (; k < whole; k += TILE) {
        const float *from = at(s, k);
        const __m512 a    = weight(_mm512_loadu_ps(from), &e);
        const __m512 b    = weight(_mm512_loadu_ps(from + LANES), &e);
        sum[0]            = _mm512_add_ps(sum[0], a);
        sum[1]            = _mm512_add_ps(sum[1], b);
        _mm512_storeu_si512(p + k, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
    for (; k < s->n; k += TILE) {
        const __m512 a = last_weights(s, k, &e), b = last_weights(s, k + LANES, &e);
        sum[0] = _mm512_add_ps(sum[0], a);
        sum[1] = _mm512_add_ps(sum[1], b);
        _mm512_storeu_si512(p + k, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
    for (; k < n_key; k += TILE) _mm512_storeu_si512(p + k, _mm512_setzero_si512());
    return _mm512_reduce_add_ps(_mm512_add_ps(sum[0], sum[1]));
}

/* Raises max[0..n) to top and says by how much what was summed shrinks, n <= 16;
 * a first maximum meets nothing and any factor will do. */
INLINE void raise(float *max, const float *top, float *alpha, int n)
{
    const __mmask16 live = first(n);
    const __m512    old = _mm512_maskz_loadu_ps(live, max), now = _mm512_maskz_loadu_ps(live, top);
    const __mmask16 new = _mm512_cmp_ps_mask(old, now, _CMP_NEQ_UQ);
    const __m512    one = _mm512_set1_ps(1.0f);
    _mm512_mask_storeu_ps(alpha, live,
                          _mm512_mask_mov_ps(one, new, fm__exp_avx512(_mm512_sub_ps(old, now))));
    _mm512_mask_storeu_ps(max, live, now);
}

/* Queries [from, from+n), at most 16. */
static void some_rows(const fm_softmax_step *s, int from, int n)
{
    const int    n_key = s->n_tile * TILE;
    const float *score = s->score + from * TILE;
    const size_t step  = (size_t)s->m * TILE;
    const int   *seen  = s->n_visible + from;
    float       *max = s->max + from, *sum = s->sum + from, *alpha = s->alpha + from;
    fm_bf16     *p = (fm_bf16 *)s->weight + (size_t)from * (size_t)n_key;
    float        top[LANES];
    for (int i = 0; i < n; i++) {
        const scores r = {score + i * TILE, step, seen[i]};
        top[i]         = r.n > 0 ? fmaxf(largest(&r) * s->scale, max[i]) : max[i];
    }
    raise(max, top, alpha, n);
    for (int i = 0; i < n; i++) {
        const scores r   = {score + i * TILE, step, seen[i]};
        const float  all = weigh(p + (size_t)i * (size_t)n_key, &r, n_key, s->scale, max[i]);
        if (r.n > 0) sum[i] = sum[i] * alpha[i] + all;
    }
}

void fm__tile_softmax_avx512(const fm_softmax_step *s)
{
    for (int i = 0; i < s->m; i += LANES) some_rows(s, i, s->m - i < LANES ? s->m - i : LANES);
}
