/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/loop/engine_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/host_threads.h"
#include "llm/kv/page_feed.h"
#include "llm/relay/stream.h"
#include "llm/serve/loop/batch_log.h"
#include "llm/text/detokenize.h"

typedef enum { SUBMIT, CANCEL, FLUSH, PROFILE } message_kind;

typedef struct message {
    message_kind    kind;
    uint64_t        id; /* of the call; CANCEL: of the prompt */
    fm__ask        *ask;
    char           *file;   /* PROFILE: owned; NULL: it ends */
    int64_t         n_step; /* PROFILE: after which it ends by itself */
    struct message *next;
} message;

struct fm__engine_thread {
    fm_engine     *engine;
    fm_loop_event *bell;
    pthread_t      thread;
    fm__batch_log  batch_log; /* the engine thread's own */
    fm_events      events;    /* the same: of the last step */
    int64_t        n_profiled; /* steps that are still recorded; 0: no end is set */
    uint64_t       fed;        /* the eviction in the cache feed that the bell was last rung for */

    pthread_mutex_t inbox_lock;
    pthread_cond_t  inbox_filled;
    message        *first, **last;
    int             stopping;

    pthread_mutex_t  outbox_lock;
    fm__outbox       outbox;
    fm__engine_state state;
};

static void put(fm__engine_thread *t, message what)
{
    message *m = calloc(1, sizeof *m);
    FM_BUG_UNLESS(m != NULL);
    *m = what;
    pthread_mutex_lock(&t->inbox_lock);
    *t->last = m;
    t->last  = &m->next;
    pthread_cond_signal(&t->inbox_filled);
    pthread_mutex_unlock(&t->inbox_lock);
}

void fm__engine_submit(fm__engine_thread *t, uint64_t call, fm__ask *a)
{
    fm__ask_retain(a);
    put(t, (message){.kind = SUBMIT, .id = call, .ask = a});
}

void fm__engine_cancel(fm__engine_thread *t, uint64_t id)
{
    put(t, (message){.kind = CANCEL, .id = id});
}

void fm__engine_flush(fm__engine_thread *t, uint64_t call)
{
    put(t, (message){.kind = FLUSH, .id = call});
}

void fm__engine_profile(fm__engine_thread *t, uint64_t call, const char *file, int64_t n_step)
{
    char *copy = file ? strdup(file) : NULL;
    FM_BUG_UNLESS(!file || copy);
    put(t, (message){.kind = PROFILE, .id = call, .file = copy, .n_step = n_step});
}

static void post_notice(fm__engine_thread *t, uint64_t call, fm_status status, const char *words)
{
    fm__outbox *box = &t->outbox;
    pthread_mutex_lock(&t->outbox_lock);
    if (box->n_notice == box->cap_notice) {
        box->cap_notice = box->cap_notice ? 2 * box->cap_notice : 16;
        box->notice     = realloc(box->notice, (size_t)box->cap_notice * sizeof *box->notice);
        FM_BUG_UNLESS(box->notice != NULL);
    }
    box->notice[box->n_notice++] = (fm__notice){call, status, box->words.len};
    fm_str_add(&box->words, words, strlen(words) + 1);
    pthread_mutex_unlock(&t->outbox_lock);
}

/* Reasoning tags are special tokens in some tokenizers: keep them where reasoning is parsed. */
static fm_special shown_special(const fm__ask *a, const fm__params *q)
{
    if (q->keep_special) return FM_SPECIAL_ALL;
    return a->reasoning == FM_REASONING_OFF ? FM_SPECIAL_NONE : FM_SPECIAL_TAGS;
}

/* Log-probabilities of tokens that were sent before are not known here: such an answer is
 * generated again from its beginning, and the loop leaves out what the client has. */
static fm_status submit_or_resume(fm_engine *e, const fm_prompt *p, const fm__ask *a, int i)
{
    fm_begun begun[128] = {{0}};
    if (!fm_relay_tokens_total(&a->begun) || p->sampling.logprobs)
        return fm_engine_submit(e, p, NULL);
    FM_BUG_UNLESS(a->n <= 128);
    for (int k = 0; k < a->n; k++) {
        const int slot = i * a->n + k;
        if (slot < a->begun.n)
            begun[k] = (fm_begun){a->begun.answer[slot].id, (int32_t)a->begun.answer[slot].n};
    }
    return fm_engine_resume(e, p, begun, NULL);
}

