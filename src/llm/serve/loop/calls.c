/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a call: read by a worker, admitted, answered by the engine. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/serve/loop/serve_internal.h"

static const double probe_seconds = 20;

static fm__call *find_call(const fm_serve *s, uint64_t id)
{
    return (fm__call *)fm_id_table_find(&s->by_id, id);
}

static void run_next_probe(fm_serve *s);

static void link_call(fm__call_list *list, fm__call *c)
{
    c->list = list;
    c->prev = list->last;
    c->next = NULL;
    *(list->last ? &list->last->next : &list->first) = c;
    list->last = c;
}

static void unlink_call(fm__call *c)
{
    *(c->prev ? &c->prev->next : &c->list->first) = c->next;
    *(c->next ? &c->next->prev : &c->list->last)  = c->prev;
}

static fm__call *new_call(fm_serve *s, fm__call_list *list, fm_exchange *x, const fm__dialect *d)
{
    fm__call *c = calloc(1, sizeof *c);
    FM_BUG_UNLESS(c != NULL);
    c->id          = s->next_id++;
    c->x           = x;
    c->dialect     = d;
    c->tokenizer   = s->facts.tokenizer;
    c->responses   = s->responses;
    c->began       = x->received; /* how long the upload took is the client's affair */
    c->created     = (int64_t)time(NULL);
    c->incremental = s->opt->incremental_streaming_output;
    c->load        = 1;
    x->user        = c;
    if (d)
        snprintf(c->name, sizeof c->name, "%s%08x%08x%08x%08x", d->id_prefix,
                 fm_rng_u32(s->key, c->id * 4), fm_rng_u32(s->key, c->id * 4 + 1),
                 fm_rng_u32(s->key, c->id * 4 + 2), fm_rng_u32(s->key, c->id * 4 + 3));
    link_call(list, c);
    c->by_id.key       = c->id;
    const fm_status rc = fm_id_table_add(&s->by_id, &c->by_id);
    FM_BUG_UNLESS(rc == FM_OK);
    s->load++;
    s->metrics.n_waiting++;
    return c;
}

static void free_call(fm_serve *s, fm__call *c)
{
    fm_id_table_remove(&s->by_id, &c->by_id);
    for (int i = 0; i < c->n_name; i++) fm_id_table_remove(&s->by_name, &c->name_of[i].link);
    free(c->name_of);
    unlink_call(c);
    if (c->dirty)
        for (fm__call **d = &s->dirty; *d; d = &(*d)->next_dirty)
            if (*d == c) {
                *d = c->next_dirty;
                break;
            }
    s->load -= c->load;
    if (!c->with_engine) s->metrics.n_waiting--;
    for (int i = 0; i < c->n_answer; i++) fm__answer_fini(&c->answer[i]);
    free(c->answer);
    free(c->unsent);
    fm__ask_release(c->ask);
    fm__relay_fini(&c->relay);
    free(c->feed);
    fm_str_fini(&c->out);
    fm_str_fini(&c->aborted_rids);
    free(c);
}

static void cancel_prompts(fm_serve *s, const fm__call *c)
{
    for (int i = 0; c->ask && i < c->ask->n_prompt; i++)
        fm__engine_cancel(s->engine_thread, fm__prompt_id(c->id, i));
}

void fm__call_drop(fm_serve *s, fm__call *c)
{
    const int was_probe = s->probe == c;
    if (c->with_engine && c->n_ended < c->n_answer) {
        cancel_prompts(s, c);
        s->metrics.n_aborted++;
    }
    free_call(s, c);
    if (was_probe) run_next_probe(s);
}

/* An answer before the first byte of the stream, or an event inside it. */
void fm__call_fail(fm_serve *s, fm__call *c, int status, const char *why)
{
    fm_exchange *x    = c->x;
    fm_str       body = {0};
    if (c->streaming) {
        fm_str_add(&body, c->out.text, c->out.len);
        c->dialect->late_error(&body, status, why);
        if (fm__relay_write(c, &body, 1) == FM_OK) fm_exchange_end(x);
    } else {
        if (c->dialect)
            c->dialect->error(&body, status, why);
        else
            fm__put_error_at(&body, x->path, status, why);
        fm_exchange_reply(x, status, "application/json",
                          status == 429 ? "Retry-After: 1\r\n" : NULL, body.text, body.len);
    }
    fm_str_fini(&body);
    fm__call_drop(s, c);
}

