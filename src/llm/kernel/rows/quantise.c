/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of quantised activations; kernel/cuda/fp8/quantise.cuh repeats it. */
#include "base/clones.h"
#include "llm/kernel/rows/rows.h"

enum { BLOCK = 128 }; /* values under one scale */

static const float largest = 448, least_amax = 0x1p-100f;

/* A NaN among the values is larger than all of them. */
static float amax(const fm_bf16 *x, int n)
{
    fm_bf16 most = 0;
    for (int i = 0; i < n; i++) {
        const fm_bf16 m = x[i] & 0x7fff;
        most            = m > most ? m : most;
    }
    return fm_f32_of_bf16(most);
}

/* To nearest even, magnitudes up to 448: three bits behind the leading one, and below 2^-6
 * multiples of 2^-9, which are what the sum with 1.5 * 2^14 keeps. */
static float to_e4m3(float x)
{
    const uint32_t u     = fm_bits_of_f32(x);
    const float    small = (x + 0x1.8p14f) - 0x1.8p14f;
    const float    usual = fm_f32_from_bits((u + 0x7ffff + (u >> 20 & 1)) & 0xfff00000u);
    return (u & 0x7fffffffu) < 0x3c800000u ? small : usual;
}

FM_CLONES
void fm_row_quantise(fm_bf16 *q, float *scale, const fm_bf16 *x, int n)
{
    for (int from = 0; from < n; from += BLOCK) {
        const int   m     = n - from < BLOCK ? n - from : BLOCK;
        const float found = amax(x + from, m), most = found < least_amax ? least_amax : found;
        const float by = largest / most;
        fm_bf16     out[BLOCK]; /* q may be x: a copy keeps the loop free of aliases */
        *scale++ = most / largest;
        for (int i = 0; i < m; i++)
            out[i] = (fm_bf16)(fm_bits_of_f32(to_e4m3(fm_f32_of_bf16(x[from + i]) * by)) >> 16);
        memcpy(q + from, out, (size_t)m * sizeof *out);
    }
}