static void submit_prompt(fm__engine_thread *t, uint64_t call, const fm__ask *a, int i)
{
    const fm__params *q  = fm__ask_params(a, i);
    fm_prompt         p  = {.token        = a->prompt[i].token.id,
                            .n_token      = (int32_t)a->prompt[i].token.n,
                            .sampling     = q->sampling,
                            .stop         = (const char *const *)q->stop,
                            .n_stop       = q->n_stop,
                            .keep_stop    = q->keep_stop,
                            .keep_special = shown_special(a, q),
                            .n            = a->n,
                            .priority     = a->priority,
                            .id           = fm__prompt_id(call, i),
                            .grammar         = q->grammar,
                            .grammar_after   = a->thinks ? "</think>" : NULL,
                            .prompt_logprobs = a->prompt[i].logprob_from >= 0,
                            .logprob_from    = a->prompt[i].logprob_from};
    if (a->has_key && !p.sampling.has_seed) {
        p.sampling.has_seed = 1;
        p.sampling.seed     = fm_relay_seed(a->key, i);
    }
    const fm_status rc = submit_or_resume(t->engine, &p, a, i);
    if (rc != FM_OK) post_notice(t, call, rc, fm_why());
}

static void flush_cache(fm__engine_thread *t, uint64_t call)
{
    const int busy = fm_engine_busy(t->engine);
    if (!busy) fm_engine_flush_cache(t->engine);
    post_notice(t, call, busy ? FM_E_FULL : FM_OK,
                busy ? "the cache is not flushed while requests are running or waiting" : "Cache flushed.");
}

static void profile(fm__engine_thread *t, const message *m)
{
    const fm_status rc = m->file ? fm_engine_trace_begin(t->engine, m->file, 0) : fm_engine_trace_end(t->engine);
    char            words[1200];
    if (rc == FM_OK) t->n_profiled = m->n_step;
    snprintf(words, sizeof words, m->file ? "Start profiling.\n%s\n" : "Stop profiling.\n", m->file);
    post_notice(t, m->id, rc, rc == FM_OK ? words : fm_why());
}

/* One step less to record. */
static void count_profiled(fm__engine_thread *t)
{
    if (t->n_profiled && !--t->n_profiled && fm_engine_trace_end(t->engine) != FM_OK)
        FM_WARN("serve", "the profile did not end: %s", fm_why());
}

static void obey(fm__engine_thread *t, const message *m)
{
    switch (m->kind) {
    case SUBMIT:
        for (int i = 0; i < m->ask->n_prompt; i++) submit_prompt(t, m->id, m->ask, i);
        fm__ask_release(m->ask);
        break;
    case CANCEL: fm_engine_cancel(t->engine, m->id); break;
    case FLUSH: flush_cache(t, m->id); break;
    case PROFILE: profile(t, m); break;
    }
}

/* A step failed: every call that has answers to come ends with the same sentence. */
static void fail_all(fm__engine_thread *t, fm_status why)
{
    char words[512];
    snprintf(words, sizeof words, "%s", fm_why());
    FM_WARN("serve", "a step failed: %s", words);
    fm_engine_cancel_all(t->engine);
    fm_engine_take_events(t->engine, &t->events);
    for (int i = 0; i < t->events.n; i++)
        post_notice(t, fm_events_get(&t->events, i).id >> FM__PROMPT_BITS, why, words);
    fm_events_clear(&t->events);
}

/* Pages left the cache: readers of the feed are told after the step that did it. */
static int has_evicted(fm__engine_thread *t)
{
    const uint64_t before = t->fed;
    t->fed                = fm_page_feed_get_state(fm_engine_page_feed(t->engine)).evicted;
    return t->fed != before;
}

static void collect(fm__engine_thread *t)
{
    const int evicted = has_evicted(t);
    fm_engine_take_events(t->engine, &t->events);
    pthread_mutex_lock(&t->outbox_lock);
    fm_events_move(&t->outbox.events, &t->events);
    const fm_engine_info before = t->state.info;
    t->state.info               = fm_engine_get_info(t->engine);
    fm__rates_add(&t->state.rates, t->state.info.sched.n_prefill_row - before.sched.n_prefill_row,
                  t->state.info.sched.n_decode_row - before.sched.n_decode_row,
                  t->state.info.forward_seconds - before.forward_seconds);
    t->state.last_step = fm_now();
    fm__batch_log_step(&t->batch_log, &t->state.info, t->state.last_step, &t->outbox.log);
    const int any = evicted || t->outbox.events.n || t->outbox.n_notice || t->outbox.log.len;
    pthread_mutex_unlock(&t->outbox_lock);
    if (any) fm_loop_ring(t->bell);
}

