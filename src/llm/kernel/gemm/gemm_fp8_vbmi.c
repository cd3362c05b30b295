/* SPDX-License-Identifier: Apache-2.0 */
/* The same bits as gemm_fp8_avx512.c with fewer instructions to widen: 64 magnitudes at once are
 * looked up by VPERMI2B.  One or two rows take a tenth to a seventh less time. */
#include "llm/kernel/gemm/fp8_tiles_avx512.h"

/* Lower and upper bytes of the BF16 numbers of 64 e4m3 codes, times 2^8: exponent e + 128 and m;
 * those without exponent, codes 0 .. 7, are m * 2^-9. */
typedef struct {
    __m512i lower, upper;
} codes;

FM__INLINE codes codes_from(int first)
{
    const __m512i iota = _mm512_set_epi64(
        0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
        0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    const __m512i code   = _mm512_add_epi8(iota, _mm512_set1_epi8((char)first));
    const __m512i nibble = _mm512_set1_epi8(0x0f), exponent = _mm512_set1_epi8(0x40);
    const __m512i low = _mm512_and_si512(code, nibble);
    return (codes){_mm512_slli_epi16(low, 4),
                   _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(code, 4), nibble), exponent)};
}

FM__INLINE codes first_codes(void)
{
    const __m512i   lower = _mm512_set1_epi64(0x60402000c0800000);
    const __m512i   upper = _mm512_set1_epi64(0x404040403f3f3f00);
    const __mmask64 tiny  = 0xff;
    const codes     t     = codes_from(0);
    return (codes){_mm512_mask_mov_epi8(t.lower, tiny, lower),
                   _mm512_mask_mov_epi8(t.upper, tiny, upper)};
}

/* Even bytes are the first half of the panel, odd bytes the second. */
FM__INLINE fm__pair_of_k widen_fp8(__m512i b)
{
    const codes   small = first_codes(), large = codes_from(64);
    const __m512i sign = _mm512_set1_epi8((char)0x80), odd = _mm512_set1_epi16((short)0xff00);
    const __m512i lower     = _mm512_permutex2var_epi8(small.lower, b, large.lower);
    const __m512i magnitude = _mm512_permutex2var_epi8(small.upper, b, large.upper);
    const __m512i upper   = _mm512_ternarylogic_epi32(magnitude, b, sign, 0xf8); /* | (b & sign) */
    const __m512i swapped = _mm512_shldi_epi16(lower, lower, 8);
    return (fm__pair_of_k){{(__m512bh)_mm512_shldi_epi16(upper, swapped, 8),
                            (__m512bh)_mm512_ternarylogic_epi32(odd, upper, swapped,
                                                                0xca)}}; /* odd ? upper : swapped */
}

void fm__gemm_scaled_vbmi(float *restrict c, const void *const *restrict x,
                          const float *const *restrict x_scale, const void *restrict w,
                          const float *restrict scale, int m, int k)
{
    multiply(c, (operands){.x = x, .x_scale = x_scale, .w = w, .scale = scale}, m, k);
}

void fm__gemm_fp8_vbmi(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    fm__gemm_scaled_vbmi(c, x, NULL, w, scale, m, k);
}
