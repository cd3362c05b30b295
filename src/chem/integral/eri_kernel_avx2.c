/* SPDX-License-Identifier: Apache-2.0 */
#define ERI_GENERATED "eri_narrow.h"
#define ERI_KERNEL fm__eri_kernel_avx2
#define ERI_ISA FM_ISA_AVX2
#define ERI_NAME "avx2"
#include "chem/integral/eri_body.h"
