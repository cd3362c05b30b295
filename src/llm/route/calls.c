/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a call: let in, queued, sent to a worker, ended. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/route/route_internal.h"
#include "llm/serve/reply/error.h"

static const double scan_interval = 0.1;
static const size_t little_unread = (size_t)1 << 18;

/* --- the queue ------------------------------------------------------------- */

static void enqueue(fm__rcall *c, int in_front)
{
    fm_route *r   = c->route;
    c->state      = FM__CALL_QUEUED;
    c->queued     = fm_now();
    c->queue_prev = in_front ? NULL : r->queue_tail;
    c->queue_next = in_front ? r->queue_head : NULL;
    *(c->queue_prev ? &c->queue_prev->queue_next : &r->queue_head) = c;
    *(c->queue_next ? &c->queue_next->queue_prev : &r->queue_tail) = c;
    r->n_queued++;
}

static void dequeue(fm__rcall *c)
{
    fm_route *r                                                    = c->route;
    *(c->queue_prev ? &c->queue_prev->queue_next : &r->queue_head) = c->queue_next;
    *(c->queue_next ? &c->queue_next->queue_prev : &r->queue_tail) = c->queue_prev;
    c->queue_prev = c->queue_next = NULL;
    r->n_queued--;
}

/* The first that a worker can have now. */
static fm__rcall *next_ready(fm_route *r, fm_worker **w, int32_t *n_cached)
{
    const double now = fm_now();
    if (r->opt->max_concurrent > 0 && r->n_active >= r->opt->max_concurrent) return NULL;
    for (fm__rcall *c = r->queue_head; c; c = c->queue_next)
        if (c->not_before <= now && (*w = fm__choose_worker(r, c, n_cached))) return c;
    return NULL;
}

void fm__rcalls_pump(fm_route *r)
{
    fm_worker *w        = NULL;
    int32_t    n_cached = 0;
    if (r->pumping) return;
    r->pumping = 1;
    for (fm__rcall *c; r->queue_head && (c = next_ready(r, &w, &n_cached));) {
        dequeue(c);
        fm__attempt_begin(c, w, n_cached);
    }
    r->pumping = 0;
}

void fm__rcall_requeue(fm__rcall *c, double delay)
{
    c->not_before = fm_now() + delay;
    enqueue(c, 1);
    if (delay <= 0) fm__rcalls_pump(c->route);
}

/* --- letting in ------------------------------------------------------------ */

static int takes_token(fm_route *r)
{
    const double rate = r->opt->rate_limit, now = fm_now();
    const double most = rate > 1 ? rate : 1;
    if (rate <= 0) return 1;
    r->bucket.tokens += (now - r->bucket.filled) * rate;
    r->bucket.filled = now;
    if (r->bucket.tokens > most) r->bucket.tokens = most;
    if (r->bucket.tokens < 1) return 0;
    r->bucket.tokens -= 1;
    return 1;
}

static int is_full(const fm_route *r)
{
    const int64_t most = r->opt->max_concurrent;
    if (r->n_queued < r->opt->queue_size) return 0;
    return r->opt->queue_size > 0 || (most > 0 && r->n_active >= most) || !fm__roster_n_up(r);
}

/* 1: refused, and told so. */
static int refuse(fm_route *r, fm_exchange *x)
{
    if (r->draining) {
        fm__reply_error(x, 503, "the router is shutting down");
    } else if (!r->workers) {
        fm__reply_error(x, 503, "there are no workers");
    } else if (!takes_token(r)) {
        r->counts.n_limited++;
        fm__reply_error(x, 429,
                        "more requests per second than this router lets in; try again later");
    } else if (is_full(r)) {
        r->counts.n_refused++;
        fm__reply_error(x, 429, "the queue is full; try again later");
    } else {
        return 0;
    }
    return 1;
}

static fm_relay_stream name_stream(fm_route *r)
{
    const uint64_t n = r->n_keyed++;
    return (fm_relay_stream){.key = (uint64_t)fm_rng_u32(r->random_key, 2 * n) << 32 |
                                    fm_rng_u32(r->random_key, 2 * n + 1),
                             .created = (int64_t)time(NULL)};
}

static fm__rcall *new_call(fm_route *r, fm_exchange *x, const fm__dialect *d)
{
    fm__rcall *c = calloc(1, sizeof *c);
    FM_BUG_UNLESS(c != NULL);
    c->route    = r;
    c->id       = ++r->next_call_id;
    c->x        = x;
    c->dialect  = d;
    c->began    = x->received;
    c->body_len = x->body_len;
    c->body     = fm_exchange_take_body(x);
    c->stream   = name_stream(r);
    x->user     = c;
    fm__target_of(&c->target, x);
    c->next = r->calls;
    if (r->calls) r->calls->prev = c;
    r->calls = c;
    r->n_call++;
    r->counts.n_request++;
    return c;
}

