/* SPDX-License-Identifier: Apache-2.0 */
/* Where a tile goes, a row of 32 at a time. */
#include <immintrin.h>

#include "llm/kernel/rows/rows_internal.h"

enum { HALF = 16, LINE = 64 };

static inline __m512i rounded(const float *c)
{
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(c + HALF), _mm512_loadu_ps(c));
}

void fm__tile_store_avx512(fm_bf16 *dst, size_t ld, const float *c, int m)
{
    for (int i = 0; i < m; i++, dst += ld, c += 2 * HALF) _mm512_storeu_si512(dst, rounded(c));
}

/* A whole line past the caches; a line in parts would go through them twice. */
static inline void stream(void *to, __m512i line)
{
    if ((uintptr_t)to % LINE == 0) _mm512_stream_si512(to, line);
    else _mm512_storeu_si512(to, line);
}

void fm__tile_scatter_avx512(void *const *to, fm_dtype t, const float *c, int m)
{
    for (int i = 0; i < m; i++, c += 2 * HALF)
        if (t == FM_BF16) {
            stream(to[i], rounded(c));
        } else {
            stream(to[i], _mm512_loadu_si512(c));
            stream((float *)to[i] + HALF, _mm512_loadu_si512(c + HALF));
        }
}

void fm__scatter_end_avx512(void)
{
    _mm_sfence();
}
