/* SPDX-License-Identifier: Apache-2.0 */
#define MADD(a, b, c) __builtin_fma(a, b, c)
#include "chem/xc/ao_body.h"

extern const fm_ao_kernels fm__ao_avx512;
const fm_ao_kernels        fm__ao_avx512 = {FM_ISA_AVX512, eval, contract, combine};
