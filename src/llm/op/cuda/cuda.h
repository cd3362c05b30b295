/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU back end of op/run.h.  Its weights are packed as rows and lie in
 * device memory. */
#ifndef FM_LLM_OP_CUDA_CUDA_H
#define FM_LLM_OP_CUDA_CUDA_H

#include "llm/op/run.h"

/* The transport between ranks, see comm/device_comm.h. */
typedef enum { FM_MEET_BY_HOST, FM_MEET_BY_NCCL } fm_gpu_meeting;

typedef struct {
    int device;  /* which GPU */
    int pads;    /* decode steps are padded to a few sizes */
    int records; /* and each size is recorded once and replayed; not with FM_MEET_BY_HOST */
    int immediate; /* no op leaves work to a later one (run.h): its result can be looked at;
                    * the same bits with more launches */
    const fm_ranks *ranks; /* the groups are borrowed; NULL: one rank */
    fm_gpu_meeting  meeting;
} fm_run_cuda_options;

/* Bytes of device memory for buffers, without the KV pages. */
size_t fm_run_cuda_workspace(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                             const fm_run_limits *lim);

/* Bytes of pinned main memory: lists, what was sampled, logits.  Messages of FM_MEET_BY_HOST are not
 * counted. */
size_t fm_run_cuda_pinned(const fm_model_config *c, const fm_shard *shard, const fm_run_limits *lim);

/* All ranks of the replica together. */
fm_status fm_run_create_cuda(fm_run **out, const fm_weights *w, const fm_run_limits *lim,
                             const fm_run_cuda_options *o);

#endif
