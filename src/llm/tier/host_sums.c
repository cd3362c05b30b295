/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/tier/host_sums.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/rng.h"

enum { THREADS_USUAL = 4, MOST_THREADS = 16, NO_JOB = -1 };

typedef enum { EMPTY, EXPECTED, THERE, MADE } sum_state;

typedef struct {
    fm_page_hash key;
    fm_hash128   sum;
    uint32_t     turn; /* counts the pages it was to hold */
    int8_t       state, is_queued;
} sum_of_slot;

typedef struct {
    fm_page_hash  key;
    int           slot;
    fm_slot_state state;
    int           waits; /* for the checksum to be made */
} check_of_page;

/* Jobs that wait for a thread: a job is in it once at most, so it is never full. */
typedef struct {
    int *job;
    int  cap, first, n;
} ring;

struct fm_host_sums {
    fm_host_sums_options opt;
    pthread_mutex_t      lock; /* of all below */
    pthread_cond_t       work, done;
    pthread_t            thread[MOST_THREADS];
    int                  n_thread, is_closing;
    sum_of_slot         *slot;  /* [n_slot] */
    check_of_page       *check; /* [n_check] */
    ring                 makes, checks;
    int                  n_waiting;  /* checks that wait for a checksum */
    int                  n_busy;     /* checks that a thread is to make or makes */
    int                  n_finished; /* checks since the last wait */
    uint64_t             n_drawn;    /* faults */
    fm_host_sums_stats   stats;
};

static void push(ring *q, int job)
{
    FM_BUG_UNLESS(q->n < q->cap);
    q->job[(q->first + q->n++) % q->cap] = job;
}

static int pop(ring *q)
{
    if (!q->n) return NO_JOB;
    const int job = q->job[q->first];
    q->first      = (q->first + 1) % q->cap;
    q->n--;
    return job;
}

static char *image_of(const fm_host_sums *h, int slot)
{
    return h->opt.image + (size_t)slot * h->opt.stride;
}

static void end_check(fm_host_sums *h, check_of_page *c, fm_slot_state state)
{
    c->state = state;
    h->stats.n_checked++;
    h->n_finished++;
    pthread_cond_broadcast(&h->done);
}

/* --- threads --------------------------------------------------------------- */

/* Checks that wait for the checksum of the slot. */
static void end_waits(fm_host_sums *h, int slot, fm_slot_state state)
{
    for (int i = 0; h->n_waiting && i < h->opt.n_check; i++) {
        check_of_page *c = &h->check[i];
        if (!c->waits || c->slot != slot) continue;
        c->waits = 0;
        h->n_waiting--;
        end_check(h, c, state);
    }
}

static void make(fm_host_sums *h, int i)
{
    sum_of_slot   *s    = &h->slot[i];
    const uint32_t turn = s->turn;
    s->is_queued        = 0;
    if (s->state != THERE) return;
    pthread_mutex_unlock(&h->lock);
    const fm_hash128 sum = fm_hash_bytes(image_of(h, i), h->opt.image_bytes, 0);
    pthread_mutex_lock(&h->lock);
    if (s->turn != turn || s->state != THERE) return; /* of a page that is gone */
    s->sum   = sum;
    s->state = MADE;
    h->stats.n_made++;
    end_waits(h, i, FM_SLOT_READY); /* what was just summed are the page's bytes */
}

/* For tests: the memory itself is altered, so that only the checksum keeps it from being used. */
static void inject_fault(fm_host_sums *h, int slot)
{
    const uint64_t n = h->n_drawn++;
    if (!(h->opt.fault_rate > 0)) return;
    if ((double)fm_rng_u32(17, 2 * n) * 0x1p-32 >= h->opt.fault_rate) return;
    image_of(h, slot)[fm_rng_u32(17, 2 * n + 1) % h->opt.image_bytes] ^= 1;
}

static void compare(fm_host_sums *h, int i)
{
    check_of_page     *c = &h->check[i];
    const sum_of_slot *s = &h->slot[c->slot];
    inject_fault(h, c->slot);
    pthread_mutex_unlock(&h->lock);
    const fm_hash128 sum = fm_hash_bytes(image_of(h, c->slot), h->opt.image_bytes, 0);
    pthread_mutex_lock(&h->lock);
    const int is_good =
        s->state == MADE && fm_hash_equal(s->key, c->key) && fm_hash_equal(s->sum, sum);
    if (!is_good && h->stats.n_altered++ == 0)
        FM_WARN("tier", "a page in host memory was altered (its checksum differs): such pages are "
                        "computed again and counted, not logged");
    h->n_busy--;
    end_check(h, c, is_good ? FM_SLOT_READY : FM_SLOT_FAILED);
}

