/* SPDX-License-Identifier: Apache-2.0 */
/* One try of a call at one worker.
 *
 *     send ──> head ──┬─ frames: passed on one by one, their tokens noted
 *                     ├─ a known length: collected, then passed on as a whole
 *                     └─ anything else: passed on as it comes
 *
 * A try that fails is followed by another as long as the client has nothing of the reply, or
 * has received whole frames only: then the next worker gets the tokens that were sent, and
 * resumes behind them. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/route/route_internal.h"

static const size_t most_unread = (size_t)1 << 20, most_collected = (size_t)256 << 20;

/* --- letting go ------------------------------------------------------------ */

static void stop_counting(fm__rcall *c)
{
    if (c->worker) c->worker->pending_tokens -= c->counted;
    c->counted = 0;
}

void fm__attempt_end(fm__rcall *c)
{
    if (c->fetch) fm_fetch_cancel(c->fetch);
    if (c->worker) {
        stop_counting(c);
        c->worker->promised_tokens -= c->n_output;
        c->worker->n_active--;
        c->route->n_active--;
        fm_breaker_forget(&c->worker->breaker);
    }
    c->fetch  = NULL;
    c->worker = NULL;
    c->heard = c->framed = c->paused = 0;
    fm_str_clear(&c->collected);
    fm_relay_reader_fini(&c->reader);
    c->reader = (fm_relay_reader){0};
}

static void avoid(fm__rcall *c, const fm_worker *w)
{
    memmove(c->avoid + 1, c->avoid, (FM__MAX_AVOID - 1) * sizeof *c->avoid);
    c->avoid[0] = w->id;
}

/* The first time at once: another worker is well, as far as is known. */
static double backoff(const fm__rcall *c)
{
    const fm_route_options *o = c->route->opt;
    double t = c->n_try > 1 || fm__roster_n_up(c->route) < 2 ? o->backoff_first_ms : 0;
    for (int i = 2; i < c->n_try && t < o->backoff_most_ms; i++) t *= o->backoff_growth;
    if (t > o->backoff_most_ms) t = o->backoff_most_ms;
    const double random = fm_rng_u32(c->stream.key, (uint64_t)c->n_tries) * 0x1p-32;
    return t * (1 + o->backoff_jitter * (2 * random - 1)) / 1000;
}

static int may_try_again(const fm__rcall *c)
{
    const fm_route_options *o = c->route->opt;
    if (o->no_retries || c->n_try > o->retries) return 0;
    return !c->streaming || c->resumable;
}

void fm__attempt_fail(fm__rcall *c, int status, const char *why)
{
    fm_route  *r = c->route;
    fm_worker *w = c->worker;
    char       words[256];
    snprintf(words, sizeof words, "worker %d: %s", w->id, why);
    w->counts.n_error++;
    fm__prompt_unexpect(c, w);
    if (status != 429) fm_breaker_fail(&w->breaker, &r->breaker, fm_now()); /* full is not ill */
    avoid(c, w);
    fm__attempt_end(c);
    if (may_try_again(c)) {
        r->counts.n_retry++;
        fm__rcall_requeue(c, backoff(c));
    } else {
        fm__rcall_fail(c, status, words);
    }
}

/* --- the reply ------------------------------------------------------------- */

/* The worker did its part. */
static void succeed(fm__rcall *c)
{
    fm_worker *w = c->worker;
    fm_breaker_succeed(&w->breaker, &c->route->breaker);
    fm_histogram_add(&w->counts.whole, fm_now() - c->sent);
}

static void finish(fm__rcall *c)
{
    fm_exchange *x = c->x;
    succeed(c);
    if (c->streaming)
        fm_exchange_end(x);
    else
        fm_exchange_reply(x, c->status, c->type.text ? c->type.text : "application/octet-stream",
                          c->headers.text, c->collected.text ? c->collected.text : "",
                          c->collected.len);
    fm__rcall_drop(c);
}

/* The client has read too little to be given more: the worker waits, too. */
static void throttle(fm__rcall *c)
{
    if (fm_exchange_unread(c->x) <= most_unread || c->paused) return;
    c->paused = 1;
    fm_fetch_pause(c->fetch, 1);
}

/* 0: the client was too slow and is gone. */
static int pass_on(fm__rcall *c, const char *bytes, size_t n)
{
    if (fm_exchange_write(c->x, bytes, n) != FM_OK) {
        c->x = NULL;
        fm__rcall_drop(c);
        return 0;
    }
    throttle(c);
    return 1;
}

static int on_frame(void *ctx, const fm_relay_frame *f)
{
    fm__rcall *c = ctx;
    if (f->n_event == FM_RELAY_ERROR) {
        fm_str_clear(&c->last_error);
        fm_str_add(&c->last_error, f->data, f->len);
        if (c->n_own_error++) c->resumable = 0;
        fm__attempt_fail(c, 500, "it ended the stream with an error");
        return 0;
    }
    if (f->len) c->n_own_error = 0;
    c->n_event = f->n_event;
    c->n_try   = 1; /* progress: the next failure is a first one again */
    return !f->len || pass_on(c, f->data, f->len);
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    fm__rcall *c              = ctx;
    c->worker->progress.heard = fm_now();
    if (c->framed) {
        if (fm_relay_reader_push(&c->reader, bytes, n, &c->tokens, on_frame, c) != FM_OK)
            fm__attempt_fail(c, 502, fm_why());
    } else if (c->streaming) {
        pass_on(c, bytes, n);
    } else if (c->collected.len + n > most_collected) {
        fm__attempt_fail(c, 502, "its reply is larger than is passed on");
    } else {
        fm_str_add(&c->collected, bytes, n);
    }
}

