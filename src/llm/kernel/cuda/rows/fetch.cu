/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/rows/fetch.h"

#include "device/cuda/device.h"
#include "llm/kernel/cuda/ptx/pinned.cuh"
#include "llm/kernel/cuda/rows/block.cuh"
#include "llm/kernel/cuda/variants.h"

/* Write-after-read: dst is written only after the preceding kernel has ended. */
FM_KERNEL(FM__ROW_THREADS) fetch_words(uint4 *dst, const uint4 *src, int n)
{
    const int i = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    uint4     v = make_uint4(0, 0, 0, 0);
    fm_grid_release();
    if (i < n) v = fm_pinned_load(src + i);
    fm_grid_wait();
    if (i < n) dst[i] = v;
}

fm_status fm_cuda_fetch(void *dst, const void *src, size_t bytes, fm_stream stream)
{
    if (bytes > FM_CUDA_FETCH_MOST || fm_cuda_leaves_out(FM_VARIANT_FETCH))
        return fm_cuda_upload(dst, src, bytes, stream);
    if (bytes == 0) return FM_OK;
    const int n = (int)((bytes + sizeof(uint4) - 1) / sizeof(uint4));
    FM_LAUNCH_EARLY(fetch_words, fm__row_blocks(n), FM__ROW_THREADS, 0, stream, (uint4 *)dst,
                    (const uint4 *)src, n);
    return fm_cuda_launched("fetch_words");
}
