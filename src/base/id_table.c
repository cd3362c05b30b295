/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id_table.h"

#include <stdlib.h>

enum { MIN_BUCKETS = 1024 };

/* The highest bits of the product with 2^64 over the golden ratio: consecutive ids spread evenly,
 * whichever of their bits count. */
static fm_id_link **bucket_of(const fm_id_table *t, uint64_t key)
{
    const int n_bit = __builtin_ctzll(t->n_bucket);
    return &t->bucket[key * 0x9e3779b97f4a7c15u >> (64 - n_bit)];
}

static void put(fm_id_table *t, fm_id_link *l)
{
    fm_id_link **at = bucket_of(t, l->key);
    l->next         = *at;
    *at             = l;
}

/* Doubles the buckets when there are as many records. */
static fm_status grow(fm_id_table *t)
{
    if (t->n < t->n_bucket) return FM_OK;
    fm_id_table wide = {.n_bucket = t->n_bucket ? 2 * t->n_bucket : MIN_BUCKETS, .n = t->n};
    wide.bucket      = calloc(wide.n_bucket, sizeof *wide.bucket);
    if (!wide.bucket) return fm_fail(FM_E_OOM, "table of %zu records", t->n);
    for (size_t b = 0; b < t->n_bucket; b++)
        for (fm_id_link *l = t->bucket[b], *next; l; l = next) {
            next = l->next;
            put(&wide, l);
        }
    free(t->bucket);
    *t = wide;
    return FM_OK;
}

void fm_id_table_fini(fm_id_table *t)
{
    free(t->bucket);
    *t = (fm_id_table){0};
}

fm_status fm_id_table_add(fm_id_table *t, fm_id_link *l)
{
    FM_TRY(grow(t));
    put(t, l);
    t->n++;
    return FM_OK;
}

void fm_id_table_remove(fm_id_table *t, fm_id_link *l)
{
    fm_id_link **at = bucket_of(t, l->key);
    while (*at != l) at = &(*at)->next;
    *at = l->next;
    t->n--;
}

static fm_id_link *alike_from(fm_id_link *l, uint64_t key)
{
    while (l && l->key != key) l = l->next;
    return l;
}

fm_id_link *fm_id_table_find(const fm_id_table *t, uint64_t key)
{
    return t->n_bucket ? alike_from(*bucket_of(t, key), key) : NULL;
}

fm_id_link *fm_id_table_next_alike(const fm_id_link *l) { return alike_from(l->next, l->key); }

static fm_id_link *first_from(const fm_id_table *t, size_t bucket)
{
    while (bucket < t->n_bucket && !t->bucket[bucket]) bucket++;
    return bucket < t->n_bucket ? t->bucket[bucket] : NULL;
}

fm_id_link *fm_id_table_first(const fm_id_table *t) { return first_from(t, 0); }

fm_id_link *fm_id_table_next(const fm_id_table *t, const fm_id_link *l)
{
    return l->next ? l->next : first_from(t, (size_t)(bucket_of(t, l->key) - t->bucket) + 1);
}
