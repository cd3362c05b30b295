/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/draft/ngram.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CHAIN = 32, NOWHERE = -1 };

struct fm_ngram {
    int      min_n, max_n;
    uint32_t mask;
    int32_t  n_indexed; /* leading tokens */
    int32_t *newest;    /* [mask + 1] last position of each hash */
    int32_t *before;    /* [max_token] the one before it */
};

static uint32_t buckets_for(int32_t max_token)
{
    uint32_t n = 64;
    while (n < (uint32_t)max_token) n *= 2;
    return n;
}

fm_status fm_ngram_create(fm_ngram **out, int32_t max_token, int min_n, int max_n)
{
    const uint32_t n = buckets_for(max_token);
    fm_ngram      *g = malloc(sizeof *g + ((size_t)n + (size_t)max_token) * sizeof(int32_t));
    if (!g) return fm_fail(FM_E_OOM, "n-gram index of %d tokens", (int)max_token);
    *g        = (fm_ngram){.min_n = min_n, .max_n = max_n, .mask = n - 1};
    g->newest = (int32_t *)(g + 1);
    g->before = g->newest + n;
    for (uint32_t i = 0; i < n; i++) g->newest[i] = NOWHERE;
    *out = g;
    return FM_OK;
}

void fm_ngram_destroy(fm_ngram *g)
{
    free(g);
}

/* Of the min_n tokens that end at position `at`. */
static uint32_t hash_at(const fm_ngram *g, const int32_t *token, int32_t at)
{
    uint32_t h = 0;
    for (int i = 0; i < g->min_n; i++) h = (h ^ (uint32_t)token[at - i]) * 0x9e3779b1u;
    return (h ^ h >> 15) & g->mask;
}

static void index_upto(fm_ngram *g, const int32_t *token, int32_t n)
{
    for (; g->n_indexed < n; g->n_indexed++) {
        const int32_t at = g->n_indexed;
        if (at < g->min_n - 1) continue;
        int32_t *newest = &g->newest[hash_at(g, token, at)];
        g->before[at]   = *newest;
        *newest         = at;
    }
}

/* How many tokens that end at `a` and `b` agree, up to max_n. */
static int match_length(const fm_ngram *g, const int32_t *token, int32_t a, int32_t b)
{
    int n = 0;
    while (n < g->max_n && n <= a && token[a - n] == token[b - n]) n++;
    return n;
}

int fm_ngram_propose(fm_ngram *g, const int32_t *token, int32_t n, int32_t *draft, int most)
{
    if (n < g->min_n + 1 || most < 1) return 0;
    index_upto(g, token, n - 1); /* the newest position is not a match of itself */
    int     best = g->min_n - 1;
    int32_t from = NOWHERE;
    int32_t at   = g->newest[hash_at(g, token, n - 1)];
    for (int i = 0; i < MAX_CHAIN && at != NOWHERE; i++, at = g->before[at]) {
        const int length = match_length(g, token, at, n - 1);
        if (length <= best) continue;
        best = length;
        from = at;
    }
    if (from == NOWHERE) return 0;
    const int32_t left = n - 1 - from;
    const int     len  = left < most ? (int)left : most;
    memcpy(draft, token + from + 1, (size_t)len * sizeof *draft);
    return len;
}