/* Checks come first: a request waits for each of them. */
static void *work(void *sums)
{
    fm_host_sums *h = sums;
    pthread_mutex_lock(&h->lock);
    while (!h->is_closing) {
        const int check = pop(&h->checks), slot = check == NO_JOB ? pop(&h->makes) : NO_JOB;
        if (check != NO_JOB)
            compare(h, check);
        else if (slot != NO_JOB)
            make(h, slot);
        else
            pthread_cond_wait(&h->work, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* --- create and destroy ---------------------------------------------------- */

static int allocate(fm_host_sums *h)
{
    const size_t n_slot = (size_t)h->opt.n_slot, n_check = (size_t)h->opt.n_check;
    h->slot   = calloc(n_slot + 1, sizeof *h->slot);
    h->check  = calloc(n_check + 1, sizeof *h->check);
    h->makes  = (ring){.job = calloc(n_slot + 1, sizeof(int)), .cap = h->opt.n_slot + 1};
    h->checks = (ring){.job = calloc(n_check + 1, sizeof(int)), .cap = h->opt.n_check + 1};
    return h->slot && h->check && h->makes.job && h->checks.job;
}

static void init_locks(fm_host_sums *h)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->work, &a);
    pthread_cond_init(&h->done, &a);
    pthread_condattr_destroy(&a);
}

fm_status fm_host_sums_create(fm_host_sums **out, const fm_host_sums_options *o)
{
    fm_host_sums *h = calloc(1, sizeof *h);
    if (!h) return fm_fail(FM_E_OOM, "checksums of pages in host memory");
    h->opt = *o;
    init_locks(h);
    const int n      = o->n_thread > 0 ? o->n_thread : THREADS_USUAL;
    const int is_set = allocate(h);
    while (is_set && h->n_thread < n && h->n_thread < MOST_THREADS &&
           pthread_create(&h->thread[h->n_thread], NULL, work, h) == 0)
        h->n_thread++;
    if (!h->n_thread) {
        fm_host_sums_destroy(h);
        return fm_fail(FM_E_OOM, "checksums of pages in host memory");
    }
    *out = h;
    return FM_OK;
}

void fm_host_sums_destroy(fm_host_sums *h)
{
    if (!h) return;
    pthread_mutex_lock(&h->lock);
    h->is_closing = 1;
    pthread_cond_broadcast(&h->work);
    pthread_mutex_unlock(&h->lock);
    for (int i = 0; i < h->n_thread; i++) pthread_join(h->thread[i], NULL);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->work);
    pthread_cond_destroy(&h->done);
    free(h->slot);
    free(h->check);
    free(h->makes.job);
    free(h->checks.job);
    free(h);
}

/* --- calls ----------------------------------------------------------------- */

void fm_host_sums_expect(fm_host_sums *h, int slot, fm_page_hash key)
{
    pthread_mutex_lock(&h->lock);
    end_waits(h, slot, FM_SLOT_FAILED);
    h->slot[slot].key   = key;
    h->slot[slot].state = EXPECTED;
    h->slot[slot].turn++;
    pthread_mutex_unlock(&h->lock);
}

void fm_host_sums_make(fm_host_sums *h, int slot)
{
    pthread_mutex_lock(&h->lock);
    sum_of_slot *s = &h->slot[slot];
    if (s->state == EXPECTED) s->state = THERE;
    if (s->state == THERE && !s->is_queued) {
        s->is_queued = 1;
        push(&h->makes, slot);
        pthread_cond_signal(&h->work);
    }
    pthread_mutex_unlock(&h->lock);
}

int fm_host_sums_get(fm_host_sums *h, int slot, fm_page_hash key, fm_hash128 *sum)
{
    pthread_mutex_lock(&h->lock);
    const sum_of_slot *s  = &h->slot[slot];
    const int          is = s->state == MADE && fm_hash_equal(s->key, key);
    *sum                  = s->sum;
    pthread_mutex_unlock(&h->lock);
    return is;
}

void fm_host_sums_check(fm_host_sums *h, int check, int slot, fm_page_hash key)
{
    pthread_mutex_lock(&h->lock);
    check_of_page     *c = &h->check[check];
    const sum_of_slot *s = &h->slot[slot];
    FM_BUG_UNLESS(c->state != FM_SLOT_BUSY);
    *c = (check_of_page){.key = key, .slot = slot, .state = FM_SLOT_BUSY};
    if (!fm_hash_equal(s->key, key) || s->state == EMPTY) {
        end_check(h, c, FM_SLOT_FAILED);
    } else if (s->state == MADE) {
        h->n_busy++;
        push(&h->checks, check);
        pthread_cond_signal(&h->work);
    } else {
        c->waits = 1;
        h->n_waiting++;
    }
    pthread_mutex_unlock(&h->lock);
}

fm_slot_state fm_host_sums_checked(fm_host_sums *h, int check)
{
    pthread_mutex_lock(&h->lock);
    const fm_slot_state is = h->check[check].state;
    pthread_mutex_unlock(&h->lock);
    return is;
}

void fm_host_sums_wait(fm_host_sums *h, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const double at = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)at;
    until.tv_nsec = (long)((at - (double)(time_t)at) * 1e9);
    pthread_mutex_lock(&h->lock);
    if (!h->n_finished && h->n_busy) pthread_cond_timedwait(&h->done, &h->lock, &until);
    h->n_finished = 0;
    pthread_mutex_unlock(&h->lock);
}

fm_host_sums_stats fm_host_sums_get_stats(fm_host_sums *h)
{
    pthread_mutex_lock(&h->lock);
    const fm_host_sums_stats s = h->stats;
    pthread_mutex_unlock(&h->lock);
    return s;
}
