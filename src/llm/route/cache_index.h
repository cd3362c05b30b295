/* SPDX-License-Identifier: Apache-2.0 */
/* The pages a worker has in its cache, as far as the router knows: those its feed told of,
 * and for a while those of prompts that were just sent there, which its feed will tell of.
 * When these are more than fit, the least recently used ones are evicted, though the feed has
 * not told of it yet.
 *
 * Keys are the low halves of page identities (kv/page_hash.h).  A worker may hold a page
 * several times, once per partition; it is gone with the last. */
#ifndef FM_LLM_ROUTE_CACHE_INDEX_H
#define FM_LLM_ROUTE_CACHE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "llm/route/page_ages.h"

typedef struct {
    uint64_t key;      /* 0: empty */
    float    expected; /* assumed cached until then; not yet in the feed.  0: not assumed */
    int32_t  n_held;   /* -1: deleted */
    uint32_t used;     /* tick of the last prompt that had it */
    uint32_t n_use;    /* prompts sent there that had it */
} fm_cache_entry;

typedef struct {
    fm_cache_entry *entry;           /* [n_entry] owned; open addressing */
    size_t          n_entry, n_used; /* n_entry is 0 or a power of two */
    size_t          n_held;          /* keys in the feed */
    size_t          n_expected;      /* keys assumed cached */
    size_t          n_shared;        /* keys of either kind that several prompts had */
    int32_t         n_room;          /* pages that fit there; 0: not known */
    size_t          at;              /* where the next fm_cache_index_expire() goes on */
    uint32_t        tick;            /* the latest that was told */
    fm_page_ages    ages;            /* of all pages held or expected */
} fm_cache_index;                    /* {0} is empty */

void fm_cache_index_fini(fm_cache_index *c);
void fm_cache_index_clear(fm_cache_index *c);

void fm_cache_index_insert(fm_cache_index *c, uint64_t key);
void fm_cache_index_evict(fm_cache_index *c, uint64_t key);
void fm_cache_index_expect(fm_cache_index *c, uint64_t key, double until);
/* The request that expected the key until then has failed.  A later request's expectation
 * stands. */
void fm_cache_index_unexpect(fm_cache_index *c, uint64_t key, double until);
/* Drops expectations that have passed: looks at the next `most` entries, round and round, and
 * shrinks the table when few of them are left. */
void fm_cache_index_expire(fm_cache_index *c, double now, size_t most);

/* A prompt with these pages was sent there: they are the last to be evicted. */
void fm_cache_index_use(fm_cache_index *c, const uint64_t *key, int n, double now);
/* Seconds since the n-th of the least recently used pages was used; 0: there are none. */
double fm_cache_index_age(const fm_cache_index *c, int64_t n, double now);

int fm_cache_index_has(const fm_cache_index *c, uint64_t key, double now);

/* How many of a prompt's leading pages are there and fit. */
int fm_cache_index_match(const fm_cache_index *c, const uint64_t *key, int n, double now);

#endif