/* May `more` answers join those under way? */
static int has_room(const fm_serve *s, int others, int more)
{
    const fm__engine_state e = fm__engine_get_state(s->engine_thread);
    if (e.info.sched.n_waiting > s->opt->max_queued_requests) return 0;
    return others == 0 || (int64_t)others + more <= s->max_running + s->opt->max_queued_requests;
}

static int refuse_now(fm_serve *s, fm_exchange *x)
{
    if (s->draining) {
        fm__reply_error(x, 503, "the server is shutting down");
        return 1;
    }
    if (has_room(s, s->load, 1)) return 0;
    s->metrics.n_refused++;
    fm__reply_error(x, 429, "the queue is full; try again later");
    return 1;
}

static void give_task(fm_serve *s, fm__call *c, fm__read_fn *read, fm__text_fn *text)
{
    const char *why      = NULL;
    size_t      body_len = c->x->body_len;
    char       *body     = fm_exchange_take_body(c->x);
    if (read && !fm__relay_begin(c, body, &body_len, &why)) {
        free(body);
        fm__call_fail(s, c, 400, why);
        return;
    }
    fm__task *task = calloc(1, sizeof *task);
    FM_BUG_UNLESS(task != NULL);
    task->call     = c->id;
    task->body_len = body_len;
    task->body     = body;
    task->read     = read;
    task->text     = text;
    fm__workers_give(s->workers, task);
}

void fm__call_begin(fm_serve *s, fm_exchange *x, const fm__dialect *d)
{
    if (refuse_now(s, x)) return;
    give_task(s, new_call(s, &s->reading, x, d), d->read, NULL);
}

void fm__call_begin_text(fm_serve *s, fm_exchange *x, fm__text_fn *text)
{
    if (refuse_now(s, x)) return;
    give_task(s, new_call(s, &s->reading, x, NULL), NULL, text);
}

static void to_engine(fm_serve *s, fm__call *c)
{
    c->with_engine = 1;
    s->metrics.n_waiting--;
}

void fm__call_begin_flush(fm_serve *s, fm_exchange *x)
{
    fm__call *c = new_call(s, &s->calls, x, NULL);
    to_engine(s, c);
    fm__engine_flush(s->engine_thread, c->id);
}

void fm__call_begin_profile(fm_serve *s, fm_exchange *x, const char *file, int64_t n_step)
{
    fm__call *c = new_call(s, &s->calls, x, NULL);
    to_engine(s, c);
    fm__engine_profile(s->engine_thread, c->id, file, n_step);
}

static void submit(fm_serve *s, fm__call *c)
{
    c->n_answer = c->ask->n_prompt * c->ask->n;
    c->answer   = calloc((size_t)c->n_answer, sizeof *c->answer);
    c->unsent     = calloc((size_t)c->n_answer, sizeof *c->unsent);
    FM_BUG_UNLESS(c->answer && c->unsent);
    for (int i = 0; i < c->n_answer; i++)
        fm__answer_init(&c->answer[i], c->ask, i,
                        c->relay.is_on ? c->relay.stream.key : s->key ^ c->id << 20);
    fm__engine_submit(s->engine_thread, c->id, c->ask);
}

static void set_load(fm_serve *s, fm__call *c, int load)
{
    s->load += load - c->load;
    c->load = load;
}

static void run_probe(fm_serve *s, fm__call *c)
{
    fm__ask *a = c->ask = fm__ask_create();
    a->params           = calloc(1, sizeof *a->params);
    FM_BUG_UNLESS(a->params && fm__add_prompts(a, 1) == FM_OK);
    a->n_params                        = 1;
    a->priority                        = 1000000000;
    a->params->sampling                = fm_sampling_default();
    a->params->sampling.temperature    = 0;
    a->params->sampling.max_new_tokens = 1;
    fm_ids_add(&a->prompt[0].token, 0);
    s->probe = c;
    submit(s, c);
}

