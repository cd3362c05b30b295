/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of dummy values.  Element i of a tensor (row * columns + column of
 * the whole tensor) depends on its name, the seed and i alone:
 *
 *     u     = fm_rng_u32(fm_rng_key(name, seed), i)
 *     s     = u's upper 24 bits as a signed integer, -2^23 … 2^23 - 1
 *     value = centre + s * step         two float operations, each rounded
 *
 * then rounded to BF16 unless the tensor is F32.  Integers and two plain float
 * operations: a GPU that does not contract them gets the same bits.
 *
 *     tensor                     centre  std                type
 *     linear, router, head       0       1/sqrt(columns)    BF16, or FP8 as below
 *     embedding                  0       1                  BF16
 *     norms                      1       1/32               BF16
 *     e_score_correction_bias    0       1/32               F32
 *
 * INT4 values are uniform in -7 ... 7, with one scale in BF16 for all groups.
 * s * step is uniform within +-sqrt(3) std.  FP8 bytes are e4m3 of an integer
 * that is uniform in -448 … 448, cut to 4 significant bits; one scale for all
 * blocks of a tensor brings them to the same std. */
#ifndef FM_LLM_LOAD_DUMMY_H
#define FM_LLM_LOAD_DUMMY_H

#include "base/number.h"
#include "base/rng.h"

FM_HD static inline float fm_dummy_f32(uint32_t u, float centre, float step)
{
    return centre + (float)((int32_t)u >> 8) * step;
}

/* Bits 17..31 choose the magnitude, bit 0 the sign. */
FM_HD static inline fm_fp8 fm_dummy_fp8(uint32_t u)
{
    const uint32_t m    = (u >> 17) * 449 >> 15;
    const uint32_t code = (fm_bits_of_f32((float)m) >> 20) - (120u << 3); /* m = 2^e * 1.xxx, cut */
    return (fm_fp8)((u & 1) << 7 | (m ? code : 0));
}

/* Bits 17..31 choose; as it is stored, 8 more than it means. */
FM_HD static inline uint8_t fm_dummy_int4(uint32_t u)
{
    return (uint8_t)(((u >> 17) * 15 >> 15) + 1);
}

#endif
