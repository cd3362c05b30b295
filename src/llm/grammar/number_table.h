/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers by the hash of what they number; the caller compares what has the same
 * hash.  Open addressing, at most half of the slots used. */
#ifndef FM_LLM_GRAMMAR_NUMBER_TABLE_H
#define FM_LLM_GRAMMAR_NUMBER_TABLE_H

#include <stdint.h>

typedef struct {
    uint32_t hash;
    int32_t  number; /* -1: empty */
} fm__numbered;

typedef struct {
    fm__numbered *slot; /* [mask + 1] */
    uint32_t  mask, n;
} fm__table;

void fm__table_init(fm__table *t);
void fm__table_fini(fm__table *t);
void fm__table_insert(fm__table *t, uint32_t hash, int32_t number);

/* The next number under a hash, from *at on, which begins as the hash; -1: no more. */
int32_t fm__table_find(const fm__table *t, uint32_t hash, uint32_t *at);

/* Forgets all numbers; a table that was large for a while becomes small again. */
void fm__table_empty(fm__table *t);

#endif