fm__call *fm__call_begin_aside(fm_serve *s, fm_exchange *x, const fm__dialect *d)
{
    fm__call *c = new_call(s, &s->asides, x, d);
    set_load(s, c, 0);
    to_engine(s, c);
    return c;
}

/* The running health probe was dropped (its client left, or its time was up): start the next. */
static void run_next_probe(fm_serve *s)
{
    fm__call *c = s->asides.first;
    while (c && !c->probe) c = c->next;
    s->probe = NULL;
    if (c) run_probe(s, c);
}

void fm__call_begin_probe(fm_serve *s, fm_exchange *x)
{
    fm__call *c = fm__call_begin_aside(s, x, &fm__dialect_generate);
    c->probe    = 1;
    if (!s->probe) run_probe(s, c);
}

void fm__probes_end(fm_serve *s, const char *why)
{
    s->probe = NULL;
    for (fm__call *c = s->asides.first, *next; c; c = next) {
        next = c->next;
        if (!c->probe) continue;
        if (why)
            fm__reply_error(c->x, 503, why);
        else
            fm_exchange_reply(c->x, 200, "text/plain", NULL, "", 0);
        fm__call_drop(s, c);
    }
}

static int status_of(fm_status why)
{
    return why == FM_E_ARG || why == FM_E_FORMAT || why == FM_E_NOSUP ? 400 : 500;
}

/* rid NULL: the whole call; otherwise the call of that id, or its prompts of that id. */
static void abort_call(fm_serve *s, fm__call *c, const char *rid)
{
    if (!rid || !strcmp(c->name, rid)) {
        cancel_prompts(s, c);
        return;
    }
    for (int i = 0; i < c->ask->n_prompt; i++) {
        const char *own = c->ask->prompt[i].rid;
        if (own && !strcmp(own, rid)) fm__engine_cancel(s->engine_thread, fm__prompt_id(c->id, i));
    }
}

/* A worker still reads it: its names are not known yet. */
static void abort_later(fm__call *c, const char *rid)
{
    if (!rid)
        c->aborted = 1;
    else if (strlen(rid) < FM__MAX_NAME)
        fm_str_add(&c->aborted_rids, rid, strlen(rid) + 1);
}

static void abort_now(fm_serve *s, fm__call *c)
{
    const fm_str *rids = &c->aborted_rids;
    if (c->aborted) abort_call(s, c, NULL);
    for (size_t at = 0; at < rids->len; at += strlen(rids->text + at) + 1)
        abort_call(s, c, rids->text + at);
}

static void add_name(fm_serve *s, fm__call *c, const char *name, int prompt)
{
    fm__call_name *n   = &c->name_of[c->n_name++];
    *n                 = (fm__call_name){{.key = fm_rng_key(name, s->key)}, c, prompt};
    const fm_status rc = fm_id_table_add(&s->by_name, &n->link);
    FM_BUG_UNLESS(rc == FM_OK);
}

/* Its own, and those of its prompts. */
static void add_names(fm_serve *s, fm__call *c)
{
    c->name_of = calloc((size_t)c->ask->n_prompt + 1, sizeof *c->name_of);
    FM_BUG_UNLESS(c->name_of != NULL);
    add_name(s, c, c->name, -1);
    for (int i = 0; i < c->ask->n_prompt; i++)
        if (c->ask->prompt[i].rid) add_name(s, c, c->ask->prompt[i].rid, i);
}

static int is_named(const fm__call_name *n, const char *name)
{
    return !strcmp(n->prompt < 0 ? n->call->name : n->call->ask->prompt[n->prompt].rid, name);
}

/* The next in the table with this name; `last` NULL: the first. */
static const fm__call_name *next_named(const fm_serve *s, const char *name,
                                       const fm__call_name *last)
{
    fm_id_link *l = last ? fm_id_table_next_alike(&last->link)
                         : fm_id_table_find(&s->by_name, fm_rng_key(name, s->key));
    while (l && !is_named((fm__call_name *)l, name)) l = fm_id_table_next_alike(l);
    return (fm__call_name *)l;
}

