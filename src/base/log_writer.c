/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes log lines.
 *
 *     callers ──> filling ──swap──> writing ──write(2)──> stderr
 *
 * Two buffers of a fixed size: callers append to one under a lock held for a copy,
 * the thread writes the other and may block in write(2) for as long as it likes. */
#define _POSIX_C_SOURCE 200809L
#include "base/log_writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum { CAPACITY = 128 << 10, STOP_MS = 1000 };

typedef enum {
    DIRECT, /* callers write */
    THREAD, /* the thread does */
    ENDING, /* and stops when all is written */
    STALLED /* write(2) has not returned: no thread writes any more */
} mode;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  filled, ended;
    mode            mode;
    char            buffer[2][CAPACITY];
    int             filling;           /* which of the two */
    size_t          len;               /* of that one */
    int64_t         n_dropped, n_told; /* lines, and how many of them were reported */
} out = {.lock   = PTHREAD_MUTEX_INITIALIZER,
         .filled = PTHREAD_COND_INITIALIZER,
         .ended  = PTHREAD_COND_INITIALIZER};

static int64_t count_lines(const char *text, size_t len)
{
    int64_t n = 0;
    for (const char *at = text; (at = memchr(at, '\n', len - (size_t)(at - text))); at++) n++;
    return n;
}

/* 0: not all of it could be written. */
static int write_all(const char *text, size_t len)
{
    while (len) {
        const ssize_t n = write(STDERR_FILENO, text, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        text += n;
        len -= (size_t)n;
    }
    return 1;
}

static void drop(const char *lines, size_t len) { out.n_dropped += count_lines(lines, len); }

/* With the lock: reports how many lines were dropped, once there is room. */
static void tell_dropped(void)
{
    char *at = out.buffer[out.filling] + out.len;
    if (out.n_dropped == out.n_told) return;
    const int n = snprintf(at, CAPACITY - out.len,
                           "fathom: %lld log lines were dropped: standard error was not read\n",
                           (long long)(out.n_dropped - out.n_told));
    if (n < 0 || (size_t)n >= CAPACITY - out.len) return;
    out.len += (size_t)n;
    out.n_told = out.n_dropped;
}

/* With the lock, which is given up while writing. */
static void write_filled(void)
{
    const char  *text = out.buffer[out.filling];
    const size_t len  = out.len;
    out.filling       = !out.filling;
    out.len           = 0;
    pthread_mutex_unlock(&out.lock);
    const int is_written = write_all(text, len);
    pthread_mutex_lock(&out.lock);
    if (!is_written)
        drop(text, len);
    else
        tell_dropped();
}

static void *write_lines(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&out.lock);
    while (out.mode == THREAD || (out.mode == ENDING && out.len)) {
        if (out.len)
            write_filled();
        else
            pthread_cond_wait(&out.filled, &out.lock);
    }
    if (out.mode == ENDING) out.mode = DIRECT;
    pthread_cond_signal(&out.ended);
    pthread_mutex_unlock(&out.lock);
    return NULL;
}

void fm_log_start_writer(void)
{
    pthread_t thread;
    sigset_t  all, before;
    sigfillset(&all);
    pthread_mutex_lock(&out.lock);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the other threads */
    if (out.mode == DIRECT && pthread_create(&thread, NULL, write_lines, NULL) == 0) {
        pthread_detach(thread);
        out.mode = THREAD;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_unlock(&out.lock);
}

void fm_log_stop_writer(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_MS / 1000;
    pthread_mutex_lock(&out.lock);
    if (out.mode == THREAD) {
        out.mode = ENDING;
        pthread_cond_signal(&out.filled);
        while (out.mode == ENDING && pthread_cond_timedwait(&out.ended, &out.lock, &until) == 0)
            continue;
        if (out.mode == ENDING) out.mode = STALLED;
    }
    pthread_mutex_unlock(&out.lock);
}

int64_t fm_log_n_dropped(void)
{
    pthread_mutex_lock(&out.lock);
    const int64_t n = out.n_dropped;
    pthread_mutex_unlock(&out.lock);
    return n;
}

void fm__log_write(const char *lines, size_t len)
{
    pthread_mutex_lock(&out.lock);
    const int is_direct = out.mode == DIRECT;
    if (!is_direct && out.mode != STALLED && len <= CAPACITY - out.len) {
        memcpy(out.buffer[out.filling] + out.len, lines, len);
        out.len += len;
        pthread_cond_signal(&out.filled);
    } else if (!is_direct) {
        drop(lines, len);
    }
    pthread_mutex_unlock(&out.lock);
    if (is_direct) (void)fwrite(lines, 1, len, stderr);
}
