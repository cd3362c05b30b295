/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/engine_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/host_threads.h"
#include "llm/serve/batch_log.h"
#include "llm/text/detokenize.h"

typedef enum { SUBMIT, CANCEL, FLUSH } message_kind;

typedef struct message {
    message_kind    kind;
    uint64_t        call;
    fm__ask        *ask;
    int             prompt; /* CANCEL: which one; -1: all */
    struct message *next;
} message;

/* A prompt inside the engine, found again by the engine's id. */
typedef struct job {
    uint64_t    id, call;
    int         prompt, n_left; /* answers not ended */
    struct job *next;
} job;

enum { N_BUCKET = 4096 };

struct fm__engine_thread {
    fm_engine     *engine;
    fm_loop_event *bell;
    pthread_t      thread;
    job           *bucket[N_BUCKET]; /* the engine thread's own */
    fm__batch_log  batch_log;        /* likewise */

    pthread_mutex_t inbox_lock;
    pthread_cond_t  inbox_filled;
    message        *first, **last;
    int             stopping;

    pthread_mutex_t  outbox_lock;
    fm__events       outbox;
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
    put(t, (message){.kind = SUBMIT, .call = call, .ask = a});
}

void fm__engine_cancel(fm__engine_thread *t, uint64_t call, int prompt)
{
    put(t, (message){.kind = CANCEL, .call = call, .prompt = prompt});
}

void fm__engine_flush(fm__engine_thread *t, uint64_t call)
{
    put(t, (message){.kind = FLUSH, .call = call});
}

static fm__event *new_event(fm__events *ev)
{
    if (ev->n == ev->cap) {
        ev->cap   = ev->cap ? 2 * ev->cap : 256;
        ev->event = realloc(ev->event, ev->cap * sizeof *ev->event);
        FM_BUG_UNLESS(ev->event != NULL);
    }
    ev->event[ev->n] =
        (fm__event){.token = -1, .prompt_at = -1, .matched_id = -1, .matched_stop = -1,
                    .when = fm_now()};
    return &ev->event[ev->n++];
}

static void add_top(fm__events *ev, fm__event *at, const fm_top_logprob *top, int n)
{
    if (ev->n_top + (size_t)n > ev->cap_top) {
        ev->cap_top = 2 * (ev->n_top + (size_t)n);
        ev->top     = realloc(ev->top, ev->cap_top * sizeof *ev->top);
        FM_BUG_UNLESS(ev->top != NULL);
    }
    memcpy(ev->top + ev->n_top, top, (size_t)n * sizeof *top);
    at->top_at = ev->n_top;
    at->n_top  = n;
    ev->n_top += (size_t)n;
}

static job **find_job(fm__engine_thread *t, uint64_t id)
{
    job **at = &t->bucket[id % N_BUCKET];
    while (*at && (*at)->id != id) at = &(*at)->next;
    return at;
}

/* An event that is not the engine's own: a refusal, or the end of a flush. */
static void post_words(fm__engine_thread *t, uint64_t call, int prompt, fm_status why,
                       const char *words)
{
    pthread_mutex_lock(&t->outbox_lock);
    fm__event *ev = new_event(&t->outbox);
    ev->call      = call;
    ev->prompt    = prompt;
    ev->failed    = why;
    ev->text_at   = t->outbox.text.len;
    ev->text_len  = strlen(words);
    fm_str_puts(&t->outbox.text, words);
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
                            .grammar         = q->grammar,
                            .grammar_after   = a->thinks ? "</think>" : NULL,
                            .prompt_logprobs = a->prompt[i].logprob_from >= 0,
                            .logprob_from    = a->prompt[i].logprob_from};
    uint64_t          id = 0;
    const fm_status   rc = fm_engine_submit(t->engine, &p, &id);
    if (rc != FM_OK) {
        post_words(t, call, i, rc, fm_why());
        return;
    }
    job *j = calloc(1, sizeof *j);
    FM_BUG_UNLESS(j != NULL);
    *j = (job){
        .id = id, .call = call, .prompt = i, .n_left = a->n, .next = t->bucket[id % N_BUCKET]};
    t->bucket[id % N_BUCKET] = j;
}

static void cancel_call(fm__engine_thread *t, uint64_t call, int prompt)
{
    for (int b = 0; b < N_BUCKET; b++)
        for (job *j = t->bucket[b]; j; j = j->next)
            if (j->call == call && (prompt < 0 || j->prompt == prompt))
                fm_engine_cancel(t->engine, j->id);
}

