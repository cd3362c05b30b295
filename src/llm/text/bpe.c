/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/text/bpe_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum {
    CACHE_SLOTS = 1 << 14, /* 1 MiB per thread */
    KEY_BYTES   = 24,      /* the last one holds the length */
    KEY_IDS     = 9,
    SHORT_PIECE = 64, /* bytes; up to here a scan for the minimum beats a heap */
    NO_MERGE    = INT32_MAX,
};

/* Direct-mapped cache: a new entry replaces the one in its slot. */
struct cached {
    char    key[KEY_BYTES]; /* zero-padded piece, length in the last byte; length 0 = empty */
    int32_t n_id;
    int32_t id[KEY_IDS];
};

struct fm__bpe_scratch {
    struct cached *cache; /* [CACHE_SLOTS] */
    /* Long pieces: symbols as a doubly linked list over byte positions, and a
     * heap of rank << 32 | position.  An entry is stale when the pair now at
     * its position has another rank. */
    int32_t  *id, *prev, *next, *rank; /* [cap] */
    uint64_t *heap;                    /* [2 cap]: a merge takes one and adds at most two */
    size_t    cap, n_heap;
};

static uint64_t mix(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 32;
}

fm_status fm__bpe_init(fm__bpe *b, size_t n_merge)
{
    size_t n_slot = 1024;
    while (n_slot < 2 * n_merge) n_slot *= 2;
    if (!(b->slot = malloc(n_slot * sizeof *b->slot))) return fm_fail(FM_E_OOM, "merge table");
    memset(b->slot, 0xff, n_slot * sizeof *b->slot);
    b->mask = (uint32_t)n_slot - 1;
    return FM_OK;
}

void fm__bpe_fini(fm__bpe *b)
{
    free(b->slot);
    *b = (fm__bpe){0};
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static fm__merge *find_merge(const fm__bpe *b, int32_t left, int32_t right)
{
    const uint64_t pair = pair_of(left, right);
    uint32_t       i    = (uint32_t)mix(pair) & b->mask;
    while (b->slot[i].rank >= 0 && b->slot[i].pair != pair) i = (i + 1) & b->mask;
    return &b->slot[i];
}

void fm__bpe_add(fm__bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id)
{
    *find_merge(b, left, right) = (fm__merge){pair_of(left, right), rank, id};
}

int fm__bpe_bind_bytes(fm__bpe *b, const fm__vocab *v)
{
    int missing = -1;
    for (int i = 255; i >= 0; i--) {
        b->byte_id[i]    = fm__vocab_find(v, (const char[]){(char)i}, 1);
        const int occurs = i < 0xc0 || fm_utf8_length((unsigned char)i) > 0;
        if (occurs && b->byte_id[i] < 0) missing = i;
    }
    return missing;
}

fm_status fm__bpe_scratch_create(fm__bpe_scratch **out)
{
    fm__bpe_scratch *x = calloc(1, sizeof *x);
    if (!x || !(x->cache = calloc(CACHE_SLOTS, sizeof *x->cache))) {
        fm__bpe_scratch_destroy(x);
        return fm_fail(FM_E_OOM, "piece cache");
    }
    *out = x;
    return FM_OK;
}

static void free_long(fm__bpe_scratch *x)
{
    free(x->id);
    free(x->prev);
    free(x->next);
    free(x->rank);
    free(x->heap);
    x->id = x->prev = x->next = x->rank = NULL;
    x->heap = NULL;
    x->cap  = 0;
}

void fm__bpe_scratch_destroy(fm__bpe_scratch *x)
{
    if (!x) return;
    free_long(x);
    free(x->cache);
    free(x);
}

static int32_t rank_of(const fm__bpe *b, int32_t left, int32_t right)
{
    const fm__merge *m = find_merge(b, left, right);
    return m->rank < 0 ? NO_MERGE : m->rank;
}

/* rank[i] belongs to the pair (id[i], id[i+1]).  Returns how many ids remain. */
static int merge_short(const fm__bpe *b, const unsigned char *piece, int n, int32_t *id)
{
    int32_t rank[SHORT_PIECE];
    for (int i = 0; i < n; i++) id[i] = b->byte_id[piece[i]];
    for (int i = 0; i + 1 < n; i++) rank[i] = rank_of(b, id[i], id[i + 1]);

    while (n > 1) {
        int best = 0;
        for (int i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (rank[best] == NO_MERGE) break;

        id[best] = find_merge(b, id[best], id[best + 1])->id;
        n--;
        for (int i = best + 1; i < n; i++) {
            id[i]       = id[i + 1];
            rank[i - 1] = rank[i];
        }
        if (best > 0) rank[best - 1] = rank_of(b, id[best - 1], id[best]);
        if (best + 1 < n) rank[best] = rank_of(b, id[best], id[best + 1]);
    }
    return n;
}

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    const uint64_t moved = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= moved) break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static uint64_t heap_pop(fm__bpe_scratch *x)
{
    const uint64_t top = x->heap[0];
    x->heap[0]         = x->heap[--x->n_heap];
    sift_down(x->heap, x->n_heap, 0);
    return top;
}

static void heap_push(fm__bpe_scratch *x, uint64_t entry)
{
    size_t i = x->n_heap++;
    for (; i > 0 && x->heap[(i - 1) / 2] > entry; i = (i - 1) / 2)
        x->heap[i] = x->heap[(i - 1) / 2];
    x->heap[i] = entry;
}

/* The pair at `at` has changed: note its rank and, if it merges, queue it. */
static uint64_t rank_pair(const fm__bpe *b, fm__bpe_scratch *x, int32_t at)
{
    const int32_t right = x->next[at];
    x->rank[at]         = right < 0 ? NO_MERGE : rank_of(b, x->id[at], x->id[right]);
    return (uint64_t)(uint32_t)x->rank[at] << 32 | (uint32_t)at;
}

static void requeue(const fm__bpe *b, fm__bpe_scratch *x, int32_t at)
{
    const uint64_t entry = rank_pair(b, x, at);
    if (x->rank[at] != NO_MERGE) heap_push(x, entry);
}

static fm_status reserve_long(fm__bpe_scratch *x, size_t n)
{
    if (n <= x->cap) return FM_OK;
    free_long(x);
    x->id   = malloc(n * sizeof *x->id);
    x->prev = malloc(n * sizeof *x->prev);
    x->next = malloc(n * sizeof *x->next);
    x->rank = malloc(n * sizeof *x->rank);
    x->heap = malloc(2 * n * sizeof *x->heap);
    if (!x->id || !x->prev || !x->next || !x->rank || !x->heap) {
        free_long(x);
        return fm_fail(FM_E_OOM, "merging a piece of %zu bytes", n);
    }
    x->cap = n;
    return FM_OK;
}

static void link_symbols(const fm__bpe *b, fm__bpe_scratch *x, const unsigned char *piece,
                         int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        x->id[i]   = b->byte_id[piece[i]];
        x->prev[i] = i - 1;
        x->next[i] = i + 1 < n ? i + 1 : -1;
    }
    x->n_heap = 0;
    for (int32_t i = 0; i < n; i++) {
        const uint64_t entry = rank_pair(b, x, i);
        if (x->rank[i] != NO_MERGE) x->heap[x->n_heap++] = entry;
    }
    for (size_t i = x->n_heap / 2; i-- > 0;) sift_down(x->heap, x->n_heap, i);
}

