/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the KV cache's bookkeeping.
 *
 * The radix tree branches on whole pages: a node is one page of tokens under
 * its parent, so no node is ever split, and the node of a page has the page's
 * own number.  Children are found through one hash table keyed by (parent,
 * tokens of the page).
 *
 *     root ── 7 ── 3 ── 9        lease A: 7 3 9 | 4    locks 7, 3, 9; owns 4
 *             └─── 1             lease B: 7 1          locks 7, 1
 *
 * A node's lock count is the number of leases whose shared part passes through
 * it.  A node whose count falls to zero becomes the youngest of the idle list
 * (least recently used first).  A lease that ends unlocks its deepest node first:
 * a child is always older in the list than its parent, the oldest idle node is
 * always a leaf, and eviction takes it in constant time. */
#ifndef FM_LLM_KV_KV_INTERNAL_H
#define FM_LLM_KV_KV_INTERNAL_H

#include "llm/kv/kv_cache.h"
#include "llm/kv/kv_tiers.h"

enum { FM__KV_NONE = -1 };

typedef struct {
    int32_t  parent;
    int32_t  n_child;
    int32_t  n_lock;
    int32_t  older, younger; /* idle list; a ring through the root */
    int32_t  chain;          /* next node of the same bucket */
    uint32_t hash;
} fm__kv_node;

/* What lower tiers need to know of a node. */
typedef struct {
    fm_page_hash key;
    int32_t      depth;      /* pages above it */
    int32_t      prev, next; /* list of pages to be saved; a ring through the root */
    int8_t       is_saved;   /* or need not be: it came from there */
    int8_t       is_wanted;  /* it is in the list */
} fm__kv_below;

struct fm_kv {
    fm_kv_options opt;
    int32_t       lease_pages; /* room of one lease */

    int32_t *free_page; /* [opt.n_page] a stack */
    int32_t  n_free;

    fm__kv_node *node;     /* [opt.n_page + 1] the last one is the root */
    int32_t     *key;      /* [opt.n_page][opt.page_size] tokens of each node */
    int32_t     *bucket;   /* [n_bucket] */
    int32_t      n_bucket; /* a power of two */
    int32_t      n_idle;

    int32_t      *page_room; /* [opt.max_lease][lease_pages] */
    fm_kv_lease **open;      /* [opt.max_lease] by slot; NULL when closed */
    int32_t      *free_slot; /* [opt.max_lease] a stack */
    int32_t       n_free_slot;

    fm_kv_listener listener;

    fm__kv_below *below; /* [opt.n_page + 1] the root's last; NULL: there are no tiers */
    fm_kv_saving  saving;
    fm_kv_evicts  evicts;
    void         *evicts_ctx;
    int32_t       n_wanted;

    fm_kv_stats stats;
};

static inline int32_t fm__kv_root(const fm_kv *kv)
{
    return kv->opt.n_page;
}

/* The child of `parent` holding page_size tokens, or FM__KV_NONE. */
int32_t fm__kv_find(const fm_kv *kv, int32_t parent, const int32_t *tokens);

/* Makes `page` a child of `parent`, locked once. */
void fm__kv_insert(fm_kv *kv, int32_t page, int32_t parent, const int32_t *tokens);

void    fm__kv_lock(fm_kv *kv, int32_t node);
void    fm__kv_unlock(fm_kv *kv, int32_t node); /* children before parents */
void    fm__kv_renew(fm_kv *kv, int32_t node);  /* if idle, evicted last; children before parents */
int32_t fm__kv_evict(fm_kv *kv);                /* the oldest idle node's page */

/* kv_tiers.c; nothing without tiers */
void fm__kv_below_init(fm_kv *kv);
void fm__kv_below_insert(fm_kv *kv, int32_t page, int32_t parent, const int32_t *tokens);
void fm__kv_below_used(fm_kv *kv, int32_t node);  /* a later sequence reads it, too */
void fm__kv_below_evict(fm_kv *kv, int32_t node, int tells); /* it leaves the tree */

#endif
