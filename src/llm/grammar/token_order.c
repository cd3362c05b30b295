/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/token_order.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *bytes;
    size_t      len;
    int32_t     id;
} entry;

static int by_bytes(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const size_t n = x->len < y->len ? x->len : y->len;
    const int    c = memcmp(x->bytes, y->bytes, n);
    if (c) return c;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static size_t common(const entry *a, const entry *b)
{
    size_t n = 0;
    while (n < a->len && n < b->len && a->bytes[n] == b->bytes[n]) n++;
    return n;
}

static int collect(entry *e, const fm_tokenizer *t, int vocab)
{
    int n = 0;
    for (int32_t id = 0; id < vocab && id < fm_tokenizer_size(t); id++) {
        size_t      len   = 0;
        const char *bytes = fm_token_bytes(t, id, &len);
        if (len && len <= UINT16_MAX && !fm_token_is_special(t, id))
            e[n++] = (entry){bytes, len, id};
    }
    qsort(e, (size_t)n, sizeof *e, by_bytes);
    return n;
}

fm_status fm__token_order_init(fm__token_order *o, const fm_tokenizer *t, int vocab)
{
    const size_t room = (size_t)vocab + 1;
    entry       *e    = malloc(room * sizeof *e);
    *o                = (fm__token_order){.id     = malloc(room * sizeof *o->id),
                                          .bytes  = malloc(room * sizeof *o->bytes),
                                          .len    = malloc(room * sizeof *o->len),
                                          .shared = malloc(room * sizeof *o->shared)};
    if (!e || !o->id || !o->bytes || !o->len || !o->shared) {
        free(e);
        fm__token_order_fini(o);
        return fm_fail(FM_E_OOM, "order of the tokens");
    }
    o->n = collect(e, t, vocab);
    for (int i = 0; i < o->n; i++) {
        o->id[i]     = e[i].id;
        o->bytes[i]  = e[i].bytes;
        o->len[i]    = (uint16_t)e[i].len;
        o->shared[i] = (uint16_t)(i ? common(&e[i - 1], &e[i]) : 0);
        if (o->len[i] > o->max_len) o->max_len = o->len[i];
    }
    free(e);
    return FM_OK;
}

void fm__token_order_fini(fm__token_order *o)
{
    free(o->id);
    free(o->bytes);
    free(o->len);
    free(o->shared);
    *o = (fm__token_order){0};
}

/* How token number i compares with texts that begin with these bytes: 0, it is one. */
static int compare(const fm__token_order *o, int i, const char *bytes, size_t n)
{
    const size_t len = o->len[i];
    const int    c   = memcmp(o->bytes[i], bytes, len < n ? len : n);
    return c ? c : len < n ? -1 : 0;
}

/* The first token that does not come before such texts. */
static int first_not_before(const fm__token_order *o, const char *bytes, size_t n)
{
    int lo = 0, hi = o->n;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (compare(o, mid, bytes, n) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void fm__token_order_clear(const fm__token_order *o, const char *bytes, size_t n, uint32_t *bits)
{
    for (int i = first_not_before(o, bytes, n); i < o->n && !compare(o, i, bytes, n); i++)
        bits[o->id[i] / 32] &= ~(1u << o->id[i] % 32);
}
