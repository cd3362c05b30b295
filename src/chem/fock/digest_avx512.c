/* SPDX-License-Identifier: Apache-2.0 */
#define DIGEST_KERNEL fm__digest_avx512
#define DIGEST_ISA FM_ISA_AVX512
#include "chem/fock/digest_body.h"
