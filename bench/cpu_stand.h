/* SPDX-License-Identifier: Apache-2.0 */
/* A model on the CPU without scheduler, queue or text, so that single operations and single steps
 * can be timed: dummy weights, a run, and batches of bench/batch.h. */
#ifndef FM_BENCH_CPU_STAND_H
#define FM_BENCH_CPU_STAND_H

#include "bench/batch.h"
#include "llm/op/run.h"

typedef struct {
    fm_model_config config;
    fm_weights      weights;
    void           *slab;
    size_t          slab_bytes;
    fm_comm         world;
    fm_run_limits   limits;
    fm_run         *run;
    fm_bench_batch  batch;
} fm_stand;

/* Dummy weights of a built-in shape, with some of its config replaced (NULL: nothing).  The pool
 * holds max_keys tokens. */
fm_status fm_stand_open(fm_stand *s, const char *model, const char *overrides, int max_rows,
                        int max_keys, int n_thread);
void      fm_stand_close(fm_stand *s); /* {0} is fine */

/* The next pass has this shape.  The cache below pos0 holds something after
 * fm_stand_fill, which writes random latents for all layers. */
void fm_stand_shape(fm_stand *s, const fm_shape *shape);
void fm_stand_fill(fm_stand *s, int n_seq, int n_key);

#endif
