/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of sequences that are all alike, and dummy weights of a built-in shape, for runs without
 * scheduler, queue or text.  Sequence i owns entries [i*per, (i+1)*per) of the list of pages. */
#ifndef FM_BENCH_BATCH_H
#define FM_BENCH_BATCH_H

#include "bench/bound.h"
#include "llm/load/source.h"
#include "llm/op/run.h"

typedef struct {
    fm_batch batch;
    int32_t *page; /* [limits.n_page] */
} fm_bench_batch;

/* Random tokens.  `shuffled`: pages as in a pool that has been in use, without order. */
fm_status fm_bench_batch_make(fm_bench_batch *b, const fm_run_limits *lim, int vocab, int shuffled);
void      fm_bench_batch_free(fm_bench_batch *b); /* {0} is fine */

/* The next pass has this shape; its first sequence is number `first`. */
void fm_bench_batch_shape(fm_bench_batch *b, const fm_run_limits *lim, const fm_shape *shape,
                          int first);

/* The config of a built-in shape, changed by `json` (NULL: not). */
fm_status fm_bench_read_shape(fm_model_config *c, const char *shape, const char *json);

/* Counts the slab, has it allocated, and lays the weights out in it. */
typedef fm_status fm_bench_alloc(void **out, size_t bytes, const char *what);
fm_status fm_bench_lay_out(fm_weights *w, const fm_model_config *c, const fm_weights_want *want,
                           fm_bench_alloc *alloc, void **slab, size_t *bytes);

#endif
