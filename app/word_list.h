/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a command line that is put together for another process. */
#ifndef FM_APP_WORD_LIST_H
#define FM_APP_WORD_LIST_H

#include "base/knobs.h"

typedef struct {
    char **word; /* [n], then NULL; owned */
    int    n;
} fm_word_list; /* {0} is an empty one */

void fm_word_add(fm_word_list *l, const char *word); /* a copy */
void fm_word_add_all(fm_word_list *l, char *const *word, int n);
void fm_word_list_fini(fm_word_list *l);

int fm_word_is_option(const char *word, const char *name); /* "--name" or "--name=..." */
int fm_word_has_option(const fm_word_list *l, const char *name);

/* A name among those of an option's value "a,b,c". */
int fm_list_has(const char *list, const char *name);

/* The first word of the list that is the name of none of n things, which ends at the next comma;
 * NULL: there is none. */
const char *fm_list_stranger(const char *list, const char *(*name)(int), int n);

/* Divides words between two commands: options of the table, with their values, go to `own`,
 * all else to `rest`.  Options in `shared`, which ends with NULL, go to `rest`, too. */
void fm_word_divide(fm_word_list *own, fm_word_list *rest, const fm_knob *table, int n_knob,
                    const char *const *shared, char *const *word, int n);

#endif
