/* SPDX-License-Identifier: Apache-2.0 */
/* 16 values at a time.  The conversion instruction for BF16 would flush
 * subnormals, so rounding is done in integers as everywhere. */
#include <immintrin.h>

#include "llm/load/dummy_internal.h"

static __m512i times(__m512i x, uint32_t by)
{
    return _mm512_mullo_epi32(x, _mm512_set1_epi32((int)by));
}

/* fm__dummy_u32 of i … i+15 */
static __m512i numbers(uint32_t stream, uint32_t i)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i       x    = times(_mm512_add_epi32(lane, _mm512_set1_epi32((int)i)), 0x9e3779b9u);
    x                  = _mm512_add_epi32(x, _mm512_set1_epi32((int)stream));
    x                  = _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
    x                  = times(x, 0x7feb352du);
    x                  = _mm512_xor_si512(x, _mm512_srli_epi32(x, 15));
    x                  = times(x, 0x846ca68bu);
    return _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
}

static __m256i bf16_of(__m512 f)
{
    const __m512i u   = _mm512_castps_si512(f);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i up  = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}

static __m128i fp8_of(__m512i u)
{
    const __m512i m    = _mm512_srli_epi32(times(_mm512_srli_epi32(u, 17), 449), 15);
    const __m512i bits = _mm512_castps_si512(_mm512_cvtepi32_ps(m));
    const __m512i code = _mm512_sub_epi32(_mm512_srli_epi32(bits, 20), _mm512_set1_epi32(120 << 3));
    const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(u, _mm512_set1_epi32(1)), 7);
    const __mmask16 some = _mm512_test_epi32_mask(m, m);
    return _mm512_cvtepi32_epi8(_mm512_or_si512(sign, _mm512_maskz_mov_epi32(some, code)));
}

void fm__dummy_bf16_avx512(void *restrict dst, const fm__dummy_run *run)
{
    fm_bf16     *out    = dst;
    const __m512 centre = _mm512_set1_ps(run->centre), step = _mm512_set1_ps(run->step);
    for (uint32_t j = 0; j < run->n; j += 16) {
        const uint32_t  left = run->n - j;
        const __mmask16 on   = left < 16 ? (__mmask16)((1u << left) - 1) : 0xffff;
        const __m512i   s    = _mm512_srai_epi32(numbers(run->stream, run->i + j), 8);
        const __m512    x    = _mm512_add_ps(centre, _mm512_mul_ps(_mm512_cvtepi32_ps(s), step));
        _mm256_mask_storeu_epi16(out + j, on, bf16_of(x));
    }
}

void fm__dummy_fp8_avx512(void *restrict dst, const fm__dummy_run *run)
{
    fm_fp8 *out = dst;
    for (uint32_t j = 0; j < run->n; j += 16) {
        const uint32_t  left = run->n - j;
        const __mmask16 on   = left < 16 ? (__mmask16)((1u << left) - 1) : 0xffff;
        _mm_mask_storeu_epi8(out + j, on, fp8_of(numbers(run->stream, run->i + j)));
    }
}
