/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 panels: a group is a slice of 128 k with a scale for each half of the panel; quantised rows
 * of x have a factor of their own in each slice.  The file that includes this defines widen_fp8(),
 * e4m3 to bf16 times 2^8. */
#ifndef FM_LLM_KERNEL_GEMM_FP8_TILES_AVX512_H
#define FM_LLM_KERNEL_GEMM_FP8_TILES_AVX512_H

enum {
    GROUP_K = 128,
    AHEAD   = 8192, /* bytes between reading and prefetching: those of a pass */
};

#include "llm/kernel/gemm/quant_tiles_avx512.h"

FM__INLINE fm__pair_of_k widen_fp8(__m512i b);

FM__INLINE const char *packed_at(const operands *o, int k, int q)
{
    return o->w + (size_t)(k + q) * FM_PANEL;
}

FM__INLINE void widen_four(fm__pair_of_k to[2], const char *packed)
{
    to[0] = widen_fp8(_mm512_loadu_si512(packed));
    to[1] = widen_fp8(_mm512_loadu_si512(packed + 64));
}

FM__INLINE __m512 factor_of(const operands *o, int i, int k, int h)
{
    const int slice = k / GROUP_K;
    return _mm512_set1_ps(fm__factor_of_row(o->x_scale, i, slice) *
                          fm__scale_of_wide(o->scale[slice * 2 + h]));
}

#endif
