/* SPDX-License-Identifier: Apache-2.0 */
/* A source of tensors by name: safetensors files, or a generator of dummy values, behind one
 * interface.
 *
 * Looking up and reading are thread-safe once the source is open. */
#ifndef FM_LLM_LOAD_SOURCE_H
#define FM_LLM_LOAD_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/number.h"
#include "base/status.h"
#include "llm/weights/config.h"

typedef struct fm_source fm_source;

/* A 1-D tensor has rows = 1. */
typedef struct {
    const char *name; /* borrowed from the source */
    fm_dtype    dtype;
    int64_t     rows, cols;
    int64_t     index; /* private to the source */
} fm_tensor;

/* All *.safetensors of `dir`: those its model.safetensors.index.json names,
 * or every one there is.  Headers are read and checked, data only mapped. */
fm_status fm_source_open_files(fm_source **out, const char *dir);

/* Values keyed by (seed, tensor name, index in the whole tensor): any shard
 * sees the numbers the whole has.  Names and shapes follow `config`; linear
 * weights are FP8 with scales when it says so. */
fm_status fm_source_open_dummy(fm_source **out, const fm_model_config *config, uint64_t seed);

void fm_source_close(fm_source *s); /* NULL is fine */

/* FM_E_FORMAT, with the name, if there is none.  A weight "X.weight" that lies packed as
 * "X.weight_packed" is found as INT4 under either name. */
fm_status fm_source_find(const fm_source *s, const char *name, fm_tensor *out);
int       fm_source_has(const fm_source *s, const char *name);

/* Values [row0, row0+n_row) x [col0, col0+n_col) into dst, row-major without
 * gaps.  `want` is the tensor's own dtype (bytes are copied) or FM_F32
 * (converted exactly; FP8 and INT4 stay unscaled).  The range must lie inside; of INT4, col0 and
 * n_col are even. */
void fm_source_read(const fm_source *s, const fm_tensor *t, int64_t row0, int64_t n_row,
                    int64_t col0, int64_t n_col, fm_dtype want, void *dst);

/* The whole tensor in its mapped file, aligned for its type, without a copy; NULL: it is not in a
 * file, or not aligned. */
const void *fm_source_data(const fm_source *s, const fm_tensor *t);

/* How the values of a dummy tensor are made (load/dummy.h), for a back end that
 * makes them on its device.  0: they come from a file. */
typedef struct {
    uint64_t key;
    float    centre, step;
} fm_dummy_rule;
int fm_source_dummy_rule(const fm_source *s, const fm_tensor *t, fm_dummy_rule *out);

/* Prefetches these rows into the page cache (readahead); returns at once. */
void fm_source_prefetch(const fm_source *s, const fm_tensor *t, int64_t row0, int64_t n_row);

/* The file a tensor lies in, for messages. */
const char *fm_source_where(const fm_source *s, const fm_tensor *t);

#endif
