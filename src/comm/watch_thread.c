/* SPDX-License-Identifier: Apache-2.0 */
/* The watch thread: receives and sends heartbeats, and declares a rank lost after silence. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/watch_internal.h"

static const double beat_s = 0.1, nap_s = 1.0, grace_s = 0.5;

typedef struct {
    fm__watch     *w;
    struct pollfd *fds; /* [1 + n_link] the wake pipe first */
    double         last_loop, next_beat;
    double         terminated; /* when the signal came; 0: it did not */
} rounds;

static void beat(fm__watch *w)
{
    const fm__frame f = fm__watch_frame(w, FM__ALIVE, "");
    for (int i = 0; i < w->n_link; i++)
        if (!w->link[i].has_left) fm__frame_send(w->link[i].fd, &f);
}

/* A frame from the network is not trusted: its text is terminated here, and its rank is that of
 * the link. */
static void handle(fm__watch *w, fm__watched *l, fm__frame *f)
{
    f->doing[FM__DOING_BYTES - 1] = 0;
    f->rank                       = l->rank;
    if (f->kind == FM__COUNT && w->plan.rank == 0) {
        fm__watch_serve(w, l, &f->count);
        return;
    }
    if (f->kind == FM__NUMBER && w->plan.rank != 0) {
        fm__watch_answered(w, &f->count);
        return;
    }
    f->text[FM__FRAME_TEXT - 1] = 0;
    switch (f->kind) {
    case FM__ALIVE: l->last = *f; break;
    case FM__BYE: l->has_left = 1; break;
    case FM__ABORT:
        if (w->plan.rank == 0) fm__watch_gives_up(w, f);
        break;
    case FM__VERDICT: fm__watch_obeys();
    default: break;
    }
}

/* All that has arrived; a connection that ended without goodbye is a death. */
static void listen_to(fm__watch *w, fm__watched *l)
{
    for (;;) {
        const ssize_t n = recv(l->fd, (char *)&l->incoming + l->n_read,
                               sizeof l->incoming - l->n_read, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0 && l->has_left) {
            close(l->fd);
            l->fd = -1;
            return;
        }
        if (n <= 0) fm__watch_lost(w, l, "died");
        l->heard = fm_now();
        l->n_read += (size_t)n;
        if (l->n_read < sizeof l->incoming) continue;
        l->n_read = 0;
        handle(w, l, &l->incoming);
    }
}

static void check_silence(fm__watch *w, double now)
{
    for (int i = 0; i < w->n_link; i++) {
        const fm__watched *l = &w->link[i];
        char            how[64];
        if (l->has_left || now - l->heard <= w->plan.silence_s) continue;
        snprintf(how, sizeof how, "has not answered for %.1f s", now - l->heard);
        fm__watch_lost(w, l, how);
    }
}

/* This process itself did not run, perhaps with the whole job (a debugger, a
 * suspended machine): it could not receive heartbeats, so silence means nothing. */
static void forgive_own_nap(rounds *r, double now)
{
    if (now - r->last_loop > nap_s)
        for (int i = 0; i < r->w->n_link; i++) r->w->link[i].heard = now;
    r->last_loop = now;
}

/* Rank 0 judges at once; its verdict comes back to the others. */
static void give_up(fm__watch *w, const char *why)
{
    const fm__frame f = fm__watch_frame(w, FM__ABORT, why);
    if (w->plan.rank == 0) fm__watch_gives_up(w, &f);
    fm__frame_send(w->link[0].fd, &f);
}

static void check_abort(fm__watch *w)
{
    char why[FM__FRAME_TEXT];
    pthread_mutex_lock(&w->lock);
    memcpy(why, w->abort_text, sizeof why);
    w->abort_text[0] = 0;
    pthread_mutex_unlock(&w->lock);
    if (why[0]) give_up(w, why);
}

/* A launcher that lost one rank sends the others a signal: the line about the
 * lost one comes first.  If there is none, the signal is reported. */
static void check_signal(rounds *r, double now)
{
    if (!atomic_load(&r->w->is_terminated)) return;
    if (r->terminated == 0) r->terminated = now;
    if (now - r->terminated < grace_s) return;
    give_up(r->w, "told to terminate");
    r->terminated = now; /* rank 0 has not answered: once more */
}

static void sleep_until_news(rounds *r)
{
    fm__watch *w = r->w;
    r->fds[0]    = (struct pollfd){.fd = w->wake[0], .events = POLLIN};
    for (int i = 0; i < w->n_link; i++)
        r->fds[i + 1] = (struct pollfd){.fd = w->link[i].fd, .events = POLLIN};
    const double left = r->next_beat - fm_now();
    poll(r->fds, (nfds_t)(1 + w->n_link), left > 0 ? (int)(1e3 * left) + 1 : 0);
    char drained[64];
    if (r->fds[0].revents && read(w->wake[0], drained, sizeof drained) < 0) r->fds[0].revents = 0;
}

void *fm__watch_loop(void *watch)
{
    fm__watch    *w = watch;
    struct pollfd fds[1 + w->plan.n_rank];
    rounds        r = {.w = w, .fds = fds, .last_loop = fm_now()};
    while (!atomic_load(&w->is_closing)) {
        sleep_until_news(&r);
        const double now = fm_now();
        forgive_own_nap(&r, now);
        for (int i = 0; i < w->n_link; i++)
            if (w->link[i].fd >= 0 && fds[i + 1].revents) listen_to(w, &w->link[i]);
        check_abort(w);
        check_silence(w, now);
        check_signal(&r, now);
        if (now < r.next_beat) continue;
        beat(w);
        r.next_beat = now + beat_s;
    }
    return NULL;
}
