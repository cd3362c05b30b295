/* SPDX-License-Identifier: Apache-2.0 */
/* A 16 x 16 transpose of 32-bit lanes in registers. */
#ifndef FM_LLM_KERNEL_TRANSPOSE_AVX512_H
#define FM_LLM_KERNEL_TRANSPOSE_AVX512_H

#include <immintrin.h>

/* r[i] lane p  <->  r[p] lane i.  Steps of 1, 2, 4 and 8: the first two
 * within 128 bits, the last two across. */
static inline __attribute__((always_inline)) void fm__transpose(__m512i r[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i]     = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { /* r[4g + q]: lane q of each 128 bits, rows 4g .. 4g+3 */
        r[i]     = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int q = 0; q < 4; q++) {
        t[q]      = _mm512_shuffle_i32x4(r[q], r[4 + q], 0x88);
        t[4 + q]  = _mm512_shuffle_i32x4(r[q], r[4 + q], 0xdd);
        t[8 + q]  = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0x88);
        t[12 + q] = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0xdd);
    }
    for (int q = 0; q < 4; q++) {
        r[q]      = _mm512_shuffle_i32x4(t[q], t[8 + q], 0x88);
        r[4 + q]  = _mm512_shuffle_i32x4(t[4 + q], t[12 + q], 0x88);
        r[8 + q]  = _mm512_shuffle_i32x4(t[q], t[8 + q], 0xdd);
        r[12 + q] = _mm512_shuffle_i32x4(t[4 + q], t[12 + q], 0xdd);
    }
}

#endif
