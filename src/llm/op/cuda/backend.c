/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "device/cuda/device.h"
#include "llm/op/backend.h"
#include "llm/op/cuda/cuda.h"
#include "llm/op/cuda/weights.h"

/* What no plan counts: cuBLASLt beside its workspace (2 MiB measured), recorded
 * steps (14 MiB for 21 of them), the stacks of kernels.  Ranks also have NCCL's
 * buffers, and the contexts of those that share a GPU (0.5 GiB each) are made
 * after the first has asked what is free. */
static const size_t RESERVE = (size_t)1 << 30, RESERVE_OF_RANKS = (size_t)2 << 30;

static fm_status open_device(const fm_backend_options *o, fm_backend_memory *out)
{
    const int      n_gpu = fm_cuda_count(), ranks = o->n_rank > 1;
    const size_t   reserve = ranks ? RESERVE_OF_RANKS : RESERVE;
    fm_cuda_device d;
    FM_TRY(fm_cuda_open(&d, n_gpu ? o->device % n_gpu : 0));
    const int each = (o->n_rank + n_gpu - 1) / n_gpu; /* ranks of a GPU */
    *out = (fm_backend_memory){
        .total     = d.total / (size_t)each,
        .available = d.available / (size_t)each,
        .reserve   = reserve < d.total / 16 ? reserve : d.total / 16,
        .kept_for  = ranks ? "cuBLASLt, recorded steps, NCCL" : "cuBLASLt, recorded steps"};
    snprintf(out->where, sizeof out->where, "on %.*s", (int)sizeof out->where - 4, d.name);
    return FM_OK;
}

static fm_run_cuda_options options_of(const fm_backend_options *o, const fm_ranks *ranks)
{
    return (fm_run_cuda_options){.device    = o->device % fm_cuda_count(),
                                 .immediate = o->immediate,
                                 .pads      = 1,
                                 .records   = !o->no_graphs,
                                 .ranks     = ranks,
                                 .meeting   = FM_MEET_BY_NCCL};
}

static fm_status create(fm_run **out, const fm_weights *w, const fm_run_limits *lim, fm_ranks ranks,
                        const fm_backend_options *o)
{
    const fm_run_cuda_options options =
        options_of(o, ranks.replica->n_rank > 1 ? &ranks : NULL);
    return fm_run_create_cuda(out, w, lim, &options);
}

static const fm_backend cuda = {
    .name      = "cuda",
    .packing   = FM_PACK_ROWS,
    .is_usable = fm_cuda_usable,
    .n_device  = fm_cuda_count,
    .open      = open_device,
    .workspace = fm_run_cuda_workspace,
    .pinned    = fm_run_cuda_pinned,
    .alloc     = fm_cuda_alloc,
    .free      = fm_cuda_free,
    .alloc_pinned = fm_cuda_alloc_pinned,
    .free_pinned  = fm_cuda_free_pinned,
    .fill      = fm_cuda_weights_fill,
    .create    = create,
};

const fm_backend *fm_backend_cuda(void)
{
    return &cuda;
}