static void flush_cache(fm__engine_thread *t, uint64_t call)
{
    const int busy = fm_engine_busy(t->engine);
    if (!busy) fm_engine_flush_cache(t->engine);
    post_words(t, call, 0, busy ? FM_E_FULL : FM_OK,
               busy ? "requests are running or waiting" : "Cache flushed.");
}

static void obey(fm__engine_thread *t, const message *m)
{
    switch (m->kind) {
    case SUBMIT:
        for (int i = 0; i < m->ask->n_prompt; i++) submit_prompt(t, m->call, m->ask, i);
        fm__ask_release(m->ask);
        break;
    case CANCEL: cancel_call(t, m->call, m->prompt); break;
    case FLUSH: flush_cache(t, m->call); break;
    }
}

/* Everything that runs ends with the same sentence. */
static void fail_all(fm__engine_thread *t, fm_status why, const char *words)
{
    FM_WARN("serve", "a step failed: %s", words);
    for (int b = 0; b < N_BUCKET; b++)
        for (job *j = t->bucket[b]; j; j = j->next) {
            post_words(t, j->call, j->prompt, why, words);
            fm_engine_cancel(t->engine, j->id);
        }
}

static void copy_event(fm__engine_thread *t, const fm_event *in, const job *j)
{
    fm__events *box = &t->outbox;
    fm__event  *ev  = new_event(box);
    ev->call        = j->call;
    ev->prompt      = j->prompt;
    ev->index       = in->index;
    ev->token       = in->token;
    ev->text_at     = box->text.len;
    ev->text_len    = in->text_len;
    fm_str_add(&box->text, in->text, in->text_len);
    ev->logprob   = in->logprob;
    ev->prompt_at = in->prompt_at;
    if (in->n_top) add_top(box, ev, in->top, in->n_top);
    ev->finish       = in->finish;
    ev->matched_id   = in->matched_id;
    ev->matched_stop = in->matched_stop;
    ev->n_prompt     = in->n_prompt;
    ev->n_output     = in->n_output;
    ev->n_cached     = in->n_cached;
    ev->queue_seconds = in->queue_seconds;
}

static void collect(fm__engine_thread *t)
{
    fm_event in;
    pthread_mutex_lock(&t->outbox_lock);
    while (fm_engine_poll(t->engine, &in)) {
        job **at = find_job(t, in.id), *j = *at;
        FM_BUG_UNLESS(j != NULL);
        copy_event(t, &in, j);
        if (in.finish == FM_FINISH_NONE || --j->n_left) continue;
        *at = j->next;
        free(j);
    }
    t->state.info      = fm_engine_get_info(t->engine);
    t->state.last_step = fm_now();
    fm__batch_log_step(&t->batch_log, &t->state.info, t->state.last_step, &t->outbox.log);
    const int any = t->outbox.n > 0 || t->outbox.log.len > 0;
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
        if (rc != FM_OK) fail_all(t, rc, fm_why());
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
    for (int b = 0; b < N_BUCKET; b++)
        for (job *j = t->bucket[b], *next; j; j = next) {
            next = j->next;
            fm_engine_cancel(t->engine, j->id);
            free(j);
        }
    fm_event ev;
    while (fm_engine_poll(t->engine, &ev)) continue;
    fm__events_fini(&t->outbox);
    pthread_mutex_destroy(&t->inbox_lock);
    pthread_mutex_destroy(&t->outbox_lock);
    pthread_cond_destroy(&t->inbox_filled);
    free(t);
}

void fm__engine_take(fm__engine_thread *t, fm__events *ev)
{
    ev->n = ev->n_top = 0;
    fm_str_clear(&ev->text);
    fm_str_clear(&ev->log);
    pthread_mutex_lock(&t->outbox_lock);
    const fm__events full = t->outbox;
    t->outbox             = *ev;
    pthread_mutex_unlock(&t->outbox_lock);
    *ev = full;
}

void fm__events_fini(fm__events *ev)
{
    free(ev->event);
    free(ev->top);
    fm_str_fini(&ev->text);
    fm_str_fini(&ev->log);
    *ev = (fm__events){0};
}

fm__engine_state fm__engine_get_state(fm__engine_thread *t)
{
    pthread_mutex_lock(&t->outbox_lock);
    const fm__engine_state s = t->state;
    pthread_mutex_unlock(&t->outbox_lock);
    return s;
}
