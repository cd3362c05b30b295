/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair merges: of all neighbouring pairs that have a merge, the one of
 * lowest rank goes first, the leftmost of equals, until none is left.
 *
 *     bytes ──byte_id──> ids ──(left, right) -> rank, id──> fewer ids
 *
 * The table is immutable after loading; the scratch belongs to one thread and
 * holds a cache of short pieces and the working memory for long ones. */
#ifndef FM_LLM_TEXT_BPE_INTERNAL_H
#define FM_LLM_TEXT_BPE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "llm/text/tokenizer.h"
#include "llm/text/vocab_internal.h"

typedef struct {
    uint64_t pair; /* left id << 32 | right id */
    int32_t  rank; /* -1 = empty slot */
    int32_t  id;   /* of the merged token */
} fm__merge;

typedef struct {
    fm__merge *slot; /* [mask + 1] owned */
    uint32_t   mask;
    int32_t    byte_id[256];
    int        whole_first; /* a piece that is a token is not merged ("ignore_merges") */
} fm__bpe;

fm_status fm__bpe_init(fm__bpe *b, size_t n_merge);
void      fm__bpe_fini(fm__bpe *b);
void      fm__bpe_add(fm__bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id);

/* Looks the 256 single bytes up.  Returns the first byte that a UTF-8 text
 * can have and the vocabulary has not, or -1. */
int fm__bpe_bind_bytes(fm__bpe *b, const fm__vocab *v);

enum { FM__MAX_PIECE = 16 << 20 }; /* bytes; keeps the working memory within 512 MiB */

typedef struct fm__bpe_scratch fm__bpe_scratch;
fm_status fm__bpe_scratch_create(fm__bpe_scratch **out);
void      fm__bpe_scratch_destroy(fm__bpe_scratch *x);

/* Appends the ids of one piece.  Time is n log n in its bytes. */
fm_status fm__bpe_encode(const fm__bpe *b, const fm__vocab *v, fm__bpe_scratch *x,
                         const char *piece, size_t n, fm_ids *out);

#endif
