/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/tier/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "llm/tier/store_internal.h"

static const double patience_usual = 10, glance = 0.2;
enum { THREADS_USUAL = 4 };

/* --- queues ---------------------------------------------------------------- */

static void push(fm_store *s, fm__job_queue *q, int job)
{
    s->job[job].next = FM__NO_JOB;
    if (q->head == FM__NO_JOB)
        q->head = job;
    else
        s->job[q->tail].next = job;
    q->tail = job;
}

static int pop(fm_store *s, fm__job_queue *q)
{
    const int job = q->head;
    if (job != FM__NO_JOB) q->head = s->job[job].next;
    return job;
}

static void free_buffer(fm_store *s, int job)
{
    push(s, &s->free_buffers, job);
    s->n_free_buffer++;
}

static void lock(const fm_store *s) { pthread_mutex_lock((pthread_mutex_t *)&s->lock); }

static void unlock(const fm_store *s) { pthread_mutex_unlock((pthread_mutex_t *)&s->lock); }

static void enqueue(fm_store *s, fm__job_queue *q, int job, const fm_store_page *p)
{
    fm__job *j = &s->job[job];
    j->state   = FM_SLOT_BUSY;
    j->key     = p->key;
    j->depth   = p->depth;
    j->began   = 0;
    j->has_sum = p->sum != NULL;
    if (p->sum) j->sum = *p->sum;
    j->from = p->from;
    memcpy(j->token, p->token, (size_t)s->opt.format.page_size * sizeof *p->token);
    push(s, q, job);
    s->n_queued++;
    pthread_cond_signal(&s->work);
}

/* --- threads --------------------------------------------------------------- */

/* Reads come first: a request waits for each of them, and none waits for a write. */
static int next_job(fm_store *s)
{
    const int job = pop(s, &s->reads);
    return job != FM__NO_JOB ? job : pop(s, &s->writes);
}

static void run_job(fm_store *s, int job)
{
    const int     is_read = job < s->opt.n_slot;
    fm_slot_state end     = is_read ? FM_SLOT_FAILED : FM_SLOT_IDLE;
    s->job[job].began     = fm_now();
    unlock(s);
    if (fm_store_is_on(s)) {
        if (is_read)
            end = fm__store_read_file(s, job);
        else
            fm__store_write_file(s, job);
    }
    lock(s);
    s->job[job].state = end;
    s->job[job].began = 0;
    if (!is_read) free_buffer(s, job);
    s->n_queued--;
    s->n_finished++;
    pthread_cond_broadcast(&s->done);
}

static void *work(void *store)
{
    fm_store *s = store;
    lock(s);
    for (;;) {
        const int job = next_job(s);
        if (job != FM__NO_JOB)
            run_job(s, job);
        else if (s->is_closing)
            break;
        else
            pthread_cond_wait(&s->work, &s->lock);
    }
    s->n_left++;
    unlock(s);
    return NULL;
}

static void deadline(struct timespec *t, double seconds)
{
    clock_gettime(CLOCK_MONOTONIC, t);
    const double at = (double)t->tv_nsec * 1e-9 + seconds;
    t->tv_sec += (time_t)at;
    t->tv_nsec = (long)((at - (double)(time_t)at) * 1e9);
}

static int wait_done(fm_store *s, double seconds)
{
    struct timespec until;
    deadline(&until, seconds);
    return pthread_cond_timedwait(&s->done, &s->lock, &until);
}

void fm__store_give_up(fm_store *s, const char *what, int err)
{
    if (s->opt.fault_rate > 0) return;
    if (!atomic_exchange(&s->is_on, 0)) return;
    FM_WARN("tier", "the file tier in %s is off, serving goes on without it: %s%s%s", s->dir, what,
            err ? ": " : "", err ? strerror(err) : "");
}

int fm__store_is_refused(int err) { return err == EROFS || err == EACCES || err == EPERM; }

void fm__store_stop_writing(fm_store *s, int err)
{
    if (atomic_exchange(&s->is_read_only, 1)) return;
    FM_WARN("tier", "the file tier reads pages of %s and writes none: %s", s->dir, strerror(err));
}

