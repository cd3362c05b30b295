/* SPDX-License-Identifier: Apache-2.0 */
/* "Is --page-size meant?": of the names that are offered, the one most like a word that is none
 * of them.  Likeness is Levenshtein's distance: letters to insert, remove or replace. */
#ifndef FM_BASE_NEAREST_H
#define FM_BASE_NEAREST_H

#include <stddef.h>

typedef struct {
    const char *word;
    const char *name;     /* out: borrowed from the offer, or NULL: none is near */
    size_t      distance; /* of `name` */
} fm_nearest;             /* begins as {.word = ...} */

/* A name is near if one letter differs, and one more for every four of the word.  Of equally near
 * names the first stays. */
void fm_nearest_offer(fm_nearest *n, const char *name);

#endif
