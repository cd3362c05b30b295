/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/draft/ngram.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CHAIN = 32, NOWHERE = -1 };

struct fm_ngram {
    int      min_n, max_n;
    uint32_t mask;
    uint64_t sequence;
    int32_t  n_indexed; /* leading tokens, of which the last mask + 1 can be found */
    int32_t *newest;    /* [mask + 1] last position of each hash */
    int32_t *before;    /* [mask + 1] of position & mask: the one before it with the same hash */
};

static uint32_t buckets_for(int32_t max_token)
{
    uint32_t n = 64;
    while (n < (uint32_t)max_token && n < FM_NGRAM_WINDOW) n *= 2;
    return n;
}

size_t fm_ngram_bytes(int32_t max_token)
{
    return sizeof(fm_ngram) + 2 * (size_t)buckets_for(max_token) * sizeof(int32_t);
}

static void forget(fm_ngram *g)
{
    g->n_indexed = 0;
    for (uint32_t i = 0; i <= g->mask; i++) g->newest[i] = NOWHERE;
}

fm_status fm_ngram_create(fm_ngram **out, int32_t max_token, int min_n, int max_n)
{
    const uint32_t n = buckets_for(max_token);
    fm_ngram      *g = malloc(fm_ngram_bytes(max_token));
    if (!g) return fm_fail(FM_E_OOM, "n-gram index of %d tokens", (int)max_token);
    *g        = (fm_ngram){.min_n = min_n, .max_n = max_n, .mask = n - 1};
    g->newest = (int32_t *)(g + 1);
    g->before = g->newest + n;
    forget(g);
    *out = g;
    return FM_OK;
}

void fm_ngram_destroy(fm_ngram *g)
{
    free(g);
}

void fm_ngram_serve(fm_ngram *g, uint64_t sequence)
{
    if (g->sequence == sequence) return;
    g->sequence = sequence;
    forget(g);
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
    const int32_t window = (int32_t)g->mask + 1;
    if (g->n_indexed < n - window) g->n_indexed = n - window;
    for (; g->n_indexed < n; g->n_indexed++) {
        const int32_t at = g->n_indexed;
        if (at < g->min_n - 1) continue;
        int32_t *newest = &g->newest[hash_at(g, token, at)];
        g->before[(uint32_t)at & g->mask] = *newest;
        *newest                           = at;
    }
}

/* Whether a position is still in the window: what a chain says beyond was overwritten. */
static int is_known(const fm_ngram *g, int32_t at)
{
    return at != NOWHERE && at >= g->n_indexed - (int32_t)g->mask - 1;
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
    for (int i = 0; i < MAX_CHAIN && is_known(g, at); i++, at = g->before[(uint32_t)at & g->mask]) {
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
