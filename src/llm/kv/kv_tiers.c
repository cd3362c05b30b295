/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kv/kv_tiers.h"

#include "llm/kv/kv_internal.h"

void fm__kv_below_init(fm_kv *kv)
{
    const int32_t root = fm__kv_root(kv);
    if (!kv->below) return;
    for (int32_t i = 0; i <= root; i++) kv->below[i] = (fm__kv_below){.prev = root, .next = root};
    kv->below[root].key   = fm_page_hash_root(0);
    kv->below[root].depth = -1;
}

/* --- which pages are to be saved ------------------------------------------- */

static void want(fm_kv *kv, int32_t i)
{
    const int32_t root = fm__kv_root(kv);
    fm__kv_below *b = kv->below, *n = &b[i];

    if (n->is_saved || n->is_wanted) return;
    n->is_wanted    = 1;
    n->prev         = b[root].prev;
    n->next         = root;
    b[n->prev].next = i;
    b[root].prev    = i;
    kv->n_wanted++;
}

static void unwant(fm_kv *kv, int32_t i)
{
    fm__kv_below *b = kv->below, *n = &b[i];

    if (!n->is_wanted) return;
    n->is_wanted    = 0;
    b[n->prev].next = n->next;
    b[n->next].prev = n->prev;
    kv->n_wanted--;
}

static fm_kv_page page_of(const fm_kv *kv, int32_t i)
{
    return (fm_kv_page){i, kv->below[i].key, kv->below[i].depth,
                        kv->key + (size_t)i * (size_t)kv->opt.page_size};
}

void fm__kv_below_insert(fm_kv *kv, int32_t page, int32_t parent, const int32_t *tokens)
{
    if (!kv->below) return;
    kv->below[page] =
        (fm__kv_below){.key   = fm_page_hash_next(kv->below[parent].key, tokens, kv->opt.page_size),
                       .depth = kv->below[parent].depth + 1};
    if (kv->saving == FM_KV_SAVE_AT_ONCE) want(kv, page);
}

void fm__kv_below_used(fm_kv *kv, int32_t node)
{
    if (kv->below && kv->saving == FM_KV_SAVE_SECOND_USE) want(kv, node);
}

void fm__kv_below_evict(fm_kv *kv, int32_t node, int tells)
{
    if (!kv->below) return;
    const int is_due = kv->below[node].is_wanted || kv->saving == FM_KV_SAVE_AT_EVICTION;
    if (tells && is_due && !kv->below[node].is_saved && kv->evicts) {
        const fm_kv_page p = page_of(kv, node);
        kv->evicts(kv->evicts_ctx, &p);
    }
    unwant(kv, node);
}

void fm_kv_set_saving(fm_kv *kv, fm_kv_saving when, fm_kv_evicts evicts, void *ctx)
{
    kv->saving     = when;
    kv->evicts     = evicts;
    kv->evicts_ctx = ctx;
}

int fm_kv_next_unsaved(const fm_kv *kv, fm_kv_page *out)
{
    if (!kv->below || !kv->n_wanted) return 0;
    *out = page_of(kv, kv->below[fm__kv_root(kv)].next);
    return 1;
}

void fm_kv_want_all(fm_kv *kv)
{
    for (int32_t b = 0; kv->below && b < kv->n_bucket; b++)
        for (int32_t i = kv->bucket[b]; i != FM__KV_NONE; i = kv->node[i].chain) want(kv, i);
}

void fm_kv_saved(fm_kv *kv, int32_t page)
{
    unwant(kv, page);
    kv->below[page].is_saved = 1;
}

/* --- what is there, and what comes back ------------------------------------ */

int32_t fm_kv_resident(const fm_kv *kv, const int32_t *token, int32_t n_page, fm_page_hash *key)
{
    const size_t ps   = (size_t)kv->opt.page_size;
    int32_t      node = fm__kv_root(kv), n = 0;

    for (; n < n_page; n++) {
        const int32_t child = fm__kv_find(kv, node, token + (size_t)n * ps);
        if (child == FM__KV_NONE) break;
        node = child;
    }
    *key = kv->below[node].key;
    return n;
}

/* Pages of the lease up to `to`, or as many as can be had. */
static void grow_as_far(fm_kv *kv, fm_kv_lease *l, int32_t to)
{
    const int32_t   most       = l->n_page + kv->n_free + kv->n_idle;
    const int32_t   want_pages = to < most ? to : most;
    const fm_status grown      = fm_kv_grow(kv, l, want_pages * kv->opt.page_size);
    FM_BUG_UNLESS(grown == FM_OK);
}

int32_t fm_kv_adopt_begin(fm_kv *kv, fm_kv_lease *l, const int32_t *token, int32_t from, int32_t to,
                          int32_t *page)
{
    const fm_kv_stats stats = kv->stats;

    if (fm_kv_begin(kv, l, token, to * kv->opt.page_size + 1) != FM_OK) return 0;
    kv->stats.hit_tokens   = stats.hit_tokens;
    kv->stats.asked_tokens = stats.asked_tokens;
    if (l->n_page >= from && l->n_page < to) grow_as_far(kv, l, to);
    const int32_t n = l->n_page > from ? l->n_page - from : 0;
    for (int32_t i = from; i < from + n; i++)
        page[i - from] = i < l->n_shared ? FM__KV_NONE : l->page[i];
    if (!n) fm_kv_end(kv, l);
    return n;
}

void fm_kv_adopt_publish(fm_kv *kv, fm_kv_lease *l, const int32_t *token, int is_saved)
{
    const int32_t had = l->n_shared;

    fm_kv_publish(kv, l, token, l->n_page * kv->opt.page_size);
    for (int32_t i = had; is_saved && i < l->n_page; i++) fm_kv_saved(kv, l->page[i]);
}

void fm_kv_adopt_end(fm_kv *kv, fm_kv_lease *l, const int32_t *token, int is_saved)
{
    fm_kv_adopt_publish(kv, l, token, is_saved);
    fm_kv_end(kv, l);
}

void fm_kv_demote_all(fm_kv *kv)
{
    while (kv->n_idle) {
        fm__kv_below_evict(kv, kv->node[fm__kv_root(kv)].younger, 1);
        kv->free_page[kv->n_free++] = fm__kv_evict(kv);
        kv->stats.evicted_pages++;
    }
}
