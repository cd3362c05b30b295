/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/kv/page_feed.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "llm/kv/page_hash.h"

enum { MIN_LOG = 1 << 12, MAX_LOG = 1 << 20 };

typedef struct {
    uint64_t hash;
    int      is_insert;
} change;

typedef struct source {
    fm_page_feed  *feed;
    int32_t        first_page;
    struct source *next;
} source;

struct fm_page_feed {
    pthread_mutex_t lock;
    uint64_t        epoch, version; /* version: changes so far */
    uint64_t        evicted;        /* so far when the last eviction was noted */
    int             page_size;
    int32_t         n_page;
    fm_page_hash   *hash; /* [n_page] the scheduler's own */
    uint64_t       *held; /* [n_page] low half of what a page holds; 0: nothing */
    change         *log;  /* [n_log] a ring: change i lies at i % n_log */
    uint64_t        n_log;
    source         *sources;
};

static uint64_t new_epoch(void)
{
    uint64_t e = 0;
    if (getrandom(&e, sizeof e, 0) != sizeof e) e = (uint64_t)time(NULL);
    return e ? e : 1;
}

fm_status fm_page_feed_create(fm_page_feed **out, int32_t n_page, int page_size)
{
    fm_page_feed *f = calloc(1, sizeof *f);
    if (!f) return fm_fail(FM_E_OOM, "feed of cached pages");
    f->n_log = MIN_LOG;
    while (f->n_log < (uint64_t)n_page && f->n_log < MAX_LOG) f->n_log *= 2;
    f->epoch     = new_epoch();
    f->n_page    = n_page;
    f->page_size = page_size;
    f->hash      = calloc((size_t)n_page, sizeof *f->hash);
    f->held      = calloc((size_t)n_page, sizeof *f->held);
    f->log       = calloc(f->n_log, sizeof *f->log);
    pthread_mutex_init(&f->lock, NULL);
    if (!f->hash || !f->held || !f->log) {
        fm_page_feed_destroy(f);
        return fm_fail(FM_E_OOM, "feed of %d cached pages", (int)n_page);
    }
    *out = f;
    return FM_OK;
}

void fm_page_feed_destroy(fm_page_feed *f)
{
    if (!f) return;
    for (source *s = f->sources, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    pthread_mutex_destroy(&f->lock);
    free(f->hash);
    free(f->held);
    free(f->log);
    free(f);
}

static void note(fm_page_feed *f, int32_t page, uint64_t hash, int is_insert)
{
    pthread_mutex_lock(&f->lock);
    f->held[page]                   = is_insert ? hash : 0;
    f->log[f->version++ % f->n_log] = (change){hash, is_insert};
    if (!is_insert) f->evicted = f->version;
    pthread_mutex_unlock(&f->lock);
}

static void on_insert(void *ctx, int32_t page, int32_t parent, const int32_t *tokens)
{
    const source      *s    = ctx;
    fm_page_feed      *f    = s->feed;
    const fm_page_hash from = parent < 0 ? fm_page_hash_root(0) : f->hash[s->first_page + parent];
    const fm_page_hash hash = fm_page_hash_next(from, tokens, f->page_size);
    f->hash[s->first_page + page] = hash;
    note(f, s->first_page + page, hash.lo, 1);
}

static void on_evict(void *ctx, int32_t page)
{
    const source *s = ctx;
    note(s->feed, s->first_page + page, s->feed->hash[s->first_page + page].lo, 0);
}

fm_status fm_page_feed_follow(fm_page_feed *f, fm_kv *kv, int32_t first_page)
{
    source *s = malloc(sizeof *s);
    if (!s) return fm_fail(FM_E_OOM, "feed of cached pages");
    FM_BUG_UNLESS(first_page >= 0 && first_page + fm_kv_get_options(kv)->n_page <= f->n_page);
    *s         = (source){f, first_page, f->sources};
    f->sources = s;
    fm_kv_listen(kv, &(fm_kv_listener){.inserted = on_insert, .evicted = on_evict, .ctx = s});
    return FM_OK;
}

static fm_page_feed_state state_of(const fm_page_feed *f)
{
    return (fm_page_feed_state){f->epoch, f->version, f->evicted, f->page_size, f->n_page};
}

fm_page_feed_state fm_page_feed_get_state(fm_page_feed *f)
{
    pthread_mutex_lock(&f->lock);
    const fm_page_feed_state s = state_of(f);
    pthread_mutex_unlock(&f->lock);
    return s;
}

static void put_change(fm_str *out, uint64_t hash, int is_insert)
{
    fm_str_printf(out, "%c%016" PRIx64 "\n", is_insert ? '+' : '-', hash);
}

/* Copies are made under the lock, text is written without it. */
static change *copy_changes(const fm_page_feed *f, uint64_t since, uint64_t *n)
{
    *n           = f->version - since;
    change *copy = malloc((*n + 1) * sizeof *copy);
    FM_BUG_UNLESS(copy != NULL);
    for (uint64_t i = 0; i < *n; i++) copy[i] = f->log[(since + i) % f->n_log];
    return copy;
}

static change *copy_held(const fm_page_feed *f, uint64_t *n)
{
    change *copy = malloc(((size_t)f->n_page + 1) * sizeof *copy);
    FM_BUG_UNLESS(copy != NULL);
    *n = 0;
    for (int32_t i = 0; i < f->n_page; i++)
        if (f->held[i]) copy[(*n)++] = (change){f->held[i], 1};
    return copy;
}

fm_page_feed_state fm_page_feed_read(fm_page_feed *f, uint64_t epoch, uint64_t since, fm_str *out,
                                     int *is_all)
{
    uint64_t n = 0;
    pthread_mutex_lock(&f->lock);
    const fm_page_feed_state s = state_of(f);
    *is_all      = epoch != f->epoch || since > f->version || f->version - since > f->n_log;
    change *copy = *is_all ? copy_held(f, &n) : copy_changes(f, since, &n);
    pthread_mutex_unlock(&f->lock);
    for (uint64_t i = 0; i < n; i++) put_change(out, copy[i].hash, copy[i].is_insert);
    free(copy);
    return s;
}
