/* SPDX-License-Identifier: Apache-2.0 */
/* The short number formats: bf16 and fp8 are integers here, converted exactly
 * and rounded to nearest even, the same bits on every ISA level and device. */
#ifndef FM_BASE_NUMBER_H
#define FM_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

typedef uint16_t fm_bf16; /* 1-8-7 */
typedef uint16_t fm_f16;  /* IEEE half */
typedef uint8_t  fm_fp8;  /* e4m3fn: no inf, NaN = 0x7F and 0xFF, largest 448 */

/* FM_INT4: -8 ... 7 times a scale for each FM_INT4_GROUP of a row; two to a byte, each plus 8,
 * the first in the lower four bits. */
typedef enum { FM_F32, FM_BF16, FM_F16, FM_FP8, FM_INT4, FM_E8M0 } fm_dtype;

enum { FM_INT4_GROUP = 32 };

/* Not for INT4, of which a byte has two. */
FM_HD static inline size_t fm_dtype_bytes(fm_dtype t)
{
    return t == FM_F32 ? 4 : t == FM_BF16 || t == FM_F16 ? 2 : 1;
}

/* Bytes of n values side by side; of INT4, n is even. */
FM_HD static inline size_t fm_dtype_row_bytes(fm_dtype t, size_t n)
{
    return t == FM_INT4 ? n / 2 : n * fm_dtype_bytes(t);
}

FM_HD static inline float fm_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

FM_HD static inline uint32_t fm_bits_of_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

FM_HD static inline float fm_f32_of_bf16(fm_bf16 b)
{
    return fm_f32_from_bits((uint32_t)b << 16);
}

/* NaN stays NaN (quiet); everything else rounds to nearest even. */
FM_HD static inline fm_bf16 fm_bf16_of_f32(float f)
{
    const uint32_t u = fm_bits_of_f32(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (fm_bf16)(u >> 16 | 0x40);
    return (fm_bf16)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

FM_HD static inline float fm_f32_of_f16(fm_f16 h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = h >> 10 & 31, man = h & 1023;
    if (exp == 31) return fm_f32_from_bits(sign | 0x7f800000u | man << 13);
    if (exp == 0) { /* zero or subnormal: man * 2^-24 is exact in f32 */
        const float f = (float)man * 0x1p-24f;
        return sign ? -f : f;
    }
    return fm_f32_from_bits(sign | (exp + 112) << 23 | man << 13);
}

FM_HD static inline float fm_f32_of_fp8(fm_fp8 b)
{
    const uint32_t sign = (uint32_t)(b & 0x80u) << 24, exp = b >> 3 & 15, man = b & 7;
    if ((b & 0x7f) == 0x7f) return fm_f32_from_bits(sign | 0x7fc00000u);
    if (exp == 0) {
        const float f = (float)man * 0x1p-9f;
        return sign ? -f : f;
    }
    return fm_f32_from_bits(sign | (exp + 120) << 23 | man << 20);
}

FM_HD static inline float fm_f32_of_e8m0(uint8_t e) /* 2^(e-127); 0xFF is NaN */
{
    if (e == 0xff) return fm_f32_from_bits(0x7fc00000u);
    return e ? fm_f32_from_bits((uint32_t)e << 23) : 0x1p-127f;
}

FM_HD static inline size_t fm_round_up(size_t x, size_t to)
{
    return (x + to - 1) / to * to;
}

#endif
