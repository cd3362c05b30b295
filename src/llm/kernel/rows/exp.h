/* SPDX-License-Identifier: Apache-2.0 */
/* e^x in single precision from multiplications and additions alone: the same
 * bits in a scalar loop and in vectors of any width.  Relative error below
 * 2^-22 on [-87, 88]; smaller arguments give 0, larger ones e^88. */
#ifndef FM_LLM_KERNEL_ROWS_EXP_H
#define FM_LLM_KERNEL_ROWS_EXP_H

#include "base/number.h"

/* All ones where x < y: masks instead of branches, so that loops become vectors. */
FM_HD static inline uint32_t fm_mask_below(float x, float y)
{
    return -(uint32_t)(x < y);
}

FM_HD static inline float fm_exp(float x)
{
    const uint32_t low = fm_mask_below(x, -87.0f), high = fm_mask_below(88.0f, x);
    const uint32_t kept = fm_bits_of_f32(x) & ~(low | high);
    const float    c    = fm_f32_from_bits(kept | (fm_bits_of_f32(88.0f) & high));
    /* e^x = 2^n e^r with n the nearest integer to x/ln 2, so |r| <= ln(2)/2 */
    const float shifted = c * 1.44269504f + 12582912.0f;
    const float n       = shifted - 12582912.0f;
    const float r       = (c - n * 0.693359375f) - n * -2.12194440e-4f;
    float       p       = 1.3933652e-3f; /* (e^r - 1 - r) / r^2, Chebyshev fit, 1.1e-8 */
    p                   = p * r + 8.3631817e-3f;
    p                   = p * r + 4.1666467e-2f;
    p                   = p * r + 1.6666576e-1f;
    p                   = p * r + 0.5f;
    const float    e    = (p * r) * r + r + 1.0f;
    const uint32_t up   = (fm_bits_of_f32(shifted) - 0x4b400000u) << 23; /* n * 2^23 */
    return fm_f32_from_bits((fm_bits_of_f32(e) + up) & ~low);
}

#endif
