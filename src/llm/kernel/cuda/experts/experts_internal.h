/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of the kernels of the two phases, which are compiled separately. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_EXPERTS_INTERNAL_H
#define FM_LLM_KERNEL_CUDA_EXPERTS_EXPERTS_INTERNAL_H

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

fm_status fm__cuda_experts_init_up(void);
fm_status fm__cuda_experts_init_down(void);

#ifdef __cplusplus
}
#endif

#endif
