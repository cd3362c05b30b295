/* SPDX-License-Identifier: Apache-2.0 */
/* A set of page identities: 16 bytes an entry in a table that is at most three quarters full. */
#ifndef FM_LLM_TIER_KEY_SET_H
#define FM_LLM_TIER_KEY_SET_H

#include "llm/kv/page_hash.h"

typedef struct {
    fm_page_hash *slot;      /* [n_slot] owned; zeros: free */
    size_t        n_slot, n; /* n_slot: 0 or a power of two */
} fm_key_set;                /* {0} is empty */

void   fm_key_set_fini(fm_key_set *s);
int    fm_key_set_has(const fm_key_set *s, fm_page_hash key);
int    fm_key_set_add(fm_key_set *s, fm_page_hash key); /* 0: no memory, the set is as it was */
void   fm_key_set_remove(fm_key_set *s, fm_page_hash key);
size_t fm_key_set_bytes(const fm_key_set *s);

#endif