/* An error of its own another worker may not have; two agree that it is the request's. */
static int is_worth_another_try(fm__rcall *c, int status)
{
    if (status == 500) return c->n_own_error++ == 0;
    return status == 408 || status == 429 || (status >= 502 && status <= 504);
}

static void begin_stream(fm__rcall *c)
{
    if (c->streaming) return;
    c->streaming = 1;
    fm_exchange_begin(c->x, c->status, c->type.text ? c->type.text : "application/octet-stream",
                      c->headers.text);
}

static void note_first_byte(fm__rcall *c)
{
    stop_counting(c);
    c->heard                  = 1;
    c->worker->progress.heard = fm_now();
    fm_histogram_add(&c->worker->counts.first_byte, fm_now() - c->sent);
}

static void on_head(void *ctx, int status, const fm_http_head *h)
{
    fm__rcall *c = ctx;
    note_first_byte(c);
    const int framed = status == 200 && fm_http_head_get(h, FM_RELAY_FRAMES_HEADER) != NULL;
    if (c->streaming && !framed) {
        fm__attempt_fail(c, status, "it cannot go on with the stream");
        return;
    }
    if (is_worth_another_try(c, status) && may_try_again(c)) {
        fm__attempt_fail(c, status, "it refused the request for now");
        return;
    }
    const char *type = fm_http_head_get(h, "Content-Type");
    c->status        = status;
    c->framed        = framed;
    if (status >= 400) fm__prompt_unexpect(c, c->worker);
    if (c->streaming) return;
    fm_str_clear(&c->type);
    fm_str_clear(&c->headers);
    if (type) fm_str_puts(&c->type, type);
    fm__headers_for_client(&c->headers, h);
    const int is_short = h->content_length >= 0 || !strcmp(c->x->method, "HEAD");
    c->resumable       = framed;
    if (framed || !is_short) begin_stream(c);
}

static void on_done(void *ctx, const char *why)
{
    fm__rcall *c = ctx;
    c->fetch     = NULL;
    if (!why && c->framed && !fm_relay_reader_is_between(&c->reader))
        why = "its stream was cut off";
    if (why)
        fm__attempt_fail(c, 502, why);
    else
        finish(c);
}

/* --- the request ----------------------------------------------------------- */

static void count(fm__rcall *c, fm_worker *w, int32_t n_cached)
{
    const int64_t n = (int64_t)c->prompt.n;
    c->counted      = n > n_cached ? n - n_cached : 0;
    w->pending_tokens += c->counted;
    w->promised_tokens += c->n_output;
    w->counts.n_prompt_token += n;
    w->counts.n_hit_token += n_cached;
    w->counts.n_request++;
    w->counts.n_retry += c->n_tries > 0;
    if (!w->n_active) w->progress.heard = c->sent;
    w->n_active++;
    c->route->n_active++;
    c->n_try++;
    c->n_tries++;
    fm_breaker_begin(&w->breaker);
    fm__prompt_expect(c, w);
}

/* What the client has goes in front of the request. */
static void put_resume(fm__rcall *c, fm_worker *w, fm_str *list, fm_str *headers)
{
    char value[FM_RELAY_HEADER_ROOM];
    if (!c->streaming) return;
    fm_relay_tokens_write(list, &c->tokens);
    fm_relay_resume_write(value, &(fm_relay_resume){list->len, c->n_event});
    fm_str_printf(headers, FM_RELAY_RESUME_HEADER ": %s\r\n", value);
    c->n_resume++;
    w->counts.n_resume++;
    c->route->counts.n_resume++;
}

void fm__attempt_begin(fm__rcall *c, fm_worker *w, int32_t n_cached)
{
    const fm_route_options *o       = c->route->opt;
    fm_str                  headers = {0}, list = {0};
    c->worker = w;
    c->state  = FM__CALL_SENT;
    c->sent   = fm_now();
    count(c, w, n_cached);
    fm__responses_note(c);
    fm__headers_for_worker(&headers, c, w);
    put_resume(c, w, &list, &headers);
    const fm_fetch_ask ask = {.method          = c->x->method,
                              .target          = c->target.text,
                              .headers         = headers.text,
                              .body            = {list.text, c->body},
                              .body_len        = {list.len, c->body_len},
                              .connect_seconds = o->connect_seconds,
                              .head_seconds    = o->first_byte_seconds,
                              .idle_seconds    = o->idle_seconds,
                              .head            = on_head,
                              .data            = on_data,
                              .done            = on_done,
                              .ctx             = c};
    c->fetch               = fm_upstream_send(w->upstream, &ask);
    fm_str_fini(&headers);
    fm_str_fini(&list);
    if (!c->fetch) fm__attempt_fail(c, 503, "no connection can be made");
}
