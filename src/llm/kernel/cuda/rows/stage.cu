/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/rows/stage.h"

#include "llm/kernel/cuda/rows/block.cuh"

/* A block has one page in one layer of one plane. */
template <class T> FM_KERNEL(FM__ROW_THREADS) stage_pages(const __grid_constant__ fm_cuda_stage_args a)
{
    int layer = (int)blockIdx.x, p = 0;
    while (layer >= a.plane[p].n_layer) layer -= a.plane[p++].n_layer;
    const fm_cuda_stage_plane &q = a.plane[p];
    T *const pool  = (T *)(q.pool + (size_t)layer * q.layer + (size_t)a.page[blockIdx.y] * q.width);
    T *const image = (T *)(a.image + blockIdx.y * a.image_bytes + q.at + (size_t)layer * q.width);
    const int n    = (int)(q.width / sizeof(T));
    for (int i = (int)threadIdx.x; i < n; i += FM__ROW_THREADS)
        if (a.is_out)
            image[i] = pool[i];
        else
            pool[i] = image[i];
}

static int fits(const fm_cuda_stage_args *a, size_t unit)
{
    size_t all = a->image_bytes | (size_t)a->image;
    for (int p = 0; p < a->n_plane; p++)
        all |= (size_t)a->plane[p].pool | a->plane[p].layer | a->plane[p].width | a->plane[p].at;
    return all % unit == 0;
}

fm_status fm_cuda_stage(const fm_cuda_stage_args *a, fm_stream stream)
{
    int n_layer = 0;
    for (int p = 0; p < a->n_plane; p++) n_layer += a->plane[p].n_layer;
    if (!n_layer || !a->n_page) return FM_OK;
    FM_BUG_UNLESS(a->n_page <= FM_CUDA_STAGE_PAGES && fits(a, sizeof(uint32_t)));
    const dim3 grid((unsigned)n_layer, (unsigned)a->n_page);
    if (fits(a, sizeof(uint4)))
        FM_LAUNCH(stage_pages<uint4>, grid, FM__ROW_THREADS, 0, stream, *a);
    else
        FM_LAUNCH(stage_pages<uint32_t>, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("stage_pages");
}
