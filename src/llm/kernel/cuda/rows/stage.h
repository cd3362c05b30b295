/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the pool gathered into images one behind the other, or scattered from there, so that
 * many pages cross the link to host memory in one copy. */
#ifndef FM_LLM_KERNEL_CUDA_ROWS_STAGE_H
#define FM_LLM_KERNEL_CUDA_ROWS_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FM_CUDA_STAGE_PAGES = 128, FM_CUDA_STAGE_PLANES = 4 };

/* Some layers of a plane: page p of layer i is `width` bytes at pool + i * layer + p * width, and in
 * an image at `at` + i * width.  All of it is multiples of 4 bytes. */
typedef struct {
    char  *pool;
    size_t layer, width, at;
    int    n_layer;
} fm_cuda_stage_plane;

typedef struct {
    fm_cuda_stage_plane plane[FM_CUDA_STAGE_PLANES];
    char               *image; /* [n_page][image_bytes] */
    size_t              image_bytes;
    int                 n_plane, n_page;
    int                 is_out; /* pool -> images */
    int32_t             page[FM_CUDA_STAGE_PAGES];
} fm_cuda_stage_args;

fm_status fm_cuda_stage(const fm_cuda_stage_args *a, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
