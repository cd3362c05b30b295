/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comm/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/watch_internal.h"
#include "comm/world.h"

fm__frame fm__watch_frame(fm__watch *w, fm__frame_kind kind, const char *text)
{
    fm__frame f = {.magic     = FM__FRAME_MAGIC,
                   .kind      = kind,
                   .rank      = w->plan.rank,
                   .waits_for = atomic_load(&w->waits_for),
                   .in_call   = atomic_load(&w->in_call),
                   .calls     = atomic_load(&w->calls)};
    pthread_mutex_lock(&w->lock);
    memcpy(f.doing, w->doing, sizeof f.doing);
    pthread_mutex_unlock(&w->lock);
    snprintf(f.text, sizeof f.text, "%s", text);
    return f;
}

/* A frame is far smaller than a socket's buffer, which only a rank that has
 * not read for minutes could fill; such a rank is lost anyway. */
int fm__frame_send(int fd, const fm__frame *f)
{
    if (fd < 0) return -1;
    const ssize_t n = send(fd, f, sizeof *f, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n == (ssize_t)sizeof *f ? 0 : -1;
}

/* --- the terminate signal -------------------------------------------------- */

static _Atomic(fm__watch *) signalled; /* the watch that the signal handler wakes */

static void wake(fm__watch *w)
{
    const ssize_t n = write(w->wake[1], "", 1);
    (void)n; /* a full pipe wakes as well */
}

static void on_terminate(int number)
{
    const int  error = errno;
    fm__watch *w     = atomic_load(&signalled);
    (void)number;
    if (w) {
        atomic_store(&w->is_terminated, 1);
        wake(w);
    }
    errno = error;
}

/* A program that handles the signal itself keeps it. */
static void take_signal(fm__watch *w)
{
    struct sigaction old, mine = {.sa_handler = on_terminate, .sa_flags = SA_RESTART};
    if (sigaction(SIGTERM, NULL, &old) || old.sa_handler != SIG_DFL) return;
    atomic_store(&signalled, w);
    w->has_signal = sigaction(SIGTERM, &mine, NULL) == 0;
}

static void give_signal_back(fm__watch *w)
{
    struct sigaction now;
    if (!w->has_signal) return;
    if (sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == on_terminate)
        signal(SIGTERM, SIG_DFL);
    atomic_store(&signalled, NULL);
    if (atomic_load(&w->is_terminated)) raise(SIGTERM);
}

/* --- life ------------------------------------------------------------------ */

fm_status fm__watch_create(fm__watch **out, const fm__watch_plan *plan)
{
    fm__watch *w = calloc(1, sizeof *w);
    if (!w) return fm_fail(FM_E_OOM, "watch");
    w->plan    = *plan;
    w->link    = calloc((size_t)plan->n_rank, sizeof *w->link);
    w->door_fd = w->wake[0] = w->wake[1] = -1;
    atomic_store(&w->waits_for, -1);
    snprintf(w->doing, sizeof w->doing, "starting");
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->count_lock, NULL);
    pthread_mutex_init(&w->ask_lock, NULL);
    pthread_cond_init(&w->answered, NULL);
    *out = w;
    if (!w->link) return fm_fail(FM_E_OOM, "watch");
    if (pipe2(w->wake, O_CLOEXEC | O_NONBLOCK))
        return fm_fail(FM_E_COMM, "pipe: %s", strerror(errno));
    return FM_OK;
}

/* The thread takes no signal: handlers of the program run where it expects. */
fm_status fm__watch_start(fm__watch *w)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&w->thread, NULL, fm__watch_loop, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) return fm_fail(FM_E_COMM, "watch thread: %s", strerror(error));
    w->is_running = 1;
    take_signal(w);
    return FM_OK;
}

static void say_goodbye(fm__watch *w)
{
    atomic_store(&w->is_closing, 1);
    wake(w);
    pthread_join(w->thread, NULL);
    const fm__frame f = fm__watch_frame(w, FM__BYE, "");
    for (int i = 0; i < w->n_link; i++) fm__frame_send(w->link[i].fd, &f);
    give_signal_back(w);
}

void fm__watch_close(fm__watch *w)
{
    if (!w) return;
    if (w->is_running) say_goodbye(w);
    for (int i = 0; i < w->n_link; i++)
        if (w->link[i].fd >= 0) close(w->link[i].fd);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] >= 0) close(w->wake[i]);
    if (w->door_fd >= 0) close(w->door_fd);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->count_lock);
    pthread_mutex_destroy(&w->ask_lock);
    pthread_cond_destroy(&w->answered);
    free(w->link);
    free(w);
}

/* --- what the rank tells its watch ----------------------------------------- */

void fm__watch_doing(fm__watch *w, const char *text)
{
    pthread_mutex_lock(&w->lock);
    snprintf(w->doing, sizeof w->doing, "%s", text);
    pthread_mutex_unlock(&w->lock);
}

void fm__watch_count(fm__watch *w)
{
    atomic_fetch_add_explicit(&w->calls, 1, memory_order_relaxed);
}

void fm__watch_waits(fm__watch *w, fm_comm_kind k, int for_rank)
{
    atomic_store_explicit(&w->in_call, (int)k, memory_order_relaxed);
    atomic_store_explicit(&w->waits_for, for_rank, memory_order_relaxed);
}

_Noreturn void fm__watch_abort(fm__watch *w, const char *text)
{
    const double until = fm_now() + 2;
    pthread_mutex_lock(&w->lock);
    snprintf(w->abort_text, sizeof w->abort_text, "%s", text[0] ? text : "gave up");
    pthread_mutex_unlock(&w->lock);
    wake(w);
    while (w->is_running && fm_now() < until) poll(NULL, 0, 100); /* the thread ends us before */
    dprintf(STDERR_FILENO, "fathom: rank %d: %s\n", w->plan.rank, text);
    _exit(FM_WORLD_EXIT);
}