/* A system call on a hanging directory never returns: the time since its start is the only sign. */
static void watch(const fm_store *s)
{
    const double now   = fm_now();
    const int    n_job = s->opt.n_slot + s->opt.n_buffer;
    for (int i = 0; s->n_queued && i < n_job; i++)
        if (s->job[i].began > 0 && now - s->job[i].began > s->opt.patience)
            fm__store_give_up((fm_store *)s, "the directory does not answer", 0);
}

/* --- open and close -------------------------------------------------------- */

static void link_jobs(fm_store *s)
{
    s->reads = s->writes = s->free_buffers = (fm__job_queue){FM__NO_JOB, FM__NO_JOB};
    for (int i = 0; i < s->opt.n_buffer; i++) free_buffer(s, s->opt.n_slot + i);
}

static fm_status create(fm_store **out, const fm_store_options *o)
{
    fm_store *s = calloc(1, sizeof *s);
    if (!s) return fm_fail(FM_E_OOM, "file tier");
    *out   = s;
    s->opt = *o;
    if (!(s->opt.patience > 0)) s->opt.patience = patience_usual;
    if (s->opt.n_thread < 1) s->opt.n_thread = THREADS_USUAL;
    if (s->opt.n_thread > FM__STORE_THREADS) s->opt.n_thread = FM__STORE_THREADS;
    s->file_bytes = fm_page_file_bytes(&o->format);
    s->disk       = (fm_disk){.rate = o->fault_rate, .seed = 1};
    s->about      = strdup(o->about);
    s->job        = calloc((size_t)(o->n_slot + o->n_buffer), sizeof *s->job);
    if (!s->about || !s->job) return fm_fail(FM_E_OOM, "file tier");
    if (strlen(o->dir) >= sizeof s->dir)
        return fm_fail(FM_E_ARG, "%s: the name is too long", o->dir);
    strcpy(s->dir, o->dir);
    return FM_OK;
}

static uint64_t make_nonce(void)
{
    char            host[256] = "";
    struct timespec now;
    gethostname(host, sizeof host - 1);
    clock_gettime(CLOCK_REALTIME, &now);
    return fm_rng_key(host, (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_nsec << 20 ^
                                (uint64_t)now.tv_sec);
}

static void init_locks(fm_store *s)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, &a);
    pthread_cond_init(&s->done, &a);
    pthread_cond_init(&s->keep, &a);
    pthread_condattr_destroy(&a);
}

static void start_threads(fm_store *s)
{
    s->has_keeper = pthread_create(&s->keeper, NULL, fm__store_keeper, s) == 0;
    while (s->has_keeper && s->n_thread < s->opt.n_thread &&
           pthread_create(&s->thread[s->n_thread], NULL, work, s) == 0)
        s->n_thread++;
    if (!s->n_thread) fm__store_give_up(s, "no thread could be started", 0);
}

static void wait_scanned(fm_store *s)
{
    const double began = fm_now();
    lock(s);
    while (fm_store_is_on(s) && !s->is_scanned && fm_now() - began < s->opt.patience)
        wait_done(s, glance);
    if (!s->is_scanned) fm__store_give_up(s, "the directory does not answer", 0);
    unlock(s);
}

fm_status fm_store_open(fm_store **out, const fm_store_options *o)
{
    fm_store       *s  = NULL;
    const fm_status rc = create(&s, o);
    if (rc != FM_OK) {
        if (s) free(s->about);
        if (s) free(s->job);
        free(s);
        return rc;
    }
    s->nonce = make_nonce();
    s->is_on = 1;
    link_jobs(s);
    init_locks(s);
    start_threads(s);
    wait_scanned(s);
    *out = s;
    return FM_OK;
}

/* Waits until all threads have ended, up to `patience` after the last file was finished. */
static int all_left(fm_store *s)
{
    double began    = fm_now();
    int    n_queued = -1;
    lock(s);
    s->is_closing = 1;
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->keep);
    while (s->n_left < s->n_thread + s->has_keeper && fm_now() - began < s->opt.patience) {
        if (s->n_queued != n_queued) began = fm_now();
        n_queued = s->n_queued;
        wait_done(s, 0.01);
    }
    const int all = s->n_left == s->n_thread + s->has_keeper;
    unlock(s);
    return all;
}

