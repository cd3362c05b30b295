/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of calls under 64-bit keys: their ids, or hashes of the names by which clients abort
 * them.  Several calls may be under one key.  Entries lie in the calls; the loop's thread alone
 * comes here. */
#ifndef FM_LLM_SERVE_CALL_TABLE_H
#define FM_LLM_SERVE_CALL_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct fm__call_key {
    uint64_t             key;
    struct fm__call     *call; /* borrowed */
    int                  prompt; /* of the call, that the name stands for; -1: all */
    struct fm__call_key *next; /* in its bucket */
} fm__call_key;

typedef struct {
    fm__call_key **bucket; /* [n_bucket] owned */
    size_t         n_bucket, n;
} fm__call_table; /* {0} is empty */

void fm__call_table_fini(fm__call_table *t);
void fm__call_table_add(fm__call_table *t, fm__call_key *k); /* k is borrowed until it is removed */
void fm__call_table_remove(fm__call_table *t, fm__call_key *k); /* it must be there */

/* Every entry under a key: for (k = find(t, key); k; k = next(k)). */
fm__call_key *fm__call_table_find(const fm__call_table *t, uint64_t key);
fm__call_key *fm__call_table_next(const fm__call_key *k);

#endif
