/* SPDX-License-Identifier: Apache-2.0 */
/* Dummy weights made on the GPU: the rule of src/llm/load/dummy.h, bit for bit. */
#ifndef FM_LLM_KERNEL_CUDA_WEIGHTS_DUMMY_H
#define FM_LLM_KERNEL_CUDA_WEIGHTS_DUMMY_H

#include <stdint.h>

#include "base/number.h"
#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows [row0, row0+n) and columns [col0, col0+k) of a tensor of `cols` columns.
 * Row r of these goes to row r/group*spread + r%group + first of dst: 1, 1, 0 for
 * a plain copy; 16, 32, 0 and 16, 32, 16 for gate and up that share panels. */
typedef struct {
    void    *dst;   /* [, ld] of the type, on the device */
    fm_dtype type;  /* FM_F32, FM_BF16 or FM_FP8 */
    uint64_t key;   /* fm_rng_key(name, seed) */
    float    centre, step; /* not for FP8 */
    int64_t  cols, row0, n, col0, k, ld;
    int      group, spread, first;
} fm_cuda_dummy_args;
fm_status fm_cuda_dummy(const fm_cuda_dummy_args *a, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
