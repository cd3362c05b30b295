/* SPDX-License-Identifier: Apache-2.0 */
/* Small lists from the host, between the kernels of two steps. */
#ifndef FM_LLM_KERNEL_CUDA_ROWS_FETCH_H
#define FM_LLM_KERNEL_CUDA_ROWS_FETCH_H

#include <stddef.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As fm_cuda_upload; few bytes are fetched by a kernel, which reads them while
 * its predecessor still runs.  Both sides are 16-byte aligned and may be touched
 * up to a multiple of 16 bytes; src is pinned. */
fm_status fm_cuda_fetch(void *dst, const void *src, size_t bytes, fm_stream stream);

/* Above this it is a copy after all. */
enum { FM_CUDA_FETCH_MOST = 64 << 10 };

#ifdef __cplusplus
}
#endif

#endif
