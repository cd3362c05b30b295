/* SPDX-License-Identifier: Apache-2.0 */
#define MADD(a, b, c) __builtin_fma(a, b, c)
#include "chem/xc/erf1_body.h"

extern const fm_erf1_kernels fm__erf1_avx2;
const fm_erf1_kernels        fm__erf1_avx2 = {FM_ISA_AVX2, steps, product};
