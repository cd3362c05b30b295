/* SPDX-License-Identifier: Apache-2.0 */
/* Bookkeeping of the KV cache: a fixed pool of pages, and a radix tree over token
 * prefixes that remembers which pages hold which prefix.
 *
 *     request tokens ──match──> [shared pages] + (suffix to compute)
 *                                    │ lock             │ reserve
 *                                    v                  v
 *                                fm_kv_lease: the pages one sequence may read/write
 *
 * Sharing is by whole pages: a prefix is shared as far as its full pages go.
 * One thread, the scheduler's, calls everything here.  Kernels see only the
 * page numbers inside a lease; the back end decides where the bytes lie.
 *
 * Ownership.  A lease is owned by its sequence and ends with fm_kv_end().  The
 * pages stay owned by the cache; ending a lease makes shared ones evictable
 * (least recently used leaf first) and frees the others.  Nothing here
 * allocates after fm_kv_create(). */
#ifndef FM_LLM_KV_KV_CACHE_H
#define FM_LLM_KV_KV_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct fm_kv fm_kv;

typedef struct {
    int n_page;      /* pool size */
    int page_size;   /* tokens per page, 1..64 */
    int max_lease;   /* leases open at once */
    int max_context; /* tokens of one lease */
    int share;       /* 0: no radix tree, every lease computes everything */
    int has_tiers; /* pages have identities and can be saved elsewhere (kv_tiers.h) */
} fm_kv_options;

/* Filled in by fm_kv_begin; stays at its address until fm_kv_end. */
typedef struct {
    int32_t *page;     /* [n_page] borrowed; stays in place until fm_kv_end */
    int32_t  n_page;
    int32_t  n_cached; /* leading tokens whose KV was already there at begin */
    int32_t  n_shared; /* leading pages that belong to the tree (locked, read-only) */
    int32_t  slot;     /* its number among the open ones, 0 .. max_lease - 1 */
} fm_kv_lease;

/* FM_E_ARG: an option is out of range.  FM_E_OOM: fm_kv_bytes() cannot be had. */
fm_status fm_kv_create(fm_kv **out, const fm_kv_options *opt);
void      fm_kv_destroy(fm_kv *kv); /* NULL is fine; all leases must have ended */
size_t    fm_kv_bytes(const fm_kv_options *opt); /* of these books; 0 for wrong options */
size_t    fm_kv_book_bytes(int page_size, int has_tiers); /* at most, per page; leases not counted */

const fm_kv_options *fm_kv_get_options(const fm_kv *kv);

/* Longest cached prefix of tokens[0..n), at most n-1 tokens of it (one row
 * must be computed to have logits), locked; no pages for the rest yet.
 * FM_E_ARG: n is not in 1..max_context.  FM_E_FULL: max_lease are open. */
fm_status fm_kv_begin(fm_kv *kv, fm_kv_lease *lease, const int32_t *tokens, int32_t n);

/* Pages for n_token tokens in all; evicts if it must.  Either error leaves the
 * lease as it was.  FM_E_FULL: not enough evictable pages.  FM_E_ARG: more
 * than max_context tokens, or than the pool can ever hold. */
fm_status fm_kv_grow(fm_kv *kv, fm_kv_lease *lease, int32_t n_token);

/* The KV of tokens[0..n) is now computed: full pages of it become findable by
 * others.  Where the tree already had such a page the lease's own copy is
 * swapped for it and freed (both hold the same bits). */
void fm_kv_publish(fm_kv *kv, fm_kv_lease *lease, const int32_t *tokens, int32_t n);

void fm_kv_end(fm_kv *kv, fm_kv_lease *lease);

/* How much of tokens[0..n) is cached, without locking anything (for lpm). */
int32_t fm_kv_match(const fm_kv *kv, const int32_t *tokens, int32_t n);

/* Tokens fm_kv_begin would find cached.  *n_idle: how many of their pages
 * no lease holds now; begin would take these out of the evictable ones. */
int32_t fm_kv_probe(const fm_kv *kv, const int32_t *tokens, int32_t n, int32_t *n_idle);

/* Tokens that will be asked for soon: those of their cached pages that no lease holds become the
 * last to be evicted. */
void fm_kv_touch(fm_kv *kv, const int32_t *tokens, int32_t n);

/* Pages that no other lease holds: what ending the lease would make free or evictable. */
int32_t fm_kv_sole_pages(const fm_kv *kv, const fm_kv_lease *lease);

int32_t fm_kv_free_pages(const fm_kv *kv);      /* in no lease and no tree */
int32_t fm_kv_evictable_pages(const fm_kv *kv); /* in the tree, held by no lease */
void    fm_kv_flush(fm_kv *kv);                 /* forget everything that is not locked */

/* Callbacks for pages that enter and leave the tree, made inside the calls that do it. */
typedef struct {
    void (*inserted)(void *ctx, int32_t page, int32_t parent, const int32_t *tokens); /* -1: root */
    void (*evicted)(void *ctx, int32_t page);
    void *ctx;
} fm_kv_listener;
void fm_kv_listen(fm_kv *kv, const fm_kv_listener *l); /* before the first lease */

typedef struct {
    int64_t hit_tokens, asked_tokens; /* over all begins */
    int64_t evicted_pages;
} fm_kv_stats;
fm_kv_stats fm_kv_get_stats(const fm_kv *kv);
void        fm_kv_add_stats(fm_kv_stats *sum, const fm_kv_stats *s);

/* Every page is in exactly one place and every count agrees; aborts
 * otherwise.  Slow: for tests. */
void fm_kv_audit(const fm_kv *kv);

#endif
