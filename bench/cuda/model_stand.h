/* SPDX-License-Identifier: Apache-2.0 */
/* A whole model on the GPU without scheduler, queue or text: dummy weights, a run, and batches of
 * bench/batch.h. */
#ifndef FM_BENCH_CUDA_MODEL_STAND_H
#define FM_BENCH_CUDA_MODEL_STAND_H

#include "bench/batch.h"
#include "device/cuda/graph.h"
#include "device/cuda/stream.h"
#include "llm/op/cuda/cuda.h"

typedef struct {
    int batch;     /* most sequences */
    int context;   /* tokens of each before a decode step */
    int prompt;    /* most tokens of a pass */
    int page;      /* tokens */
    int no_graphs; /* nothing is recorded: an emulated GPU cannot */
} fm_gpu_sizes;

typedef struct {
    fm_gpu_sizes    sizes;
    fm_model_config config;
    fm_source      *source;
    fm_weights      weights;
    void           *slab;
    size_t          slab_bytes;
    fm_run_limits   limits;
    fm_run         *run;
    fm_bench_batch  batch;
} fm_gpu_stand;

/* Dummy weights of a built-in shape, its config changed by `json` (NULL: not). */
fm_status fm_gpu_stand_open(fm_gpu_stand *s, const char *shape, const char *json,
                            const fm_gpu_sizes *sizes);
void      fm_gpu_stand_close(fm_gpu_stand *s); /* {0} is fine */

/* A new run instead of the last one, its cache filled with latents of random
 * tokens. */
fm_status fm_gpu_stand_run(fm_gpu_stand *s, const fm_run_cuda_options *o);

/* The batch of the next passes. */
void      fm_gpu_stand_shape(fm_gpu_stand *s, const fm_shape *shape);
fm_status fm_gpu_stand_pass(fm_gpu_stand *s); /* starts one; does not wait for it */

fm_stream fm_gpu_stream(const fm_run *r); /* where its passes run: for marks around them */
fm_graph  fm_gpu_recorded(const fm_run *r, int rows); /* the pass of so many rows; NULL: none */

#endif
