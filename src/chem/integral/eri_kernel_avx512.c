/* SPDX-License-Identifier: Apache-2.0 */
#define ERI_GENERATED "eri_wide.h"
#define ERI_KERNEL fm__eri_kernel_avx512
#define ERI_ISA FM_ISA_AVX512
#define ERI_NAME "avx512"
#include "chem/integral/eri_body.h"
