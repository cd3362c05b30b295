/* SPDX-License-Identifier: Apache-2.0 */
/* Which prefixes the caches of an engine hold, as a feed that others can follow: page
 * identities (page_hash.h) that were inserted and evicted, numbered from the start.
 *
 *     tree ──inserted, evicted──> log of the last changes ──since version V──> reader
 *                                 pages held now ──────────all of them───────> a new reader
 *
 * Listed is what the pool has, so that a prompt sent here can begin at once.  With tiers below
 * the pool (kv_tiers.h) a page that is demoted leaves the feed and one that is promoted enters
 * it again: whether a stored page is worth loading is decided when a prompt asks for it,
 * and a directory of pages may be every server's.
 *
 * The scheduler's thread writes, any thread reads; the lock is held for a copy.  Nothing
 * allocates while the caches change.  An epoch is one life of a feed: a reader that
 * comes with another, or with a version that has left the log, gets all pages anew. */
#ifndef FM_LLM_KV_PAGE_FEED_H
#define FM_LLM_KV_PAGE_FEED_H

#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "llm/kv/kv_cache.h"

typedef struct fm_page_feed fm_page_feed;

/* For caches with n_page pages in all. */
fm_status fm_page_feed_create(fm_page_feed **out, int32_t n_page, int page_size);
void      fm_page_feed_destroy(fm_page_feed *f); /* NULL is fine; after its caches */

/* Follows a cache from its beginning; its pages count from first_page on. */
fm_status fm_page_feed_follow(fm_page_feed *f, fm_kv *kv, int32_t first_page);

typedef struct {
    uint64_t epoch, version;
    uint64_t evicted; /* the version that the last eviction led to; 0: there was none */
    int      page_size;
    int32_t  n_page; /* that the caches have room for */
} fm_page_feed_state;
fm_page_feed_state fm_page_feed_get_state(fm_page_feed *f);

/* Adds lines "+HASH" and "-HASH" (16 hexadecimal digits, the low half of an identity) for
 * the changes since that version, and returns the state they lead to.  *is_all: the
 * reader has to forget what it knew, these are all pages that are held. */
fm_page_feed_state fm_page_feed_read(fm_page_feed *f, uint64_t epoch, uint64_t since, fm_str *out,
                                     int *is_all);

#endif
