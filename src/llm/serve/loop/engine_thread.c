/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/loop/engine_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/host_threads.h"
#include "llm/serve/loop/batch_log.h"
#include "llm/text/detokenize.h"

typedef enum { SUBMIT, CANCEL, FLUSH } message_kind;

typedef struct message {
    message_kind    kind;
    uint64_t        id; /* of the call; CANCEL: of the prompt */
    fm__ask        *ask;
    struct message *next;
} message;

struct fm__engine_thread {
    fm_engine     *engine;
    fm_loop_event *bell;
    pthread_t      thread;
    fm__batch_log  batch_log; /* the engine thread's own */
    fm_events      events;    /* the same: of the last step */

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

/* Some tokenizers call the tags of reasoning special; who separates it must see them. */
static fm_special shown_special(const fm__ask *a, const fm__params *q)
{
    if (q->keep_special) return FM_SPECIAL_ALL;
    return a->reasoning == FM_REASONING_OFF ? FM_SPECIAL_NONE : FM_SPECIAL_TAGS;
}

static void submit_prompt(fm__engine_thread *t, uint64_t call, const fm__ask *a, int i)
{
    const fm__params *q  = fm__ask_params(a, i);
    const fm_prompt   p  = {.token        = a->prompt[i].token.id,
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
    const fm_status   rc = fm_engine_submit(t->engine, &p, NULL);
    if (rc != FM_OK) post_notice(t, call, rc, fm_why());
}

static void flush_cache(fm__engine_thread *t, uint64_t call)
{
    const int busy = fm_engine_busy(t->engine);
    if (!busy) fm_engine_flush_cache(t->engine);
    post_notice(t, call, busy ? FM_E_FULL : FM_OK,
                busy ? "requests are running or waiting" : "Cache flushed.");
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

static void collect(fm__engine_thread *t)
{
    fm_engine_take_events(t->engine, &t->events);
    pthread_mutex_lock(&t->outbox_lock);
    fm_events_move(&t->outbox.events, &t->events);
    t->state.info      = fm_engine_get_info(t->engine);
    t->state.last_step = fm_now();
    fm__batch_log_step(&t->batch_log, &t->state.info, t->state.last_step, &t->outbox.log);
    const int any = t->outbox.events.n || t->outbox.n_notice || t->outbox.log.len;
    pthread_mutex_unlock(&t->outbox_lock);
    if (any) fm_loop_ring(t->bell);
}

/* Waits while there is nothing to do; 0: stop. */
static int drain_inbox(fm__engine_thread *t)
{
    const int busy = fm_engine_busy(t->engine);
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
        free(m);
    }
    return !stopping;
}

static void *run(void *arg)
{
    fm__engine_thread *t = arg;
    while (drain_inbox(t)) {
        const fm_status rc = fm_engine_busy(t->engine) ? fm_engine_step(t->engine) : FM_OK;
        if (rc != FM_OK) fail_all(t, rc);
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
