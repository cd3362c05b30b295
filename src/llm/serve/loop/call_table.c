/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/loop/call_table.h"

#include <stdlib.h>

#include "base/status.h"

enum { MIN_BUCKETS = 1024 };

static fm__call_key **bucket_of(const fm__call_table *t, uint64_t key)
{
    return &t->bucket[(key ^ key >> 32) & (t->n_bucket - 1)];
}

static void link_key(fm__call_table *t, fm__call_key *k)
{
    fm__call_key **at = bucket_of(t, k->key);
    k->next           = *at;
    *at               = k;
}

/* Doubles the buckets when there are as many entries. */
static void grow(fm__call_table *t)
{
    if (t->n < t->n_bucket) return;
    fm__call_table wide = {.n_bucket = t->n_bucket ? 2 * t->n_bucket : MIN_BUCKETS, .n = t->n};
    wide.bucket         = calloc(wide.n_bucket, sizeof *wide.bucket);
    FM_BUG_UNLESS(wide.bucket != NULL);
    for (size_t b = 0; b < t->n_bucket; b++)
        for (fm__call_key *k = t->bucket[b], *next; k; k = next) {
            next = k->next;
            link_key(&wide, k);
        }
    free(t->bucket);
    *t = wide;
}

void fm__call_table_fini(fm__call_table *t)
{
    free(t->bucket);
    *t = (fm__call_table){0};
}

void fm__call_table_add(fm__call_table *t, fm__call_key *k)
{
    grow(t);
    link_key(t, k);
    t->n++;
}

void fm__call_table_remove(fm__call_table *t, fm__call_key *k)
{
    fm__call_key **at = bucket_of(t, k->key);
    while (*at != k) at = &(*at)->next;
    *at = k->next;
    t->n--;
}

static fm__call_key *from(fm__call_key *k, uint64_t key)
{
    while (k && k->key != key) k = k->next;
    return k;
}

fm__call_key *fm__call_table_find(const fm__call_table *t, uint64_t key)
{
    return t->n_bucket ? from(*bucket_of(t, key), key) : NULL;
}

fm__call_key *fm__call_table_next(const fm__call_key *k)
{
    return from(k->next, k->key);
}
