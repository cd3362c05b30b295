/* SPDX-License-Identifier: Apache-2.0 */
/* Words that drafts are looked for among.  The head is the larger part of what a link multiplies (two
 * thirds of R1's weights for one row, half of fathom-tiny's), and a text uses few of a vocabulary's
 * words: a link multiplies only those panels of the head (32 words each) that hold nearly all tokens
 * generated lately.  Whatever else would have been drafted is drafted wrong; rows that verify
 * see every word, so the output does not change.
 *
 *     tokens of generated rows ──count──> by panel ──choose──> panels, ascending
 *
 * All panels are likely until enough tokens were seen.  Counts are halved now and then, so that old
 * texts are forgotten.  Every rank counts for its own words. */
#ifndef FM_LLM_OP_CPU_LIKELY_H
#define FM_LLM_OP_CPU_LIKELY_H

#include <stdint.h>

#include "base/slab.h"

typedef struct {
    int       n_all;   /* panels of the head */
    int32_t  *panel;   /* [n] of them that are likely, ascending */
    int       n;
    uint32_t *count;   /* [n_all] tokens of each */
    uint32_t  n_count; /* their sum */
    uint32_t  n_next;  /* at which panels are chosen anew */
} fm_likely;

void fm_likely_carve(fm_likely *l, int n_word, fm_slab *s);
void fm_likely_init(fm_likely *l);           /* what was carved: all panels are likely */
void fm_likely_count(fm_likely *l, int word); /* of this rank's, from 0 on */
void fm_likely_choose(fm_likely *l);         /* after tokens were counted; mostly does nothing */

#endif
