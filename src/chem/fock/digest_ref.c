/* SPDX-License-Identifier: Apache-2.0 */
#define DIGEST_KERNEL fm__digest_ref
#define DIGEST_ISA FM_ISA_REF
#include "chem/fock/digest_body.h"
