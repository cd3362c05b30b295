/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts from a sequence's own text (prompt lookup): what followed the last place
 * where its newest tokens stood before.
 *
 *     ... the quick brown fox ... the quick ──propose──> brown fox
 *
 * Every position is indexed once, under a hash of the min_n tokens that end there;
 * positions of one hash form a chain, newest first, of which a bounded part is
 * looked at.  The longest match wins, of equal ones the newest.
 *
 * One owner, one thread.  Nothing allocates after fm_ngram_create(). */
#ifndef FM_LLM_DRAFT_NGRAM_H
#define FM_LLM_DRAFT_NGRAM_H

#include <stdint.h>

#include "base/status.h"

typedef struct fm_ngram fm_ngram;

/* For sequences of up to max_token tokens; matches of min_n to max_n tokens. */
fm_status fm_ngram_create(fm_ngram **out, int32_t max_token, int min_n, int max_n);
void      fm_ngram_destroy(fm_ngram *g); /* NULL is fine */

/* Up to `most` tokens that may follow token[0..n); returns how many.  Between two
 * calls the sequence only grows. */
int fm_ngram_propose(fm_ngram *g, const int32_t *token, int32_t n, int32_t *draft, int most);

#endif
