/* SPDX-License-Identifier: Apache-2.0 */
/* Following what workers have cached: GET /cache_feed, whose reply waits until there is
 * news (serve/loop/cache_feed.c): at once of evictions, soon of what was inserted; all that happens
 * in the pause before the next request comes in one reply.
 * A worker that has no such path is not asked again until it has been down; its requests are
 * placed by load. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "llm/route/route_internal.h"

enum { WAIT_MS = 1000, EXPIRE_ENTRIES = 1024 }; /* entries looked at per worker and tick */
static const double patience = 5, pause_seconds = 0.01, pause_after_failure = 0.5;
static const size_t most_bytes = (size_t)512 << 20;

static int is_rate(double x) { return isfinite(x) && x >= 0; }

/* The first line; 0: it is none. */
static int read_state(fm_worker_feed *f, const char *line, int *is_all)
{
    uint64_t epoch, version;
    int      page_size, n_page, load;
    double   prefill, row;
    if (sscanf(line,
               "fathom-cache 1 epoch=%16" SCNx64 " version=%20" SCNu64
               " page_size=%d pages=%d all=%d prefill_rate=%lf row_seconds=%lf load=%d",
               &epoch, &version, &page_size, &n_page, is_all, &prefill, &row, &load) != 8)
        return 0;
    if (page_size < 1 || page_size > 64 || n_page < 0 || load < 0) return 0;
    if (!is_rate(prefill) || !is_rate(row)) return 0;
    f->epoch        = epoch;
    f->version      = version;
    f->page_size    = page_size;
    f->n_page       = n_page;
    f->prefill_rate = prefill;
    f->row_seconds  = row;
    f->load         = load;
    return 1;
}

static void read_changes(fm_worker_feed *f, const char *at)
{
    for (; *at == '+' || *at == '-'; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "") {
        const uint64_t key = strtoull(at + 1, NULL, 16);
        if (*at == '+')
            fm_cache_index_insert(&f->pages, key);
        else
            fm_cache_index_evict(&f->pages, key);
    }
}

int fm__feed_read(fm_worker_feed *f, const char *text)
{
    const char *eol    = strchr(text, '\n');
    int         is_all = 0;
    if (!eol || !read_state(f, text, &is_all)) return 0;
    if (is_all) fm_cache_index_clear(&f->pages);
    f->pages.n_room = f->n_page;
    read_changes(f, eol + 1);
    return 1;
}

static void on_done(void *ctx, const char *why)
{
    fm_worker      *w    = ctx;
    fm_worker_feed *f    = &w->feed;
    const fm_query *q    = &f->query;
    const double    rate = f->prefill_rate, now = fm_now();
    const char     *text = q->reply.text ? q->reply.text : "";
    const int       ok   = !why && q->status == 200 && fm__feed_read(f, text);
    f->next              = now + (ok ? pause_seconds : pause_after_failure);
    if (f->prefill_rate != rate) f->rated = now;
    if (ok) f->elsewhere = f->load > w->n_active ? f->load - w->n_active : 0;
    if (!why && q->status != 200) f->is_none = 1;
    if (!ok) fm__feed_forget(w);
    fm_str_fini(&f->query.reply);
}

void fm__feed_forget(fm_worker *w)
{
    fm_cache_index_clear(&w->feed.pages);
    w->feed.epoch = w->feed.version = 0;
    w->feed.elsewhere               = 0;
}

static void ask(fm_worker *w)
{
    char target[128];
    snprintf(target, sizeof target, "/cache_feed?epoch=%016" PRIx64 "&since=%" PRIu64 "&wait=%d",
             w->feed.epoch, w->feed.version, WAIT_MS);
    const fm_query_ask ask = {.method     = "GET",
                              .target     = target,
                              .seconds    = patience,
                              .most_bytes = most_bytes,
                              .done       = on_done,
                              .ctx        = w};
    fm_query_send(&w->feed.query, w, &ask);
}

void fm__feed_tick(fm_route *r)
{
    const double now = fm_now();
    if (r->policy != FM_ROUTE_CACHE_AWARE) return;
    for (fm_worker *w = r->workers; w; w = w->next) {
        fm_cache_index_expire(&w->feed.pages, now, EXPIRE_ENTRIES);
        if (w->n_good && !w->feed.query.fetch && !w->feed.is_none && now >= w->feed.next) ask(w);
    }
}