/* 1: there is a message, or it is to stop. */
static int wait_message(fm__engine_thread *t, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const double ns = (double)until.tv_nsec + 1e9 * seconds;
    until.tv_sec += (time_t)(ns * 1e-9);
    until.tv_nsec = (long)ns % 1000000000;
    pthread_mutex_lock(&t->inbox_lock);
    if (!t->first && !t->stopping && seconds > 0)
        pthread_cond_timedwait(&t->inbox_filled, &t->inbox_lock, &until);
    const int any = t->first || t->stopping;
    pthread_mutex_unlock(&t->inbox_lock);
    return any;
}

/* With nothing to run, pages go to their files; a message ends that. */
static void save_pages(fm__engine_thread *t)
{
    static const double moment = 0.002;
    int                 more = 1, n = 0;
    while (more && !wait_message(t, n ? moment : 0)) {
        if (fm_engine_save(t->engine, &more) != FM_OK) FM_WARN("serve", "pages are not saved: %s", fm_why());
        n += more;
    }
    if (n) collect(t);
}

/* Waits while there is nothing to do; 0: stop. */
static int drain_inbox(fm__engine_thread *t)
{
    const int busy = fm_engine_busy(t->engine);
    if (!busy) save_pages(t);
    pthread_mutex_lock(&t->inbox_lock);
    while (!t->first && !busy && !t->stopping) pthread_cond_wait(&t->inbox_filled, &t->inbox_lock);
    message  *m        = t->first;
    const int stopping = t->stopping;
    t->first           = NULL;
    t->last            = &t->first;
    pthread_mutex_unlock(&t->inbox_lock);
    for (message *next; m; m = next) {
        next = m->next;
        obey(t, m);
        free(m->file);
        free(m);
    }
    return !stopping;
}

static void *run(void *arg)
{
    fm__engine_thread *t = arg;
    while (drain_inbox(t)) {
        const int       busy = fm_engine_busy(t->engine);
        const fm_status rc   = busy ? fm_engine_step(t->engine) : FM_OK;
        if (rc != FM_OK) fail_all(t, rc);
        else if (busy) count_profiled(t);
        collect(t);
    }
    return NULL;
}

fm_status fm__engine_start(fm__engine_thread **out, fm_engine *e, fm_loop_event *bell,
                           int log_interval)
{
    fm__engine_thread *t = calloc(1, sizeof *t);
    if (!t) return fm_fail(FM_E_OOM, "engine thread");
    t->engine = e;
    t->bell   = bell;
    t->last   = &t->first;
    pthread_mutex_init(&t->inbox_lock, NULL);
    pthread_mutex_init(&t->outbox_lock, NULL);
    pthread_cond_init(&t->inbox_filled, NULL);
    t->state.info      = fm_engine_get_info(e);
    t->state.last_step = fm_now();
    fm__batch_log_begin(&t->batch_log, log_interval, &t->state.info, t->state.last_step);
    fm_threads_dismiss(); /* the team that loaded: steps have that of their own thread */
    if (pthread_create(&t->thread, NULL, run, t) != 0) {
        free(t);
        return fm_fail(FM_E_OOM, "engine thread");
    }
    *out = t;
    return FM_OK;
}

void fm__engine_stop(fm__engine_thread *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->inbox_lock);
    t->stopping = 1;
    pthread_cond_signal(&t->inbox_filled);
    pthread_mutex_unlock(&t->inbox_lock);
    pthread_join(t->thread, NULL);
    fm_engine_cancel_all(t->engine);
    fm_engine_take_events(t->engine, &t->events);
    fm_events_fini(&t->events);
    fm__outbox_fini(&t->outbox);
    pthread_mutex_destroy(&t->inbox_lock);
    pthread_mutex_destroy(&t->outbox_lock);
    pthread_cond_destroy(&t->inbox_filled);
    free(t);
}

void fm__engine_take(fm__engine_thread *t, fm__outbox *box)
{
    fm_events_clear(&box->events);
    box->n_notice = 0;
    fm_str_clear(&box->words);
    fm_str_clear(&box->log);
    pthread_mutex_lock(&t->outbox_lock);
    const fm__outbox full = t->outbox;
    t->outbox             = *box;
    pthread_mutex_unlock(&t->outbox_lock);
    *box = full;
}

void fm__outbox_fini(fm__outbox *box)
{
    fm_events_fini(&box->events);
    free(box->notice);
    fm_str_fini(&box->words);
    fm_str_fini(&box->log);
    *box = (fm__outbox){0};
}

fm__engine_state fm__engine_get_state(fm__engine_thread *t)
{
    pthread_mutex_lock(&t->outbox_lock);
    const fm__engine_state s = t->state;
    pthread_mutex_unlock(&t->outbox_lock);
    return s;
}
