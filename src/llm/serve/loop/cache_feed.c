/* SPDX-License-Identifier: Apache-2.0 */
/* GET /cache_feed?epoch=E&since=V&wait=MS: which pages entered and left the cache since
 * version V, for routers that send requests where their prefix is.  Evictions are replied after
 * the step that made them, so that no prompt comes for what is gone.  What was inserted a router
 * expects from the prompts it sent: while nothing else changes, the reply waits for a tenth of a
 * second, and while nothing changes at all, up to MS milliseconds.
 *
 *     fathom-cache 1 epoch=E version=V page_size=N pages=N all=0|1 prefill_rate=R row_seconds=S
 * load=N +0123456789abcdef -fedcba9876543210
 *
 * epoch and version: to be sent with the next request.  all=1: the list is complete, pages known
 * before are gone.  pages: how many the cache can hold.  Rates (rates.h) and load (answers that run
 * or wait) are the present ones. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "llm/serve/loop/serve_internal.h"

enum { MAX_WAIT_MS = 60000 };

static const double insert_seconds = 0.1;

static uint64_t query_number(const char *query, const char *name, int base)
{
    const size_t n = strlen(name);
    for (const char *at = query; at && *at; at = strchr(at, '&'), at = at ? at + 1 : NULL)
        if (!strncmp(at, name, n) && at[n] == '=') return strtoull(at + n + 1, NULL, base);
    return 0;
}

static void reply(fm_serve *s, fm__call *c)
{
    fm_str                   head = {0}, lines = {0};
    int                      is_all = 0;
    const fm__engine_state   e      = fm__engine_get_state(s->engine_thread);
    const fm_page_feed_state f = fm_page_feed_read(fm_engine_page_feed(s->engine), c->feed->epoch,
                                                   c->feed->since, &lines, &is_all);
    fm_str_printf(&head,
                  "fathom-cache 1 epoch=%016" PRIx64 " version=%" PRIu64
                  " page_size=%d pages=%d all=%d prefill_rate=%.6g row_seconds=%.6g load=%d\n",
                  f.epoch, f.version, f.page_size, (int)f.n_page, is_all,
                  fm__rates_prefill(&e.rates), fm__rates_row(&e.rates), s->load);
    if (lines.len) fm_str_add(&head, lines.text, lines.len);
    fm_exchange_reply(c->x, 200, "text/plain", NULL, head.text, head.len);
    fm_str_fini(&head);
    fm_str_fini(&lines);
    fm__call_drop(s, c);
}

void fm__feed_check(fm_serve *s, fm__call *c, double now)
{
    const fm__feed_ask      *a        = c->feed;
    const fm_page_feed_state f        = fm_page_feed_get_state(fm_engine_page_feed(s->engine));
    const int                is_other = f.epoch != a->epoch || f.evicted > a->since;
    const int                is_late =
        now >= a->until || (f.version != a->since && now >= a->from + insert_seconds);
    if (is_other || is_late || s->draining) reply(s, c);
}

void fm__call_begin_feed(fm_serve *s, fm_exchange *x)
{
    const uint64_t wait = query_number(x->query, "wait", 10);
    fm__call      *c    = fm__call_begin_aside(s, x, NULL);
    c->feed             = calloc(1, sizeof *c->feed);
    FM_BUG_UNLESS(c->feed != NULL);
    c->feed->epoch = query_number(x->query, "epoch", 16);
    c->feed->since = query_number(x->query, "since", 10);
    c->feed->from  = fm_now();
    c->feed->until = c->feed->from + (double)(wait < MAX_WAIT_MS ? wait : MAX_WAIT_MS) / 1000;
    fm__feed_check(s, c, c->feed->from);
}
