/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/tier_policy/host_books.h"

#include <stdlib.h>

fm_status fm_host_books_init(fm_host_books *h, int32_t n)
{
    *h = (fm_host_books){.n = n, .n_bucket = 1};
    if (!n) return FM_OK;
    while (h->n_bucket < n) h->n_bucket *= 2;
    h->slot   = calloc((size_t)n + 1, sizeof *h->slot);
    h->bucket = malloc((size_t)h->n_bucket * sizeof *h->bucket);
    if (!h->slot || !h->bucket) return fm_fail(FM_E_OOM, "books of the host tier");
    for (int32_t i = 0; i < h->n_bucket; i++) h->bucket[i] = FM__HOST_NONE;
    for (int32_t i = 0; i <= n; i++) {
        h->slot[i].older   = i ? i - 1 : n;
        h->slot[i].younger = i < n ? i + 1 : 0;
    }
    return FM_OK;
}

void fm_host_books_fini(fm_host_books *h)
{
    free(h->slot);
    free(h->bucket);
    *h = (fm_host_books){0};
}

static int32_t *bucket_of(const fm_host_books *h, fm_page_hash key)
{
    return &h->bucket[key.lo & (uint64_t)(h->n_bucket - 1)];
}

static void touch(fm_host_books *h, int32_t i)
{
    fm__host_slot *s = h->slot, *n = &s[i];
    s[n->older].younger = n->younger;
    s[n->younger].older = n->older;
    n->older            = s[h->n].older;
    n->younger          = h->n;
    s[n->older].younger = i;
    s[h->n].older       = i;
}

int32_t fm_host_find(fm_host_books *h, fm_page_hash key)
{
    if (!h->n) return FM__HOST_NONE;
    for (int32_t i = *bucket_of(h, key); i != FM__HOST_NONE; i = h->slot[i].chain)
        if (fm_hash_equal(h->slot[i].key, key)) {
            touch(h, i);
            return i;
        }
    return FM__HOST_NONE;
}

void fm_host_forget(fm_host_books *h, int32_t i)
{
    if (!h->slot[i].is_used) return;
    int32_t *link = bucket_of(h, h->slot[i].key);
    while (*link != i) link = &h->slot[*link].chain;
    *link              = h->slot[i].chain;
    h->slot[i].is_used = 0;
}

int32_t fm_host_take(fm_host_books *h, fm_page_hash key)
{
    if (!h->n) return FM__HOST_NONE;
    int32_t i = h->slot[h->n].younger; /* the oldest */
    while (i != h->n && h->slot[i].n_pin) i = h->slot[i].younger;
    if (i == h->n) return FM__HOST_NONE;
    fm_host_forget(h, i);
    int32_t *const head = bucket_of(h, key);
    h->slot[i].key      = key;
    h->slot[i].is_used  = 1;
    h->slot[i].chain    = *head;
    *head               = i;
    touch(h, i);
    return i;
}

void fm_host_forget_all(fm_host_books *h)
{
    for (int32_t i = 0; i < h->n; i++)
        if (!h->slot[i].n_pin) fm_host_forget(h, i);
}

int fm_host_holds(const fm_host_books *h, int32_t slot, fm_page_hash key)
{
    return h->slot[slot].is_used && fm_hash_equal(h->slot[slot].key, key);
}

void fm_host_pin(fm_host_books *h, int32_t slot) { h->slot[slot].n_pin++; }

void fm_host_unpin(fm_host_books *h, int32_t slot)
{
    FM_BUG_UNLESS(h->slot[slot].n_pin > 0);
    h->slot[slot].n_pin--;
}
