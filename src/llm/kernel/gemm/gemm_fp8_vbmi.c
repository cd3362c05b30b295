/* SPDX-License-Identifier: Apache-2.0 */
/* The same bits as gemm_fp8_avx512.c with fewer instructions to widen: 64 magnitudes at once are
 * looked up by VPERMI2B.  One or two rows take a tenth to a seventh less time. */
#include "llm/kernel/gemm/fp8_tiles_avx512.h"
#include "llm/kernel/gemm/widen_vbmi.h"

FM__INLINE fm__pair_of_k widen_fp8(__m512i b)
{
    const fm__pair_row r = fm__look_up(fm__magnitudes_of_e4m3(), b);
    return (fm__pair_of_k){{(__m512bh)r.half[0], (__m512bh)r.half[1]}};
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
