/* SPDX-License-Identifier: Apache-2.0 */
/* Fills laid-out weights from a source, pieces in parallel, with a progress
 * bar.  Shapes and types are checked before the first byte is read. */
#ifndef FM_LLM_LOAD_WEIGHTS_FILL_H
#define FM_LLM_LOAD_WEIGHTS_FILL_H

#include "llm/load/source.h"
#include "llm/weights/weights.h"

/* fm_dtype_of_fn over a source (ctx = fm_source_types): FP8 stays FP8, INT4 stays INT4,
 * everything else becomes BF16; in the reference arithmetic all is F32. */
typedef struct {
    const fm_source *source;
    fm_dtype         act;
} fm_source_types;
fm_dtype fm_source_dtype_of(void *ctx, const char *tensor);

/* Every piece's tensor exists with its shape and a type we can read. */
fm_status fm_weights_check(const fm_weights *w, const fm_source *s);
fm_status fm_weights_fill(fm_weights *w, const fm_source *s, int n_thread, int show_progress);

/* Into memory this process cannot write: `put` copies `bytes` of src, which it
 * may not keep, to dst.  Called by several threads at once.  `make`, if there,
 * is asked before: it returns 1 where it filled the piece itself.  `wait`, if
 * there, returns when all of it has arrived. */
typedef struct {
    void (*put)(void *ctx, int thread, void *dst, const void *src, size_t bytes);
    int (*make)(void *ctx, const fm_piece *p);
    void (*wait)(void *ctx);
    void *ctx;
} fm_weights_sink;
fm_status fm_weights_fill_to(fm_weights *w, const fm_source *s, int n_thread, int show_progress,
                             const fm_weights_sink *sink);

/* How many MTP layers the source has, counting from config->n_layer on. */
int fm_source_mtp_layers(const fm_source *s, const fm_model_config *c);

#endif