fm__call *fm__call_named(const fm_serve *s, const char *name, const fm__dialect *d)
{
    const fm__call_name *n = NULL;
    while ((n = next_named(s, name, n)) && (n->prompt >= 0 || n->call->dialect != d)) continue;
    return n ? n->call : NULL;
}

/* A worker is done with it. */
static void take_task(fm_serve *s, fm__task *task)
{
    fm__call *c = find_call(s, task->call);
    if (!c) return; /* the client left meanwhile */
    if (task->rc != FM_OK) {
        fm__call_fail(s, c, status_of(task->rc), task->why);
    } else if (task->ask) {
        c->ask    = task->ask;
        task->ask = NULL;
        fm__relay_name_ask(c);
        if (c->ask->rid) snprintf(c->name, sizeof c->name, "%s", c->ask->rid);
        if (c->ask->is_load)
            fm__call_send_whole(s, c); /* needs no engine */
        else if (has_room(s, s->load - c->load, c->ask->n_prompt * c->ask->n)) {
            set_load(s, c, c->ask->n_prompt * c->ask->n);
            unlink_call(c);
            link_call(&s->calls, c);
            to_engine(s, c);
            add_names(s, c);
            submit(s, c);
            abort_now(s, c);
        } else {
            s->metrics.n_refused++;
            fm__call_fail(s, c, 429, "the queue is full; try again later");
        }
    } else {
        fm__reply_json(c->x, &task->reply);
        fm__call_drop(s, c);
    }
}

static void check_feeds(fm_serve *s, double now)
{
    for (fm__call *c = s->asides.first, *next; c; c = next) {
        next = c->next;
        if (c->feed) fm__feed_check(s, c, now);
    }
}

void fm__calls_bell(void *ctx)
{
    fm_serve *s = ctx;
    for (fm__task *task; (task = fm__workers_take(s->workers));) {
        take_task(s, task);
        fm__task_destroy(task);
    }
    fm__outbox *box = &s->from_engine;
    fm__engine_take(s->engine_thread, box);
    if (box->log.len && s->hooks.batch) s->hooks.batch(s->hooks.ctx, box->log.text);
    for (int i = 0; i < box->n_notice; i++) {
        fm__call *c = find_call(s, box->notice[i].call);
        if (c) fm__call_take_notice(s, c, &box->notice[i]);
    }
    for (int i = 0; i < box->events.n; i++) {
        const fm_event ev = fm_events_get(&box->events, i);
        fm__call      *c  = find_call(s, ev.id >> FM__PROMPT_BITS);
        if (c) fm__call_take_event(s, c, &ev);
    }
    fm__calls_flush(s);
    check_feeds(s, fm_now());
}

static void abort_named(fm_serve *s, const char *rid)
{
    const fm__call_name *n = NULL;
    while ((n = next_named(s, rid, n))) abort_call(s, n->call, rid);
}

void fm__calls_abort(fm_serve *s, const char *rid)
{
    if (rid) abort_named(s, rid);
    for (fm__call *c = s->calls.first; !rid && c; c = c->next)
        if (c->dialect) abort_call(s, c, NULL);
    for (fm__call *c = s->reading.first; c; c = c->next)
        if (c->dialect) abort_later(c, rid);
}

/* Is it over the limit (0: there is none)?  If so it ends here. */
static int end_if_late(fm_serve *s, fm__call *c, double now, double limit)
{
    if (!c || limit <= 0 || now - c->began <= limit) return 0;
    fm__call_fail(s, c, 503, "the request took longer than this server allows");
    return 1;
}

/* The oldest comes first: however many wait, one that is in time ends the search. */
void fm__calls_check_time(fm_serve *s)
{
    const double now = fm_now();
    while (end_if_late(s, s->reading.first, now, s->opt->request_timeout)) continue;
    while (end_if_late(s, s->calls.first, now, s->opt->request_timeout)) continue;
    check_feeds(s, now);
    for (fm__call *c = s->asides.first, *next; c; c = next) {
        next = c->next;
        if (!c->feed) end_if_late(s, c, now, probe_seconds);
    }
}
