/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the cache's bookkeeping that tiers below the pool need (host memory, files).
 *
 * A page of the tree has an identity (page_hash.h).  It may be saved below, which frees
 * nothing; once it is saved, evicting it loses nothing.  A page that was evicted comes back
 * by fm_kv_adopt_begin, under a page number of its own, and is then a page of the tree like any
 * other.  The tiers below find pages by identity and need no tree: a page is of
 * use only to a text whose pages before it are in the tree or can be loaded, too. */
#ifndef FM_LLM_KV_KV_TIERS_H
#define FM_LLM_KV_KV_TIERS_H

#include "llm/kv/kv_cache.h"
#include "llm/kv/page_hash.h"

/* When pages are saved. */
typedef enum {
    FM_KV_SAVE_AT_ONCE,     /* write_through: as soon as they are published */
    FM_KV_SAVE_SECOND_USE,  /* write_through_selective: when a second sequence reads them */
    FM_KV_SAVE_AT_EVICTION, /* write_back */
} fm_kv_saving;

typedef struct {
    int32_t        page;
    fm_page_hash   key;
    int32_t        depth; /* pages before it in its text */
    const int32_t *token; /* [page_size] valid until the cache is called again */
} fm_kv_page;

/* Called for a page that is about to be evicted, is not saved and should be: its bytes
 * are in place until the next pass. */
typedef void (*fm_kv_evicts)(void *ctx, const fm_kv_page *p);

void fm_kv_set_saving(fm_kv *kv, fm_kv_saving when, fm_kv_evicts evicts, void *ctx);

/* The page that waits longest to be saved; 0: none does. */
int  fm_kv_next_unsaved(const fm_kv *kv, fm_kv_page *out);
void fm_kv_want_all(fm_kv *kv);            /* every page of the tree that is not saved is to be */
void fm_kv_saved(fm_kv *kv, int32_t page); /* it is, or is on its way */

/* How many leading pages of the text the tree has, at most n_page, and the identity of the
 * last of them (the root's, if there is none). */
int32_t fm_kv_resident(const fm_kv *kv, const int32_t *token, int32_t n_page, fm_page_hash *key);

/* Brings pages [from, to) of a text back: takes pages of the pool for them, evicting if it must,
 * and holds them with those before in the lease.  Returns for how many of them there are pages,
 * counted from `from`; 0, and no lease, if the pages before `from` are gone or the pool has none.
 * page[i] is where the bytes of page from + i are to go; -1: the tree has them already. */
int32_t fm_kv_adopt_begin(fm_kv *kv, fm_kv_lease *l, const int32_t *token, int32_t from, int32_t to,
                          int32_t *page);

/* Their bytes are there for the next pass: they become pages of the tree, held by no lease.
 * is_saved: the tier they came from has them still. */
void fm_kv_adopt_end(fm_kv *kv, fm_kv_lease *l, const int32_t *token, int is_saved);

/* The first half of that: they become pages of the tree and stay in the lease, which the caller ends. */
void fm_kv_adopt_publish(fm_kv *kv, fm_kv_lease *l, const int32_t *token, int is_saved);

/* Evicts every page that no lease holds, as if the pool were full. */
void fm_kv_demote_all(fm_kv *kv);

#endif
