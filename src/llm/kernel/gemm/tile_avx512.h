/* SPDX-License-Identifier: Apache-2.0 */
/* What register tiles of all types share: pairs of k, as VDPBF16PS multiplies them. */
#ifndef FM_LLM_KERNEL_GEMM_TILE_AVX512_H
#define FM_LLM_KERNEL_GEMM_TILE_AVX512_H

#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define FM__INLINE static inline __attribute__((always_inline))

typedef const void *const *fm__rows_of; /* x, from a tile's first row on */

/* One pair of k: 16 outputs x 2 k of each half of the panel. */
typedef struct {
    __m512bh half[2];
} fm__pair_of_k;

FM__INLINE fm__pair_of_k fm__load_pair(const char *w)
{
    return (fm__pair_of_k){{(__m512bh)_mm512_loadu_si512(w), (__m512bh)_mm512_loadu_si512(w + 64)}};
}

FM__INLINE void fm__store_pair(char *to, fm__pair_of_k r)
{
    _mm512_storeu_si512(to, (__m512i)r.half[0]);
    _mm512_storeu_si512(to + 64, (__m512i)r.half[1]);
}

FM__INLINE __m512bh fm__broadcast_pair(const void *row, size_t at)
{
    int32_t pair;
    memcpy(&pair, (const char *)row + at, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

/* sum[rows] += the rows' k at byte `at`, times r */
FM__INLINE void fm__multiply_pair(__m512 sum[][2], fm__rows_of x, int rows, size_t at,
                                  fm__pair_of_k r)
{
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        const __m512bh a = fm__broadcast_pair(x[i], at);
        sum[i][0]        = _mm512_dpbf16_ps(sum[i][0], r.half[0], a);
        sum[i][1]        = _mm512_dpbf16_ps(sum[i][1], r.half[1], a);
    }
}

FM__INLINE void fm__clear_sums(__m512 sum[][2], int rows)
{
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
}

FM__INLINE void fm__load_sums(__m512 sum[][2], const float *c, int rows)
{
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++, c += FM_PANEL) {
        sum[i][0] = _mm512_loadu_ps(c);
        sum[i][1] = _mm512_loadu_ps(c + FM__HALF);
    }
}

FM__INLINE void fm__store_sums(float *c, __m512 sum[][2], int rows)
{
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++, c += FM_PANEL) {
        _mm512_storeu_ps(c, sum[i][0]);
        _mm512_storeu_ps(c + FM__HALF, sum[i][1]);
    }
}

#endif
