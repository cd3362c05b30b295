/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's errors as ours.  For files that see CUDA's headers. */
#ifndef FM_DEVICE_CUDA_CHECK_H
#define FM_DEVICE_CUDA_CHECK_H

#include <cuda_runtime_api.h>

#include "base/status.h"

/* Leaves the function with FM_E_DEVICE and CUDA's own text unless the call succeeds. */
#define FM_CUDA(call)                                                                              \
    do {                                                                                           \
        const cudaError_t e_ = (call);                                                             \
        if (e_ != cudaSuccess)                                                                     \
            return fm_fail(FM_E_DEVICE, "%s: %s", #call, cudaGetErrorString(e_));                  \
    } while (0)

/* After a launch: was it accepted?  What the kernel does shows at the next synchronisation. */
static inline fm_status fm_cuda_launched(const char *kernel)
{
    const cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess) return FM_OK;
    return fm_fail(FM_E_DEVICE, "launch of %s: %s", kernel, cudaGetErrorString(e));
}

#endif
