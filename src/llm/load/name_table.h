/* SPDX-License-Identifier: Apache-2.0 */
/* Names -> 0, 1, 2, … in the order they were added: a hash table with open
 * addressing over one block of text.  {0} is an empty one.
 *
 * Filled by one thread, then read by any number. */
#ifndef FM_LLM_LOAD_NAME_TABLE_H
#define FM_LLM_LOAD_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct {
    char    *text; /* all names, each with its NUL */
    size_t   n_text, cap_text;
    size_t  *start; /* [n] into text */
    int32_t  n, cap;
    int32_t *slot; /* [n_slot] index + 1; 0: free.  n_slot is a power of two > n */
    uint32_t n_slot;
} fm_name_table;

/* *out is the name's index; *is_new says whether it was not there before. */
fm_status   fm_name_table_add(fm_name_table *t, const char *name, int32_t *out, int *is_new);
int32_t     fm_name_table_find(const fm_name_table *t, const char *name); /* -1: none */
const char *fm_name_table_name(const fm_name_table *t, int32_t i);        /* until the next add */
void        fm_name_table_fini(fm_name_table *t);

#endif
