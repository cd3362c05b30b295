/* SPDX-License-Identifier: Apache-2.0 */
#define DIGEST_KERNEL fm__digest_avx2
#define DIGEST_ISA FM_ISA_AVX2
#include "chem/fock/digest_body.h"
