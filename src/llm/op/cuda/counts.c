/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU needs of memory: counted by carving alone, so that a machine without CUDA can plan for
 * one with it. */
#include "llm/op/backend.h"
#include "llm/op/cuda/cuda.h"

const fm_backend fm_backend_cuda_counts = {
    .name      = "cuda",
    .packing   = FM_PACK_ROWS,
    .workspace = fm_run_cuda_workspace,
    .pinned    = fm_run_cuda_pinned,
};
