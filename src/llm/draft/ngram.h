/* SPDX-License-Identifier: Apache-2.0 */
/* N-gram drafts (prompt lookup): proposes the tokens that followed the last earlier occurrence of
 * the sequence's newest tokens.
 *
 *     ... the quick brown fox ... the quick ──propose──> brown fox
 *
 * Every position is indexed once, under a hash of the min_n tokens that end there;
 * positions of one hash form a chain, newest first, of which a bounded part is
 * looked at.  The longest match wins, of equal ones the newest.
 *
 * An index holds the newest FM_NGRAM_WINDOW positions of a long text.  It serves one sequence after
 * another, so that memory for as many as run at a time is planned and taken in advance.
 *
 * One owner, one thread.  Nothing allocates after fm_ngram_create(). */
#ifndef FM_LLM_DRAFT_NGRAM_H
#define FM_LLM_DRAFT_NGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct fm_ngram fm_ngram;

enum { FM_NGRAM_WINDOW = 1 << 15 };

/* For sequences of up to max_token tokens; matches of min_n to max_n tokens. */
size_t    fm_ngram_bytes(int32_t max_token);
fm_status fm_ngram_create(fm_ngram **out, int32_t max_token, int min_n, int max_n);
void      fm_ngram_destroy(fm_ngram *g); /* NULL is fine */

/* Selects the sequence, by a number that no other has, for the following proposals; the index is
 * emptied if it held another one. */
void fm_ngram_serve(fm_ngram *g, uint64_t sequence);

/* Up to `most` tokens that may follow token[0..n); returns how many.  Between two
 * calls for a sequence it only grows. */
int fm_ngram_propose(fm_ngram *g, const int32_t *token, int32_t n, int32_t *draft, int most);

#endif
