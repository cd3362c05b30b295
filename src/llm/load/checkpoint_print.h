/* SPDX-License-Identifier: Apache-2.0 */
/* A fingerprint of a checkpoint's content: what was computed from one set of weights must not be
 * taken for what another set of the same shapes would give.
 *
 *     all files together up to `whole_bytes`    every byte is hashed
 *     more                                      headers, and of every tensor its beginning, middle
 *                                               and end
 *
 * Training, merging or quantising again changes a tensor everywhere; one that was altered between
 * its samples only is not noticed.  Copies in another place or of another date have the same
 * fingerprint.  Reads with threads of its own, which end before it returns. */
#ifndef FM_LLM_LOAD_CHECKPOINT_PRINT_H
#define FM_LLM_LOAD_CHECKPOINT_PRINT_H

#include <stdint.h>

#include "base/hash128.h"
#include "base/status.h"

enum { FM_PRINT_WHOLE_BYTES = 1 << 30 }; /* hashed in less time than they take to load */

/* Of the *.safetensors in `dir` and of their index.  FM_E_IO: one cannot be read. */
fm_status fm_checkpoint_print(fm_hash128 *out, const char *dir, uint64_t whole_bytes);

#endif
