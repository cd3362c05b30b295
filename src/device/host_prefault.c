/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "device/host_prefault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/host.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE = 2 << 20, LEAVE_ALONE = 256 << 20 };

/* How long nothing must have run before the thread begins: steps that follow each other have
 * shorter gaps, and a page that is being zeroed in one of them would hold up the next. */
static const long quiet_ns = 20000000;

struct fm_prefault {
    fm_prefault_options opt;
    int                 per_band; /* units whose bytes in a layer fill a huge page */
    atomic_int          wanted, backed;
    atomic_uint         moment; /* rises with each pause and resume; odd: paused */
    int                 is_useless;

    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  wake;
    int             has_thread, ends;
};

/* --- pages -------------------------------------------------------------------- */

static int is_scarce(size_t bytes) { return fm_host_available() < bytes + LEAVE_ALONE; }

/* The pages that hold [from, to). */
static int populate(char *from, char *to)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *const     at   = from - (uintptr_t)from % page;
    const int       was = errno, done = madvise(at, (size_t)(to - at), MADV_POPULATE_WRITE) == 0;
    errno = was;
    return done;
}

size_t fm_host_prefault(void *p, size_t bytes, int n_thread, double seconds)
{
    const double end = fm_now() + seconds;
    size_t       at  = 0;
    while (at < bytes && fm_now() < end && !is_scarce((size_t)n_thread * HUGE)) {
        int ok = 1;
#pragma omp parallel for num_threads(n_thread) schedule(static) reduction(&& : ok)
        for (int i = 0; i < n_thread; i++) {
            const size_t from = at + (size_t)i * HUGE;
            const size_t to   = from + HUGE < bytes ? from + HUGE : bytes;
            ok                = from >= bytes || populate((char *)p + from, (char *)p + to);
        }
        if (!ok) break;
        at += (size_t)n_thread * HUGE;
    }
    return at < bytes ? at : bytes;
}

/* --- the pool ------------------------------------------------------------------ */

static int least(int a, int b) { return a < b ? a : b; }

/* Layers of all parts. */
static int n_stripe(const fm_prefault *p) { return p->opt.n_layer * p->opt.n_part; }

/* Units [from, to) in one stripe. */
static int populate_piece(const fm_prefault *p, int stripe, int from, int to)
{
    const fm_prefault_options *o     = &p->opt;
    const int                  layer = stripe / o->n_part, part = stripe % o->n_part;
    char *const                base  = o->base + (size_t)layer * o->layer_bytes +
                       (size_t)part * (size_t)o->n_unit * o->unit_bytes;
    return populate(base + (size_t)from * o->unit_bytes, base + (size_t)to * o->unit_bytes);
}

static int band_end(const fm_prefault *p, int from)
{
    return least(from + p->per_band, p->opt.n_unit);
}

static int band_is_scarce(const fm_prefault *p)
{
    return is_scarce((size_t)n_stripe(p) * HUGE);
}

/* With the threads of the caller's team, before anything else needs them. */
static void back_first_units(fm_prefault *p)
{
    const double end = fm_now() + p->opt.seconds;
    int          at  = 0;
    while (at < atomic_load(&p->wanted) && fm_now() < end && !band_is_scarce(p)) {
        const int to = band_end(p, at);
        int       ok = 1;
#pragma omp parallel for num_threads(p->opt.n_thread) schedule(static) reduction(&& : ok)
        for (int i = 0; i < n_stripe(p); i++) ok = populate_piece(p, i, at, to) && ok;
        if (!ok) {
            p->is_useless = 1;
            return;
        }
        atomic_store(&p->backed, at = to);
    }
}

/* --- the thread ---------------------------------------------------------------- */

static int is_behind(fm_prefault *p)
{
    return atomic_load(&p->backed) < atomic_load(&p->wanted);
}

static void wait_quietly(fm_prefault *p)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += quiet_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&p->wake, &p->lock, &until);
}

/* The next band, a stripe at a time, unless a pause begins.  0: the system cannot. */
static int back_band(fm_prefault *p, unsigned moment)
{
    const int from = atomic_load(&p->backed), to = band_end(p, from);
    for (int i = 0; i < n_stripe(p); i++) {
        if (atomic_load(&p->moment) != moment) return 1;
        if (!populate_piece(p, i, from, to)) return 0;
    }
    atomic_store(&p->backed, to);
    return 1;
}

/* As long as nothing else runs; `moment` is the one that was seen a while ago. */
static int back_bands(fm_prefault *p, unsigned moment)
{
    int able = 1;
    pthread_mutex_unlock(&p->lock);
    while (able && is_behind(p) && atomic_load(&p->moment) == moment && !band_is_scarce(p))
        able = back_band(p, moment);
    pthread_mutex_lock(&p->lock);
    return able;
}

static void *work(void *ctx)
{
    fm_prefault *p    = ctx;
    unsigned     seen = 1; /* as if it were paused */
    int          able = 1;
    if (p->opt.team) fm_threads_roam(p->opt.team);
    pthread_mutex_lock(&p->lock);
    while (able && !p->ends && atomic_load(&p->backed) < p->opt.n_unit) {
        const unsigned now = atomic_load(&p->moment);
        if (seen % 2 == 0 && now == seen) able = back_bands(p, now);
        seen = now;
        if (p->ends) break;
        if (is_behind(p) && !band_is_scarce(p)) wait_quietly(p);
        else pthread_cond_wait(&p->wake, &p->lock); /* for units that are reached */
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are for the other threads. */
static void start_thread(fm_prefault *p)
{
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    p->has_thread = pthread_create(&p->thread, NULL, work, p) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
}

/* --- from outside -------------------------------------------------------------- */

static void init(fm_prefault *p, const fm_prefault_options *o)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, &a);
    pthread_condattr_destroy(&a);
    p->opt      = *o;
    p->per_band = o->unit_bytes < HUGE ? (int)(HUGE / o->unit_bytes) : 1;
    atomic_init(&p->wanted, least(o->ahead, o->n_unit));
}

fm_status fm_prefault_create(fm_prefault **out, const fm_prefault_options *o)
{
    fm_prefault *p = calloc(1, sizeof *p);
    if (!p) return fm_fail(FM_E_OOM, "prefaulting");
    FM_BUG_UNLESS(o->unit_bytes);
    FM_BUG_UNLESS((size_t)o->n_part * (size_t)o->n_unit * o->unit_bytes <= o->layer_bytes);
    init(p, o);
    back_first_units(p);
    if (!p->is_useless && atomic_load(&p->backed) < o->n_unit) start_thread(p);
    *out = p;
    return FM_OK;
}

void fm_prefault_destroy(fm_prefault *p)
{
    if (!p) return;
    fm_prefault_pause(p);
    pthread_mutex_lock(&p->lock);
    p->ends = 1;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    if (p->has_thread) pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void fm_prefault_reach(fm_prefault *p, int n_unit)
{
    const int most = least(p->opt.n_unit - p->opt.ahead, n_unit);
    const int want = most + p->opt.ahead;
    if (want <= atomic_load(&p->wanted)) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->wanted, want);
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void fm_prefault_pause(fm_prefault *p)
{
    atomic_store(&p->moment, (atomic_load(&p->moment) + 1) | 1);
}

void fm_prefault_resume(fm_prefault *p)
{
    atomic_store(&p->moment, (atomic_load(&p->moment) + 1) & ~1u);
}

int fm_prefault_backed(fm_prefault *p) { return atomic_load(&p->backed); }
