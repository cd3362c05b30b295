/* SPDX-License-Identifier: Apache-2.0 */
#define MADD(a, b, c) ((a) * (b) + (c))
#include "chem/xc/ao_body.h"

extern const fm_ao_kernels fm__ao_ref;
const fm_ao_kernels        fm__ao_ref = {FM_ISA_REF, eval, contract, combine};
