/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kv/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/slab.h"
#include "llm/kv/kv_internal.h"

enum { MAX_PAGE = 1 << 30, MAX_PAGE_SIZE = 64 };

static fm_status check_options(const fm_kv_options *o)
{
    if (o->n_page < 1 || o->n_page > MAX_PAGE)
        return fm_fail(FM_E_ARG, "KV cache: %d pages; between 1 and %d are possible", o->n_page,
                       MAX_PAGE);
    if (o->page_size < 1 || o->page_size > MAX_PAGE_SIZE)
        return fm_fail(FM_E_ARG, "KV cache: page size %d; between 1 and %d are possible",
                       o->page_size, MAX_PAGE_SIZE);
    if (o->max_lease < 1)
        return fm_fail(FM_E_ARG, "KV cache: room for %d sequences; at least 1 is needed",
                       o->max_lease);
    if (o->has_tiers && !o->share)
        return fm_fail(FM_E_ARG, "KV cache: tiers below it keep shared prefixes, and none are shared");
    if (o->max_context < 1)
        return fm_fail(FM_E_ARG, "KV cache: context of %d tokens; at least 1 is needed",
                       o->max_context);
    return FM_OK;
}

static int32_t pages_for(const fm_kv_options *o, int32_t n_token)
{
    return n_token / o->page_size + (n_token % o->page_size > 0);
}

static int32_t lease_pages(const fm_kv_options *o)
{
    const int32_t n = pages_for(o, o->max_context);
    return n < o->n_page ? n : o->n_page;
}

static int32_t bucket_count(int32_t n_page)
{
    int32_t n = 1;
    while (n < n_page) n *= 2;
    return n;
}

static void carve(fm_kv *kv, fm_slab *s)
{
    const size_t n_page = (size_t)kv->opt.n_page, n_lease = (size_t)kv->opt.max_lease;

    kv->free_page = fm_slab_take(s, n_page * sizeof *kv->free_page);
    kv->node      = fm_slab_take(s, (n_page + 1) * sizeof *kv->node);
    if (kv->opt.share) {
        kv->key    = fm_slab_take(s, n_page * (size_t)kv->opt.page_size * sizeof *kv->key);
        kv->bucket = fm_slab_take(s, (size_t)kv->n_bucket * sizeof *kv->bucket);
    }
    if (kv->opt.has_tiers) kv->below = fm_slab_take(s, (n_page + 1) * sizeof *kv->below);
    kv->open      = fm_slab_take(s, n_lease * sizeof *kv->open);
    kv->free_slot = fm_slab_take(s, n_lease * sizeof *kv->free_slot);
    kv->page_room = fm_slab_take(s, n_lease * (size_t)kv->lease_pages * sizeof *kv->page_room);
}

/* The struct itself lies at the front of the block. */
static void lay_out(fm_kv *kv, const fm_kv_options *opt, fm_slab *s)
{
    fm_slab_take(s, sizeof *kv);
    *kv = (fm_kv){.opt         = *opt,
                  .lease_pages = lease_pages(opt),
                  .n_bucket    = bucket_count(opt->n_page)};
    carve(kv, s);
}

size_t fm_kv_bytes(const fm_kv_options *opt)
{
    fm_kv   measured;
    fm_slab s = {0};
    if (check_options(opt) != FM_OK) return 0;
    lay_out(&measured, opt, &s);
    return s.used;
}

/* The node, its tokens, a place on the free list and at most two buckets. */
size_t fm_kv_book_bytes(int page_size, int has_tiers)
{
    return sizeof(fm__kv_node) + ((size_t)page_size + 3) * sizeof(int32_t) +
           (has_tiers ? sizeof(fm__kv_below) : 0);
}

