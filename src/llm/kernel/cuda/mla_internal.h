/* SPDX-License-Identifier: Apache-2.0 */
/* What fm_cuda_mla_init() visits. */
#ifndef FM_LLM_KERNEL_CUDA_MLA_INTERNAL_H
#define FM_LLM_KERNEL_CUDA_MLA_INTERNAL_H

#include "base/status.h"

fm_status fm__mla_absorbed_init(void);
fm_status fm__mla_expanded_init(void);

#endif
