/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU back end of op/run.h.  Its weights are packed as rows and lie in
 * device memory. */
#ifndef FM_LLM_OP_CUDA_H
#define FM_LLM_OP_CUDA_H

#include "llm/op/run.h"

typedef struct {
    int device;        /* which GPU */
    int deterministic; /* a row's bits do not depend on its batch: our kernels for every product */
    int pads;          /* decode steps are padded to a few sizes */
    int records;       /* and each size is recorded once and replayed */
} fm_run_cuda_options;

/* Bytes of device memory for buffers, and for one page of KV.  Needs n_page. */
fm_run_bytes fm_run_cuda_bytes(const fm_model_config *c, const fm_shard *shard,
                               const fm_run_limits *lim);

fm_status fm_run_create_cuda(fm_run **out, const fm_weights *w, const fm_run_limits *lim,
                             const fm_run_cuda_options *o);

#endif
