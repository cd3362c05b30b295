/* SPDX-License-Identifier: Apache-2.0 */
/* INT4 panels: a group is 32 k with a scale for each output behind its weights. */
#include "llm/kernel/gemm/gemm_internal.h"

enum {
    GROUP_K = FM__GROUP_K,
    AHEAD   = 8 * FM__GROUP_BYTES, /* bytes between reading and prefetching: those of a pass */
};

#include "llm/kernel/gemm/quant_tiles_avx512.h"

/* int4 in the lower four bits of each word to bf16; the lookup reads five bits, so the 16 entries
 * stand there twice. */
FM__INLINE __m512bh bf16_of(__m512i words)
{
    const __m512i value = _mm512_broadcast_i64x4(_mm256_setr_epi16(
        0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, (short)0xc100, (short)0xc0e0,
        (short)0xc0c0, (short)0xc0a0, (short)0xc080, (short)0xc040, (short)0xc000, (short)0xbf80));
    return (__m512bh)_mm512_permutexvar_epi16(words, value);
}

FM__INLINE fm__pair_of_k pair_of(__m512i b)
{
    return (fm__pair_of_k){{bf16_of(b), bf16_of(_mm512_srli_epi16(b, 8))}};
}

FM__INLINE const char *packed_at(const operands *o, int k, int q)
{
    return fm__group_at(o->w, k) + q * (FM_PANEL / 2);
}

FM__INLINE void widen_four(fm__pair_of_k to[2], const char *packed)
{
    const __m512i b = _mm512_loadu_si512(packed);
    to[0]           = pair_of(b);
    to[1]           = pair_of(_mm512_srli_epi16(b, 4));
}

FM__INLINE __m512 factor_of(const operands *o, int i, int k, int h)
{
    const fm_bf16 *s = fm__group_scales(fm__group_at(o->w, k)) + h * FM__HALF;
    const __m512i  a = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)s));
    (void)i;
    return _mm512_castsi512_ps(_mm512_slli_epi32(a, 16));
}

void fm__gemm_int4_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                          const float *restrict scale, int m, int k)
{
    (void)scale;
    multiply(c, (operands){.x = x, .w = w}, m, k);
}
