/* SPDX-License-Identifier: Apache-2.0 */
/* Bookkeeping of the host tier: which of its slots holds which page, least recently used
 * first when one is wanted. */
#ifndef FM_LLM_TIER_POLICY_HOST_BOOKS_H
#define FM_LLM_TIER_POLICY_HOST_BOOKS_H

#include "base/status.h"
#include "llm/kv/page_hash.h"

typedef struct {
    fm_page_hash key;
    int32_t      older, younger; /* a ring through the entry behind the last */
    int32_t      chain;          /* next of the same bucket; FM__HOST_NONE ends it */
    int32_t      n_pin;          /* loads that will read it */
    int32_t      is_used;
} fm__host_slot;

enum { FM__HOST_NONE = -1 };

typedef struct {
    fm__host_slot *slot; /* [n + 1] the last one closes the ring; owned */
    int32_t       *bucket;
    int32_t        n, n_bucket; /* slots; a power of two */
} fm_host_books;                /* {0}: there is no host tier */

fm_status fm_host_books_init(fm_host_books *h, int32_t n);
void      fm_host_books_fini(fm_host_books *h);

int32_t fm_host_find(fm_host_books *h, fm_page_hash key); /* or FM__HOST_NONE; it was used now */
int32_t fm_host_take(fm_host_books *h, fm_page_hash key); /* a slot for it; NONE: all are pinned */
int     fm_host_holds(const fm_host_books *h, int32_t slot, fm_page_hash key);
void    fm_host_forget(fm_host_books *h, int32_t slot); /* it is found no more, pinned or not */
void    fm_host_forget_all(fm_host_books *h); /* but pinned ones */
void    fm_host_pin(fm_host_books *h, int32_t slot);
void    fm_host_unpin(fm_host_books *h, int32_t slot);

#endif
