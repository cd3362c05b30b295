/* SPDX-License-Identifier: Apache-2.0 */
/* BF16 pairs of k from the lower and the upper bytes of 64 numbers, and E4M3 looked up byte by
 * byte: of 128 magnitudes VPERMI2B reads one table of lower and one of upper bytes. */
#ifndef FM_LLM_KERNEL_GEMM_WIDEN_VBMI_H
#define FM_LLM_KERNEL_GEMM_WIDEN_VBMI_H

#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

/* One pair of k: 16 outputs x 2 k of each half of the panel. */
typedef struct {
    __m512i half[2];
} fm__pair_row;

static inline void fm__put_pair_row(char *to, fm__pair_row r)
{
    _mm512_store_si512(to, r.half[0]);
    _mm512_store_si512(to + 64, r.half[1]);
}

/* Even bytes are the first half of the panel, odd bytes the second. */
static inline fm__pair_row fm__pair_row_of(__m512i lower, __m512i upper)
{
    const __m512i odd = _mm512_set1_epi16((short)0xff00);
    const __m512i lo  = _mm512_shldi_epi16(lower, lower, 8);
    return (fm__pair_row){
        {_mm512_shldi_epi16(upper, lo, 8), _mm512_ternarylogic_epi32(odd, upper, lo, 0xca)}};
}

/* A line is prefetched to L2 with each line that is widened.  Gathered at the beginning of a step,
 * where compilers like to put them, prefetches wait for each other: 15 instead of 16.5 GB/s. */
static inline void fm__fetch_soon(const char *at)
{
    __asm__ volatile("" ::: "memory");
    _mm_prefetch(at, _MM_HINT_T1);
    __asm__ volatile("" ::: "memory");
}

/* Bytes of the BF16 numbers of the magnitudes 0 .. 63 and 64 .. 127. */
typedef struct {
    __m512i lower[2], upper[2];
} fm__magnitudes;

/* The numbers times 2^8: exponent e + 128 and m; those without exponent, codes 0 .. 7, are
 * m * 2^-9. */
static inline fm__magnitudes fm__magnitudes_of_e4m3(void)
{
    const __m512i code = _mm512_set_epi64(
        0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
        0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    const __m512i   nibble = _mm512_set1_epi8(0x0f), exponent = _mm512_set1_epi8(0x40);
    const __m512i   lower = _mm512_slli_epi16(_mm512_and_si512(code, nibble), 4);
    const __m512i   upper = _mm512_and_si512(_mm512_srli_epi16(code, 4), nibble);
    const __mmask64 tiny  = 0xff;
    return (fm__magnitudes){
        {_mm512_mask_mov_epi8(lower, tiny, _mm512_set1_epi64(0x60402000c0800000)), lower},
        {_mm512_mask_mov_epi8(_mm512_or_si512(upper, exponent), tiny,
                              _mm512_set1_epi64(0x404040403f3f3f00)),
         _mm512_or_si512(_mm512_add_epi8(upper, _mm512_set1_epi8(4)), exponent)}};
}

/* bf16(factor * w) of 32 numbers, first those in the even places, then the others */
static inline __m512i fm__times(__m512i w, __m512 factor)
{
    const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
    const __m512 odd  = _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(odd, factor), _mm512_mul_ps(even, factor));
}

/* Where the lower byte of number i is after unpacking 64 bytes in lanes of 16, and fm__times(): bit 3
 * of i says which of both results, bit 0 which half of it, bits 5, 4, 2 and 1 the place there. */
static inline __m512i fm__places(void)
{
#define EIGHT(g) (0x2606240422022000 + 0x0101010101010101 * ((g) % 2 * 64 + (g) / 2 * 8))
    return _mm512_set_epi64(EIGHT(7), EIGHT(6), EIGHT(5), EIGHT(4), EIGHT(3), EIGHT(2), EIGHT(1),
                            EIGHT(0));
#undef EIGHT
}

/* The numbers times a scale, each rounded to nearest as a loader rounds. */
static inline fm__magnitudes fm__scaled_magnitudes(float scale)
{
    fm__magnitudes t      = fm__magnitudes_of_e4m3();
    const __m512  factor = _mm512_set1_ps(fm__scale_of_wide(scale));
    const __m512i lower = fm__places(), upper = _mm512_add_epi8(lower, _mm512_set1_epi8(1));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const __m512i a = fm__times(_mm512_unpacklo_epi8(t.lower[i], t.upper[i]), factor);
        const __m512i b = fm__times(_mm512_unpackhi_epi8(t.lower[i], t.upper[i]), factor);
        t.lower[i]      = _mm512_permutex2var_epi8(a, lower, b);
        t.upper[i]      = _mm512_permutex2var_epi8(a, upper, b);
    }
    return t;
}

/* The lookup reads seven bits of a weight; its sign joins the upper byte. */
static inline fm__pair_row fm__look_up(fm__magnitudes t, __m512i b)
{
    const __m512i sign  = _mm512_set1_epi8((char)0x80);
    const __m512i lower = _mm512_permutex2var_epi8(t.lower[0], b, t.lower[1]);
    const __m512i upper = _mm512_permutex2var_epi8(t.upper[0], b, t.upper[1]);
    return fm__pair_row_of(lower, _mm512_ternarylogic_epi32(upper, b, sign, 0xf8)); /* | sign */
}

#endif
