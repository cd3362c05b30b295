/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of 32 k of quantised panels to BF16, exactly: 16 lines of 128 bytes, which are two AMX
 * tiles side by side.  A core has two ports for 512-bit integer work, and word lookups (VPERMW)
 * take one of them twice; byte lookups (VPERMB) and products of bit matrices do not. */
#ifndef FM_LLM_KERNEL_GEMM_WIDEN_AMX_H
#define FM_LLM_KERNEL_GEMM_WIDEN_AMX_H

#include "llm/kernel/gemm/widen_vbmi.h"

enum {
    FM__STEP_K    = 32,
    FM__STEP_WIDE = FM__STEP_K * FM_PANEL * 2, /* bytes of a widened step */
    FM__STEP_FP8  = FM__STEP_K * FM_PANEL,     /* of a stored one */
    FM__STEP_INT4 = FM__GROUP_BYTES,
};

/* A slice is the k under one scale. */
static inline int fm__steps_of_slice(fm_dtype type)
{
    return (type == FM_FP8 ? FM__SCALE_K : FM__GROUP_K) / FM__STEP_K;
}

/* e4m3 to bf16, times 2^8, for 64 bytes at once: sign, exponent + 128 and m of a number are
 * linear in its bits, which is one multiplication by a matrix of bits for the lower bytes of the
 * results and one for the upper.  Numbers without exponent are m * 2^-9 and are looked up by m. */
static inline fm__pair_row fm__widen_fp8(__m512i b)
{
    const __m512i   lower      = _mm512_set1_epi64(0x0000000001020408);
    const __m512i   upper      = _mm512_set1_epi64(0x1020400000000080);
    const __m512i   tiny_lower = _mm512_set1_epi64(0x60402000c0800000);
    const __m512i   tiny_upper = _mm512_set1_epi64(0x404040403f3f3f00);
    const __m512i   exponent   = _mm512_set1_epi8(0x40);
    const __mmask64 tiny       = _mm512_testn_epi8_mask(b, _mm512_set1_epi8(0x78));

    const __m512i lo = _mm512_gf2p8affine_epi64_epi8(b, lower, 0);
    const __m512i hi = _mm512_gf2p8affine_epi64_epi8(b, upper, 0);
    return fm__pair_row_of(
        _mm512_mask_permutexvar_epi8(lo, tiny, b, tiny_lower),
        _mm512_or_si512(hi, _mm512_mask_permutexvar_epi8(exponent, tiny, b, tiny_upper)));
}

static inline void fm__widen_line_fp8(char *to, const char *w, int ahead)
{
    fm__fetch_soon(w + ahead);
    fm__put_pair_row(to, fm__widen_fp8(_mm512_loadu_si512(w)));
}

static inline void fm__widen_step_fp8(char *to, const char *w, int ahead)
{
#pragma GCC unroll 16
    for (int p = 0; p < 16; p++) fm__widen_line_fp8(to + p * 128, w + p * 64, ahead);
}

/* The lower and the upper bytes of the bf16 numbers 0 .. 7, -8 .. -1, four times. */
static inline __m512i fm__int4_lower_bytes(void)
{
    return _mm512_broadcast_i32x4(_mm_setr_epi8(0, (char)0x80, 0, 0x40, (char)0x80, (char)0xa0,
                                                (char)0xc0, (char)0xe0, 0, (char)0xe0, (char)0xc0,
                                                (char)0xa0, (char)0x80, 0x40, 0, (char)0x80));
}
static inline __m512i fm__int4_upper_bytes(void)
{
    return _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 0x3f, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, (char)0xc1, (char)0xc0, (char)0xc0, (char)0xc0,
        (char)0xc0, (char)0xc0, (char)0xc0, (char)0xbf));
}

/* The lower four bits of 64 bytes, two's complement, to bf16: both bytes of the result are looked
 * up.  The lookup reads six bits, hence tables of four times 16 entries. */
static inline fm__pair_row fm__widen_int4(__m512i b)
{
    return fm__pair_row_of(_mm512_permutexvar_epi8(b, fm__int4_lower_bytes()),
                           _mm512_permutexvar_epi8(b, fm__int4_upper_bytes()));
}

/* 64 bytes are two pairs of k. */
static inline void fm__widen_line_int4(char *to, const char *w, int ahead)
{
    const __m512i b = _mm512_loadu_si512(w);
    fm__fetch_soon(w + ahead);
    fm__put_pair_row(to, fm__widen_int4(b));
    fm__put_pair_row(to + 128, fm__widen_int4(_mm512_srli_epi16(b, 4)));
}

static inline void fm__widen_step_int4(char *to, const char *w, int ahead)
{
    fm__fetch_soon(w + 8 * 64 + ahead);
#pragma GCC unroll 8
    for (int p = 0; p < 8; p++) fm__widen_line_int4(to + p * 256, w + p * 64, ahead);
}

/* The scales of 16 outputs. */
static inline __m512 fm__scales_of_group(const void *bf16)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)bf16));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

#endif
