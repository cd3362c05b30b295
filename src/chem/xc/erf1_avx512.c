/* SPDX-License-Identifier: Apache-2.0 */
#define MADD(a, b, c) __builtin_fma(a, b, c)
#include "chem/xc/erf1_body.h"

extern const fm_erf1_kernels fm__erf1_avx512;
const fm_erf1_kernels        fm__erf1_avx512 = {FM_ISA_AVX512, steps, product};
