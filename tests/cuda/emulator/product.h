/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a tensor-core step, which mma and wgmma share. */
#ifndef FM_EMU_PRODUCT_H
#define FM_EMU_PRODUCT_H

#include "base/number.h"

extern const float *const fm_emu_f32_of_fp8; /* [256] */

static inline float fm_emu_half_of(uint32_t v, int half)
{
    return fm_f32_of_bf16((fm_bf16)(v >> 16 * half));
}

/* What a lane brings to mma.m16n8k16; the lanes of a warp multiply. */
struct fm_emu_product {
    float          *d;
    const uint32_t *a, *b;
};
void fm_emu_multiply(void *const *all, unsigned mask);

/* d[16][n] += a[16][16] b[16][n], n a multiple of 8.
 *
 * The 16 products of an element are summed in two doubles, which leaves them exact but for the
 * wildest ranges, and added to d at once: as on the hardware, the order of k within a step does
 * not matter.  (How the hardware cuts that sum is not published.) */
void fm_emu_add_product(float *d, const float (*a)[16], const float *b, int n);

/* d[16][n] += a[16][32] b[32][n] of E4M3 numbers, n a multiple of 8: an element and its 32 exact
 * products are cut 13 bits below the largest of them, then added. */
void fm_emu_add_byte_product(float *d, const float (*a)[32], const float *b, int n);

#endif