static fm_status merge_long(const fm__bpe *b, fm__bpe_scratch *x, const unsigned char *piece,
                            int32_t n, fm_ids *out)
{
    FM_TRY(reserve_long(x, (size_t)n));
    link_symbols(b, x, piece, n);
    while (x->n_heap > 0) {
        const uint64_t entry = heap_pop(x);
        const int32_t  at    = (int32_t)(uint32_t)entry;
        if (x->rank[at] != (int32_t)(entry >> 32)) continue;

        const int32_t right = x->next[at];
        x->id[at]           = find_merge(b, x->id[at], x->id[right])->id;
        x->next[at]         = x->next[right];
        x->rank[right]      = NO_MERGE;
        if (x->next[at] >= 0) x->prev[x->next[at]] = at;
        requeue(b, x, at);
        if (x->prev[at] >= 0) requeue(b, x, x->prev[at]);
    }
    for (int32_t i = 0; i >= 0; i = x->next[i]) fm_ids_add(out, x->id[i]);
    return FM_OK;
}

static fm_status merge_piece(const fm__bpe *b, const fm__vocab *v, fm__bpe_scratch *x,
                             const char *piece, size_t n, fm_ids *out)
{
    const int32_t whole = b->whole_first ? fm__vocab_find(v, piece, n) : -1;
    if (whole >= 0) {
        fm_ids_add(out, whole);
        return FM_OK;
    }
    if (n > FM__MAX_PIECE)
        return fm_fail(FM_E_FORMAT, "text has a run of %zu bytes without a split; %d is the most",
                       n, FM__MAX_PIECE);
    if (n > SHORT_PIECE) return merge_long(b, x, (const unsigned char *)piece, (int32_t)n, out);

    int32_t   id[SHORT_PIECE];
    const int n_id = merge_short(b, (const unsigned char *)piece, (int)n, id);
    for (int i = 0; i < n_id; i++) fm_ids_add(out, id[i]);
    return FM_OK;
}

static struct cached *cache_slot(fm__bpe_scratch *x, const char key[KEY_BYTES])
{
    uint64_t word[KEY_BYTES / 8];
    memcpy(word, key, sizeof word);
    return &x->cache[mix(word[0] ^ mix(word[1] ^ mix(word[2]))) % CACHE_SLOTS];
}

fm_status fm__bpe_encode(const fm__bpe *b, const fm__vocab *v, fm__bpe_scratch *x,
                         const char *piece, size_t n, fm_ids *out)
{
    if (n == 0) return FM_OK;
    if (n >= KEY_BYTES) return merge_piece(b, v, x, piece, n, out);

    char key[KEY_BYTES] = {0};
    memcpy(key, piece, n);
    key[KEY_BYTES - 1] = (char)n;
    struct cached *c   = cache_slot(x, key);
    if (memcmp(c->key, key, sizeof key) == 0) {
        for (int i = 0; i < c->n_id; i++) fm_ids_add(out, c->id[i]);
        return FM_OK;
    }

    const size_t first = out->n;
    FM_TRY(merge_piece(b, v, x, piece, n, out));
    const size_t n_id = out->n - first;
    if (n_id <= KEY_IDS) {
        memcpy(c->key, key, sizeof key);
        memcpy(c->id, out->id + first, n_id * sizeof *c->id);
        c->n_id = (int32_t)n_id;
    }
    return FM_OK;
}
