/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "llm/kv/kv_internal.h"

/* What the leases and the free list say about each page. */
typedef struct {
    int32_t n_lock, n_child;
    char    is_free, is_owned;
    int32_t age; /* place in the idle list, from 1; 0: not there */
} sighting;

static void see_free(const fm_kv *kv, sighting *seen)
{
    for (int32_t i = 0; i < kv->n_free; i++) {
        const int32_t p = kv->free_page[i];
        FM_BUG_UNLESS(p >= 0 && p < kv->opt.n_page && !seen[p].is_free);
        seen[p].is_free = 1;
    }
}

static void see_lease(const fm_kv *kv, const fm_kv_lease *l, sighting *seen)
{
    FM_BUG_UNLESS(l->n_shared <= l->n_page && l->n_page <= kv->lease_pages);
    for (int32_t i = 0; i < l->n_page; i++) {
        sighting *p = &seen[l->page[i]];
        if (i < l->n_shared) {
            const int32_t parent = i ? l->page[i - 1] : fm__kv_root(kv);
            FM_BUG_UNLESS(kv->node[l->page[i]].parent == parent);
            p->n_lock++;
        } else {
            FM_BUG_UNLESS(!p->is_owned);
            p->is_owned = 1;
        }
    }
}

static int32_t see_leases(const fm_kv *kv, sighting *seen)
{
    int32_t n_open = 0;
    for (int32_t i = 0; i < kv->opt.max_lease; i++) {
        if (!kv->open[i]) continue;
        FM_BUG_UNLESS(kv->open[i]->slot == i);
        see_lease(kv, kv->open[i], seen);
        n_open++;
    }
    return n_open;
}

static void see_idle(const fm_kv *kv, sighting *seen)
{
    const int32_t root = fm__kv_root(kv);
    int32_t       n    = 0;
    for (int32_t i = kv->node[root].younger; i != root; i = kv->node[i].younger) {
        FM_BUG_UNLESS(n < kv->n_idle && !seen[i].age);
        FM_BUG_UNLESS(kv->node[kv->node[i].younger].older == i);
        seen[i].age = ++n;
    }
    FM_BUG_UNLESS(n == kv->n_idle);
}

/* Walks every bucket: each node there is a page of the tree, seen once. */
static int32_t check_tree(const fm_kv *kv, sighting *seen)
{
    int32_t n_node = 0;
    for (int32_t b = 0; b < kv->n_bucket; b++) {
        for (int32_t i = kv->bucket[b]; i != FM__KV_NONE; i = kv->node[i].chain) {
            const fm__kv_node *n   = &kv->node[i];
            const int32_t     *key = kv->key + (size_t)i * (size_t)kv->opt.page_size;
            FM_BUG_UNLESS(n_node++ < kv->opt.n_page);
            FM_BUG_UNLESS(!seen[i].is_free && !seen[i].is_owned);
            FM_BUG_UNLESS(n->n_lock == seen[i].n_lock);
            FM_BUG_UNLESS((n->n_lock == 0) == (seen[i].age > 0));
            FM_BUG_UNLESS(fm__kv_find(kv, n->parent, key) == i);
            seen[n->parent].n_child++;
            if (seen[i].age && seen[n->parent].age)
                FM_BUG_UNLESS(seen[i].age < seen[n->parent].age);
        }
    }
    return n_node;
}

static void check_counts(const fm_kv *kv, const sighting *seen, int32_t n_node)
{
    int32_t n_owned = 0;
    for (int32_t i = 0; i < kv->opt.n_page; i++) {
        FM_BUG_UNLESS(!(seen[i].is_free && seen[i].is_owned));
        if (seen[i].is_free || seen[i].is_owned)
            FM_BUG_UNLESS(!seen[i].n_lock && !seen[i].n_child);
        else
            FM_BUG_UNLESS(kv->node[i].n_child == seen[i].n_child);
        n_owned += seen[i].is_owned;
    }
    FM_BUG_UNLESS(kv->n_free + n_owned + n_node == kv->opt.n_page);
}

/* Pages to be saved are pages of the tree, each in the list once; its identity follows from its
 * parent's and its tokens. */
static void check_below(const fm_kv *kv, const sighting *seen)
{
    const int32_t root = fm__kv_root(kv);
    int32_t       n    = 0;
    if (!kv->below) return;
    for (int32_t i = kv->below[root].next; i != root; i = kv->below[i].next) {
        FM_BUG_UNLESS(n++ < kv->n_wanted && kv->below[i].is_wanted && !kv->below[i].is_saved);
        FM_BUG_UNLESS(!seen[i].is_free && !seen[i].is_owned);
        FM_BUG_UNLESS(kv->below[kv->below[i].next].prev == i);
    }
    FM_BUG_UNLESS(n == kv->n_wanted);
    for (int32_t i = 0; i < root; i++) {
        if (seen[i].is_free || seen[i].is_owned) continue;
        const int32_t     *token = kv->key + (size_t)i * (size_t)kv->opt.page_size;
        const fm_page_hash key =
            fm_page_hash_next(kv->below[kv->node[i].parent].key, token, kv->opt.page_size);
        FM_BUG_UNLESS(fm_hash_equal(key, kv->below[i].key));
    }
}

void fm_kv_audit(const fm_kv *kv)
{
    sighting *seen = calloc((size_t)kv->opt.n_page + 1, sizeof *seen);
    FM_BUG_UNLESS(seen);

    see_free(kv, seen);
    FM_BUG_UNLESS(see_leases(kv, seen) + kv->n_free_slot == kv->opt.max_lease);
    see_idle(kv, seen);
    check_counts(kv, seen, kv->opt.share ? check_tree(kv, seen) : 0);
    check_below(kv, seen);
    free(seen);
}