fm_status fm_kv_create(fm_kv **out, const fm_kv_options *opt)
{
    FM_TRY(check_options(opt));

    const size_t bytes = fm_kv_bytes(opt);
    char *const  base  = aligned_alloc(FM_SLAB_ALIGN, bytes);
    if (!base) return fm_fail(FM_E_OOM, "KV cache: the page table needs %zu bytes", bytes);

    fm_kv  *kv = (fm_kv *)base;
    fm_slab s  = {.base = base, .size = bytes};
    lay_out(kv, opt, &s);

    /* Low pages and slots go out first, so that unused memory stays untouched. */
    for (int32_t i = opt->n_page; i > 0; i--) kv->free_page[kv->n_free++] = i - 1;
    for (int32_t i = opt->max_lease; i > 0; i--) kv->free_slot[kv->n_free_slot++] = i - 1;
    memset(kv->open, 0, (size_t)opt->max_lease * sizeof *kv->open);

    const int32_t root = fm__kv_root(kv);
    kv->node[root] = (fm__kv_node){.parent = FM__KV_NONE, .older = root, .younger = root};
    if (opt->share)
        for (int32_t i = 0; i < kv->n_bucket; i++) kv->bucket[i] = FM__KV_NONE;
    fm__kv_below_init(kv);

    *out = kv;
    return FM_OK;
}

void fm_kv_destroy(fm_kv *kv)
{
    if (!kv) return;
    FM_BUG_UNLESS(kv->n_free_slot == kv->opt.max_lease);
    free(kv);
}

const fm_kv_options *fm_kv_get_options(const fm_kv *kv)
{
    return &kv->opt;
}

/* The node below `parent` for page i of the tokens. */
static int32_t descend(const fm_kv *kv, int32_t parent, const int32_t *tokens, int32_t i)
{
    return fm__kv_find(kv, parent, tokens + (size_t)i * (size_t)kv->opt.page_size);
}

/* Full pages of n tokens, of which the last is always computed: a sequence has a row. */
static int32_t pages_to_look_up(const fm_kv *kv, int32_t n)
{
    return kv->opt.share ? (n - 1) / kv->opt.page_size : 0;
}

fm_status fm_kv_begin(fm_kv *kv, fm_kv_lease *lease, const int32_t *tokens, int32_t n)
{
    if (n < 1 || n > kv->opt.max_context)
        return fm_fail(FM_E_ARG, "KV cache: a text of %d tokens; 1 to %d are possible", n,
                       kv->opt.max_context);
    if (!kv->n_free_slot)
        return fm_fail(FM_E_FULL, "KV cache: all %d sequences are in use", kv->opt.max_lease);

    const int32_t slot = kv->free_slot[--kv->n_free_slot];
    *lease = (fm_kv_lease){.page = kv->page_room + (size_t)slot * (size_t)kv->lease_pages,
                           .slot = slot};
    kv->open[slot] = lease;

    const int32_t most = pages_to_look_up(kv, n);
    int32_t       node = fm__kv_root(kv);
    while (lease->n_page < most) {
        node = descend(kv, node, tokens, lease->n_page);
        if (node == FM__KV_NONE) break;
        fm__kv_lock(kv, node);
        fm__kv_below_used(kv, node);
        lease->page[lease->n_page++] = node;
    }
    lease->n_shared = lease->n_page;
    lease->n_cached = lease->n_page * kv->opt.page_size;
    kv->stats.hit_tokens += lease->n_cached;
    kv->stats.asked_tokens += n;
    return FM_OK;
}

static int32_t take_page(fm_kv *kv)
{
    if (kv->n_free) return kv->free_page[--kv->n_free];
    kv->stats.evicted_pages++;
    fm__kv_below_evict(kv, kv->node[fm__kv_root(kv)].younger, 1);
    return fm__kv_evict(kv);
}

fm_status fm_kv_grow(fm_kv *kv, fm_kv_lease *lease, int32_t n_token)
{
    const int32_t want = pages_for(&kv->opt, n_token);

    if (n_token > kv->opt.max_context || want > kv->lease_pages)
        return fm_fail(FM_E_ARG, "KV cache: %d tokens; a sequence can have %lld", n_token,
                       (long long)kv->lease_pages * kv->opt.page_size);
    if (want - lease->n_page > kv->n_free + kv->n_idle)
        return fm_fail(FM_E_FULL, "KV cache: %d more pages wanted, %d free, %d evictable",
                       want - lease->n_page, kv->n_free, kv->n_idle);
    while (lease->n_page < want) lease->page[lease->n_page++] = take_page(kv);
    return FM_OK;
}