void fm__rcall_admit(fm__rcall *c)
{
    enqueue(c, 0);
    fm__rcalls_pump(c->route);
}

void fm__rcall_begin(fm_route *r, fm_exchange *x, const fm__dialect *d, int pinned)
{
    if (refuse(r, x)) return;
    fm__rcall *c = new_call(r, x, d);
    c->pinned    = pinned;
    if (!fm__prompt_read(c)) fm__rcall_admit(c);
}

/* --- the end --------------------------------------------------------------- */

static void free_call(fm__rcall *c)
{
    free(c->body);
    fm_str_fini(&c->target);
    fm_str_fini(&c->type);
    fm_str_fini(&c->headers);
    fm_str_fini(&c->collected);
    fm_str_fini(&c->last_error);
    fm_relay_reader_fini(&c->reader);
    fm_relay_tokens_fini(&c->tokens);
    fm_ids_fini(&c->prompt);
    free(c->page);
    free(c);
}

void fm__rcall_drop(fm__rcall *c)
{
    fm_route *r = c->route;
    fm__attempt_end(c);
    if (c->state == FM__CALL_QUEUED) dequeue(c);
    if (c->prev)
        c->prev->next = c->next;
    else
        r->calls = c->next;
    if (c->next) c->next->prev = c->prev;
    r->n_call--;
    free_call(c);
    if (r->n_queued) fm__rcalls_pump(r);
}

/* A stream ends with an error event where its dialect has one; otherwise the client sees
 * by the missing end that it was cut off. */
static void end_stream(fm__rcall *c, int status, const char *why)
{
    if (!c->last_error.len && c->dialect) c->dialect->late_error(&c->last_error, status, why);
    if (!c->last_error.len)
        fm_exchange_cut(c->x);
    else if (fm_exchange_write(c->x, c->last_error.text, c->last_error.len) == FM_OK)
        fm_exchange_end(c->x);
}

void fm__rcall_fail(fm__rcall *c, int status, const char *why)
{
    c->route->counts.n_failed++;
    if (c->streaming)
        end_stream(c, status, why);
    else
        fm__reply_error(c->x, status, why);
    fm__rcall_drop(c);
}

void fm__rcalls_leave(fm_route *r, fm_worker *w)
{
    const int was = r->pumping;
    r->pumping    = 1; /* the list must not change under the loop */
    for (fm__rcall *c = r->calls, *next; c; c = next) {
        next = c->next;
        if (c->worker == w && (!c->streaming || c->resumable))
            fm__attempt_fail(c, 503, "it does not answer its health checks");
    }
    r->pumping = was;
    fm__rcalls_pump(r);
}

/* --- time ------------------------------------------------------------------ */

/* The only worker that could answer it is down or has left. */
static int is_orphan(const fm__rcall *c)
{
    const fm_worker *w = c->pinned ? fm__roster_by_id(c->route, c->pinned) : NULL;
    return c->pinned && c->state == FM__CALL_QUEUED && (!w || w->health == FM_WORKER_DOWN);
}

/* 1: it was given up. */
static int is_late(fm__rcall *c, double now)
{
    const fm_route_options *o = c->route->opt;
    if (o->request_seconds > 0 && now - c->began > o->request_seconds) {
        fm__rcall_fail(c, 504, "the request took longer than this router allows");
        return 1;
    }
    if (is_orphan(c)) {
        fm__rcall_fail(c, 503, "the worker that keeps what the request names does not answer");
        return 1;
    }
    if (c->state == FM__CALL_QUEUED && now - c->queued > o->queue_timeout) {
        fm__rcall_fail(c, 503, "no worker could take the request in time");
        return 1;
    }
    return 0;
}

static void wake(fm__rcall *c)
{
    if (!c->paused || fm_exchange_unread(c->x) > little_unread) return;
    c->paused = 0;
    fm_fetch_pause(c->fetch, 0);
}

void fm__rcalls_tick(fm_route *r)
{
    const double now = fm_now();
    if (r->n_queued) fm__rcalls_pump(r);
    if (now - r->scanned < scan_interval) return;
    r->scanned = now;
    r->pumping = 1; /* the list must not change under the loop */
    for (fm__rcall *c = r->calls, *next; c; c = next) {
        next = c->next;
        if (!is_late(c, now)) wake(c);
    }
    r->pumping = 0;
}
