/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/loop/workers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    fm__task *first, **last;
} queue;

struct fm__workers {
    const fm__facts *facts;
    fm_loop_event   *bell;
    pthread_t       *thread;
    int              n_thread, stopping;
    pthread_mutex_t  lock;
    pthread_cond_t   filled;
    queue            todo, done;
};

static void enqueue(queue *q, fm__task *task)
{
    task->next = NULL;
    *q->last   = task;
    q->last    = &task->next;
}

static fm__task *dequeue(queue *q)
{
    fm__task *task = q->first;
    if (!task) return NULL;
    q->first = task->next;
    if (!q->first) q->last = &q->first;
    return task;
}

void fm__task_destroy(fm__task *task)
{
    if (!task) return;
    fm__ask_release(task->ask);
    fm_str_fini(&task->reply);
    free(task->body);
    free(task);
}

static fm_status do_task(fm__task *task, const fm__reader *r)
{
    json_t *body = NULL;
    FM_TRY(fm_json_parse(&body, task->body ? task->body : "", task->body_len, "request"));
    fm_status rc =
        json_is_object(body)
            ? FM_OK
            : fm_fail(FM_E_FORMAT, "request: expected a JSON object, found %s", fm_json_kind(body));
    if (rc == FM_OK && task->read) {
        task->ask = fm__ask_create();
        rc        = task->read(task->ask, body, r);
    } else if (rc == FM_OK) {
        rc = task->text(&task->reply, body, r);
    }
    json_decref(body);
    return rc;
}

static void *work(void *arg)
{
    fm__workers *w = arg;
    fm__reader   r = {.facts = w->facts};
    if (w->facts->tokenizer)
        FM_BUG_UNLESS(fm_tokenizer_scratch_create(&r.scratch, w->facts->tokenizer) == FM_OK);
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        fm__task *task = dequeue(&w->todo);
        if (!task) {
            pthread_cond_wait(&w->filled, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        task->rc = do_task(task, &r);
        if (task->rc != FM_OK) snprintf(task->why, sizeof task->why, "%s", fm_why());
        pthread_mutex_lock(&w->lock);
        enqueue(&w->done, task);
        fm_loop_ring(w->bell);
    }
    pthread_mutex_unlock(&w->lock);
    fm_tokenizer_scratch_destroy(r.scratch);
    return NULL;
}

fm_status fm__workers_start(fm__workers **out, int n, const fm__facts *facts, fm_loop_event *bell)
{
    fm__workers *w = calloc(1, sizeof *w);
    if (w) w->thread = calloc((size_t)n, sizeof *w->thread);
    if (!w || !w->thread) {
        free(w);
        return fm_fail(FM_E_OOM, "workers");
    }
    w->facts     = facts;
    w->bell      = bell;
    w->todo.last = &w->todo.first;
    w->done.last = &w->done.first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->filled, NULL);
    while (w->n_thread < n && pthread_create(&w->thread[w->n_thread], NULL, work, w) == 0)
        w->n_thread++;
    if (w->n_thread < n) {
        fm__workers_stop(w);
        return fm_fail(FM_E_OOM, "workers: no more threads");
    }
    *out = w;
    return FM_OK;
}

void fm__workers_stop(fm__workers *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stopping = 1;
    pthread_cond_broadcast(&w->filled);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n_thread; i++) pthread_join(w->thread[i], NULL);
    for (fm__task *task; (task = dequeue(&w->todo));) fm__task_destroy(task);
    for (fm__task *task; (task = dequeue(&w->done));) fm__task_destroy(task);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->filled);
    free(w->thread);
    free(w);
}

void fm__workers_give(fm__workers *w, fm__task *task)
{
    pthread_mutex_lock(&w->lock);
    enqueue(&w->todo, task);
    pthread_cond_signal(&w->filled);
    pthread_mutex_unlock(&w->lock);
}

fm__task *fm__workers_take(fm__workers *w)
{
    pthread_mutex_lock(&w->lock);
    fm__task *task = dequeue(&w->done);
    pthread_mutex_unlock(&w->lock);
    return task;
}
