/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a model that one rank has on its emulated GPU. */
#ifndef FM_TESTS_RANK_CUDA_FORWARD_PART_H
#define FM_TESTS_RANK_CUDA_FORWARD_PART_H

#include "forward_steps.h"
#include "llm/load/source.h"
#include "llm/op/cuda/cuda.h"
#include "rank.h"

typedef struct {
    fm_model_config config;
    fm_source      *source;
    fm_weights      weights;
    void           *slab;
    fm_run         *run;
} part;

typedef struct {
    const char         *overrides; /* of a built-in shape */
    const fm_shard     *shard;     /* NULL: the whole model */
    const steps        *steps;
    int                 n_lane;
    int                 kv_e4m3; /* the cache has 8 bits */
    fm_run_cuda_options options;
} part_wish;

void part_open(part *p, fm_world *w, const part_wish *o);
void part_forward(part *p, fm_world *w, const steps_batch *b);
void part_close(part *p);

#endif
