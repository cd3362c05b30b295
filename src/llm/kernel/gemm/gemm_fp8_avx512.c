/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/gemm/fp8_tiles_avx512.h"

/* e4m3 in the upper byte of each word to bf16, times 2^8: sign, exponent and m
 * move to their places, and the exponent e+120, being e+128 now, lacks one bit.
 * Numbers without exponent are m * 2^-9; what they lack is looked up by m (the
 * lookup reads five bits of `lower`, of which the upper two are then zero).
 * Branching on them would be faster on most weights and slower on zeros. */
FM__INLINE __m512bh bf16_of(__m512i upper, __m512i lower, __mmask32 tiny)
{
    const __m512i lack = _mm512_castsi128_si512(
        _mm_setr_epi16(0, 0x3f10, 0x3fa0, 0x3ff0, 0x4040, 0x4070, 0x4020, 0x4010));
    const __m512i with =
        _mm512_mask_permutexvar_epi16(_mm512_set1_epi16(0x4000), tiny, lower, lack);
    const __m512i field = _mm512_set1_epi16((short)0x87f0), t = _mm512_srai_epi16(upper, 4);
    return (__m512bh)_mm512_ternarylogic_epi32(t, field, with, 0x6a); /* (t & field) ^ with */
}

FM__INLINE fm__pair_of_k widen_fp8(__m512i b)
{
    const __mmask32 tiny0 = _mm512_testn_epi16_mask(b, _mm512_set1_epi16(0x0078));
    const __mmask32 tiny1 = _mm512_testn_epi16_mask(b, _mm512_set1_epi16(0x7800));
    return (fm__pair_of_k){
        {bf16_of(_mm512_slli_epi16(b, 8), b, tiny0), bf16_of(b, _mm512_srli_epi16(b, 8), tiny1)}};
}

void fm__gemm_scaled_avx512(float *restrict c, const void *const *restrict x,
                            const float *const *restrict x_scale, const void *restrict w,
                            const float *restrict scale, int m, int k)
{
    multiply(c, (operands){.x = x, .x_scale = x_scale, .w = w, .scale = scale}, m, k);
}

void fm__gemm_fp8_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    fm__gemm_scaled_avx512(c, x, NULL, w, scale, m, k);
}
