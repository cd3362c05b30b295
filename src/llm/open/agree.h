/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a job must have in common, found out at start. */
#ifndef FM_LLM_OPEN_AGREE_H
#define FM_LLM_OPEN_AGREE_H

#include "comm/world.h"
#include "llm/load/model_path.h"
#include "llm/options.h"

/* The same program, the same options (but for those that may differ, such as
 * threads), the same config.json.  FM_E_COMM on every rank, saying who differs
 * in what. */
fm_status fm__agree_start(fm_world *w, const fm_options *o, const fm_model_path *path);

/* The same tokenizer, by the content of its files, on every rank that uses one:
 * what they write is read as one engine's.  dir NULL: none. */
fm_status fm__agree_tokenizer(fm_world *w, const char *dir, int uses_it);

/* The same checkpoint: names, sizes and headers of its files.  *print is a
 * number for it, 0 for a built-in shape. */
fm_status fm__agree_checkpoint(fm_world *w, const fm_model_path *path, uint64_t *print);

/* All ranks got as far as this one: each passes what it has come to.  If one
 * failed, all fail in its way; rank 0 says why, the others have nothing to add. */
fm_status fm__agree_all_well(fm_world *w, fm_status mine);

/* The least of all ranks' numbers. */
fm_status fm__agree_least(fm_world *w, int64_t *n);

#endif
