/* SPDX-License-Identifier: Apache-2.0 */
#define MADD(a, b, c) ((a) * (b) + (c))
#include "chem/xc/erf1_body.h"

extern const fm_erf1_kernels fm__erf1_ref;
const fm_erf1_kernels        fm__erf1_ref = {FM_ISA_REF, steps, product};
