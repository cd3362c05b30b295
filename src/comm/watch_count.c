/* SPDX-License-Identifier: Apache-2.0 */
/* Shared counters of groups that span hosts: rank 0's watch thread keeps them
 * and answers over the connections of the watch. */
#define _GNU_SOURCE
#include <time.h>

#include "comm/counter_internal.h"
#include "comm/watch_internal.h"

/* --- rank 0 ---------------------------------------------------------------- */

static fm__served *find(fm__watch *w, uint64_t key)
{
    for (int i = 0; i < w->n_served; i++)
        if (w->served[i].key == key) return &w->served[i];
    if (w->n_served == FM__SERVED_MAX) return NULL;
    fm__served *s = &w->served[w->n_served++];
    s->key        = key;
    return s;
}

/* A table that is full gives no numbers: the asker's time runs out. */
static int take(fm__watch *w, uint64_t key, uint64_t round, uint64_t *number)
{
    pthread_mutex_lock(&w->count_lock);
    fm__served *s = find(w, key);
    pthread_mutex_unlock(&w->count_lock);
    if (s) *number = fm__counter_take(&s->word, round);
    return s != NULL;
}

void fm__watch_serve(fm__watch *w, fm__watched *l, const fm__count *request)
{
    fm__frame f = fm__watch_frame(w, FM__NUMBER, "");
    f.count     = *request;
    if (take(w, request->key, request->round, &f.count.number)) fm__frame_send(l->fd, &f);
}

/* --- the others ------------------------------------------------------------ */

void fm__watch_answered(fm__watch *w, const fm__count *answer)
{
    pthread_mutex_lock(&w->count_lock);
    w->answer = *answer;
    pthread_cond_signal(&w->answered);
    pthread_mutex_unlock(&w->count_lock);
}

/* A lost rank 0 ends this process from the watch thread; the limit is for one
 * that lives and does not answer. */
static int await(fm__watch *w, uint64_t ticket, double timeout_s, uint64_t *number)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)timeout_s + 1;
    int late = 0;
    pthread_mutex_lock(&w->count_lock);
    while (w->answer.ticket != ticket && !late)
        late = pthread_cond_timedwait(&w->answered, &w->count_lock, &until) != 0;
    *number = w->answer.number;
    pthread_mutex_unlock(&w->count_lock);
    return !late;
}

static fm_status ask(fm__watch *w, fm__frame *f, double timeout_s, uint64_t *number)
{
    f->count.ticket = ++w->n_ticket;
    if (fm__frame_send(w->link[0].fd, f))
        return fm_fail(FM_E_COMM, "shared counter: rank 0 on %s cannot be asked",
                       w->plan.host(w->plan.of, 0));
    if (!await(w, f->count.ticket, timeout_s, number))
        return fm_fail(FM_E_COMM, "shared counter: no answer from rank 0 on %s for %.0f s",
                       w->plan.host(w->plan.of, 0), timeout_s);
    return FM_OK;
}

fm_status fm__watch_number(fm__watch *w, uint64_t key, uint64_t round, double timeout_s,
                           uint64_t *number)
{
    if (w->plan.rank == 0)
        return take(w, key, round, number)
                   ? FM_OK
                   : fm_fail(FM_E_FULL, "%d shared counters are open", FM__SERVED_MAX);
    fm__frame f = fm__watch_frame(w, FM__COUNT, "");
    f.count     = (fm__count){.key = key, .round = round};
    pthread_mutex_lock(&w->ask_lock);
    const fm_status rc = ask(w, &f, timeout_s, number);
    pthread_mutex_unlock(&w->ask_lock);
    return rc;
}