void fm_kv_publish(fm_kv *kv, fm_kv_lease *lease, const int32_t *tokens, int32_t n)
{
    const int32_t full = n / kv->opt.page_size;

    if (!kv->opt.share) return;
    FM_BUG_UNLESS(full <= lease->n_page);
    for (int32_t i = lease->n_shared; i < full; i++) {
        const int32_t parent = i ? lease->page[i - 1] : fm__kv_root(kv);
        const int32_t twin   = descend(kv, parent, tokens, i);
        if (twin == FM__KV_NONE) {
            fm__kv_insert(kv, lease->page[i], parent,
                          tokens + (size_t)i * (size_t)kv->opt.page_size);
        } else {
            fm__kv_lock(kv, twin);
            kv->free_page[kv->n_free++] = lease->page[i];
            lease->page[i]              = twin;
        }
        lease->n_shared = i + 1;
    }
}

void fm_kv_end(fm_kv *kv, fm_kv_lease *lease)
{
    FM_BUG_UNLESS(kv->open[lease->slot] == lease);
    while (lease->n_page > lease->n_shared)
        kv->free_page[kv->n_free++] = lease->page[--lease->n_page];
    while (lease->n_page) fm__kv_unlock(kv, lease->page[--lease->n_page]);

    kv->open[lease->slot]            = NULL;
    kv->free_slot[kv->n_free_slot++] = lease->slot;
    *lease                           = (fm_kv_lease){.slot = FM__KV_NONE};
}

int32_t fm_kv_match(const fm_kv *kv, const int32_t *tokens, int32_t n)
{
    const int32_t most = kv->opt.share ? n / kv->opt.page_size : 0;
    int32_t       i = 0, node = fm__kv_root(kv);

    while (i < most && (node = descend(kv, node, tokens, i)) != FM__KV_NONE) i++;
    return i * kv->opt.page_size;
}

int32_t fm_kv_probe(const fm_kv *kv, const int32_t *tokens, int32_t n, int32_t *n_idle)
{
    const int32_t most = pages_to_look_up(kv, n);
    int32_t       i = 0, node = fm__kv_root(kv);

    *n_idle = 0;
    while (i < most && (node = descend(kv, node, tokens, i)) != FM__KV_NONE) {
        *n_idle += kv->node[node].n_lock == 0;
        i++;
    }
    return i * kv->opt.page_size;
}

void fm_kv_touch(fm_kv *kv, const int32_t *tokens, int32_t n)
{
    const int32_t most = pages_to_look_up(kv, n), root = fm__kv_root(kv);
    int32_t       node = root, child;

    for (int32_t i = 0; i < most && (child = descend(kv, node, tokens, i)) != FM__KV_NONE; i++)
        node = child;
    for (; node != root; node = kv->node[node].parent) fm__kv_renew(kv, node);
}

/* Lock counts never rise on the way down, so the sole pages are the last ones. */
int32_t fm_kv_sole_pages(const fm_kv *kv, const fm_kv_lease *lease)
{
    int32_t lo = 0, hi = lease->n_shared;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (kv->node[lease->page[mid]].n_lock > 1) lo = mid + 1;
        else                                       hi = mid;
    }
    return lease->n_page - lo;
}

int32_t fm_kv_free_pages(const fm_kv *kv)
{
    return kv->n_free;
}

int32_t fm_kv_evictable_pages(const fm_kv *kv)
{
    return kv->n_idle;
}

void fm_kv_flush(fm_kv *kv)
{
    while (kv->n_idle) {
        fm__kv_below_evict(kv, kv->node[fm__kv_root(kv)].younger, 0);
        kv->free_page[kv->n_free++] = fm__kv_evict(kv);
    }
}

void fm_kv_listen(fm_kv *kv, const fm_kv_listener *l)
{
    kv->listener = *l;
}

fm_kv_stats fm_kv_get_stats(const fm_kv *kv)
{
    return kv->stats;
}

void fm_kv_add_stats(fm_kv_stats *sum, const fm_kv_stats *s)
{
    sum->hit_tokens += s->hit_tokens;
    sum->asked_tokens += s->asked_tokens;
    sum->evicted_pages += s->evicted_pages;
}
