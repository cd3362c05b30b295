/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/text/added_internal.h"

#include <stdlib.h>
#include <string.h>

fm_status fm__added_put(fm__added *a, const char *text, size_t n, int32_t id)
{
    FM_BUG_UNLESS(n > 0 && n <= FM__MAX_ADDED_BYTES);
    if (a->n == a->cap) {
        const int        cap = a->cap ? 2 * a->cap : 64;
        fm__added_token *p   = realloc(a->token, (size_t)cap * sizeof *p);
        if (!p) return fm_fail(FM_E_OOM, "added tokens");
        a->token = p;
        a->cap   = cap;
    }
    char *copy = malloc(n);
    if (!copy) return fm_fail(FM_E_OOM, "added token");
    memcpy(copy, text, n);
    a->token[a->n++]                = (fm__added_token){copy, n, id};
    a->begins[(unsigned char)*text] = 1;
    return FM_OK;
}

void fm__added_fini(fm__added *a)
{
    for (int i = 0; i < a->n; i++) free(a->token[i].text);
    free(a->token);
    *a = (fm__added){0};
}

static int by_text(const void *a, const void *b)
{
    const fm__added_token *x = a, *y = b;
    const int              order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);
    if (order) return order;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id; /* a text added twice has its lowest id */
}

void fm__added_seal(fm__added *a)
{
    if (a->n) qsort(a->token, (size_t)a->n, sizeof *a->token, by_text);
}

/* First of token[lo..hi) whose byte `k` is not below `byte`; a token that
 * ends before has none and is below all. */
static int lower_bound(const fm__added *a, int lo, int hi, size_t k, int byte)
{
    while (lo < hi) {
        const int              mid = lo + (hi - lo) / 2;
        const fm__added_token *t   = &a->token[mid];
        if (t->n <= k || (unsigned char)t->text[k] < byte) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* The longest token that text[0..n) begins with, or NULL: the sorted range
 * of tokens that agree with the text shrinks with every byte. */
static const fm__added_token *longest_at(const fm__added *a, const char *text, size_t n)
{
    const fm__added_token *longest = NULL;
    int                    lo = 0, hi = a->n;
    for (size_t k = 0; k < n && lo < hi; k++) {
        const int byte = (unsigned char)text[k];
        lo             = lower_bound(a, lo, hi, k, byte);
        hi             = lower_bound(a, lo, hi, k, byte + 1);
        if (lo < hi && a->token[lo].n == k + 1) longest = &a->token[lo];
    }
    return longest;
}

int fm__added_find(const fm__added *a, const char *text, size_t n, size_t from,
                   fm__added_match *out)
{
    if (a->n == 0) return 0;
    for (size_t i = from; i < n; i++) {
        if (!a->begins[(unsigned char)text[i]]) continue;
        const fm__added_token *t = longest_at(a, text + i, n - i);
        if (!t) continue;
        *out = (fm__added_match){i, i + t->n, t->id};
        return 1;
    }
    return 0;
}

int32_t fm__added_id(const fm__added *a, const char *text, size_t n)
{
    const fm__added_token *t = longest_at(a, text, n);
    return t && t->n == n ? t->id : -1;
}
