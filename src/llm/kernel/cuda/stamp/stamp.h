/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps by the device itself, also inside recorded work, which the host does not see. */
#ifndef FM_LLM_KERNEL_CUDA_STAMP_STAMP_H
#define FM_LLM_KERNEL_CUDA_STAMP_STAMP_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the device's clock (nanoseconds, of an epoch of its own) when all that is in the stream
 * before is finished.  `at`: device or pinned memory. */
fm_status fm_cuda_stamp(uint64_t *at, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
