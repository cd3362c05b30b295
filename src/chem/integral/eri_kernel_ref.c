/* SPDX-License-Identifier: Apache-2.0 */
#define ERI_GENERATED "eri_narrow.h"
#define ERI_KERNEL fm__eri_kernel_ref
#define ERI_ISA FM_ISA_REF
#define ERI_NAME "ref"
#include "chem/integral/eri_body.h"