int fm_store_close(fm_store *s)
{
    if (!s) return 1;
    const int all = all_left(s);
    for (int i = 0; i < s->n_thread; i++)
        if (all)
            pthread_join(s->thread[i], NULL);
        else
            pthread_detach(s->thread[i]);
    if (s->has_keeper && all) pthread_join(s->keeper, NULL);
    if (!all) return 0; /* a thread in a call that hangs still uses all of this */
    fm_key_set_fini(&s->listed);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->done);
    pthread_cond_destroy(&s->keep);
    free(s->about);
    free(s->job);
    free(s);
    return 1;
}

/* --- calls ----------------------------------------------------------------- */

int fm_store_is_on(const fm_store *s) { return s->is_on; }

int fm_store_can_write(const fm_store *s) { return s->is_on && !s->is_read_only; }

int fm_store_has(fm_store *s, fm_page_hash key)
{
    if (!fm_store_is_on(s)) return 0;
    lock(s);
    const int has = fm_key_set_has(&s->listed, key);
    unlock(s);
    return has;
}

void fm_store_forget(fm_store *s, fm_page_hash key)
{
    lock(s);
    fm_key_set_remove(&s->listed, key);
    unlock(s);
}

void fm_store_read(fm_store *s, int slot, const fm_store_page *p)
{
    lock(s);
    FM_BUG_UNLESS(slot < s->opt.n_slot &&
                  (s->job[slot].state == FM_SLOT_IDLE || !fm_store_is_on(s)));
    if (fm_store_is_on(s))
        enqueue(s, &s->reads, slot, p);
    else if (s->job[slot].state == FM_SLOT_IDLE)
        s->job[slot].state = FM_SLOT_FAILED;
    unlock(s);
}

fm_slot_state fm_store_slot(const fm_store *s, int slot)
{
    lock(s);
    watch(s);
    fm_slot_state is = s->job[slot].state;
    unlock(s);
    return is == FM_SLOT_BUSY && !fm_store_is_on(s) ? FM_SLOT_FAILED : is;
}

/* A slot whose thread hangs stays BUSY and is never used again. */
void fm_store_clear_slot(fm_store *s, int slot)
{
    lock(s);
    if (s->job[slot].state != FM_SLOT_BUSY) s->job[slot].state = FM_SLOT_IDLE;
    unlock(s);
}

char *fm_store_slot_image(const fm_store *s, int slot)
{
    return fm_page_file_image(fm__store_file(s, slot));
}

int fm_store_free_buffers(const fm_store *s)
{
    lock(s);
    const int n = s->n_free_buffer;
    unlock(s);
    return n;
}

char *fm_store_take_buffer(fm_store *s)
{
    if (!fm_store_can_write(s)) return NULL;
    lock(s);
    const int job = pop(s, &s->free_buffers);
    s->n_free_buffer -= job != FM__NO_JOB;
    watch(s);
    unlock(s);
    return job == FM__NO_JOB ? NULL : fm_page_file_image(fm__store_file(s, job));
}

void fm_store_write(fm_store *s, char *image, const fm_store_page *p)
{
    const size_t at = (size_t)(image - fm_page_file_image(s->opt.memory));
    lock(s);
    enqueue(s, &s->writes, (int)(at / s->file_bytes), p);
    unlock(s);
}

void fm_store_wait(fm_store *s, double seconds)
{
    lock(s);
    if (!s->n_finished && s->n_queued) wait_done(s, seconds);
    s->n_finished = 0;
    unlock(s);
}

void fm_store_drain(fm_store *s)
{
    lock(s);
    while (s->n_queued && fm_store_is_on(s)) {
        wait_done(s, glance);
        watch(s);
    }
    unlock(s);
}

fm_store_stats fm_store_get_stats(const fm_store *s)
{
    lock(s);
    watch(s);
    fm_store_stats st = s->stats;
    st.n_queued       = s->n_queued;
    st.n_call         = (int64_t)s->disk.n_call;
    st.n_fault        = (int64_t)s->disk.n_fault;
    st.n_listed       = (int64_t)s->listed.n;
    st.index_bytes    = (int64_t)fm_key_set_bytes(&s->listed);
    unlock(s);
    st.is_on = fm_store_is_on(s);
    return st;
}
