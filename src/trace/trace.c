/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trace/histogram.h"

enum { PAGE = 4096, MIB = 1 << 20, MOST_MIB = 64, LEAST_MIB = 1, ALL_RANKS_BYTES = 100000000 };

struct fm_trace {
    int            fd;
    char          *path;
    size_t         bytes;
    fm_trace_head *head; /* the mapping; NULL: none yet */
    fm_trace_key  *key;
    fm_trace_sum  *sum;
    fm_trace_span *span;
    uint64_t       n_span; /* the head's, not read back */
};

uint64_t fm_trace_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void fm_trace_begin(fm_trace *t)
{
    t->head->epoch_ns = fm_trace_now();
    t->head->wall_ns  = wall_ns();
}

static uint64_t page_up(uint64_t n) { return (n + PAGE - 1) / PAGE * PAGE; }

static uint64_t keys_at(void) { return page_up(sizeof(fm_trace_head)); }

static uint64_t sums_at(void) { return page_up(keys_at() + FM_TRACE_KEYS * sizeof(fm_trace_key)); }

static uint64_t spans_at(void) { return page_up(sums_at() + FM_TRACE_KEYS * sizeof(fm_trace_sum)); }

size_t fm_trace_table_bytes(void) { return spans_at(); }

size_t fm_trace_ring_bytes(int64_t mib, int n_rank)
{
    const size_t most = (size_t)MOST_MIB * MIB, least = (size_t)LEAST_MIB * MIB;
    const size_t share = (size_t)ALL_RANKS_BYTES / (size_t)n_rank, tables = fm_trace_table_bytes();
    if (mib > 0) return (size_t)mib * MIB;
    if (share < tables + least) return least;
    return share - tables < most ? share - tables : most;
}

#define COPY(to, from) snprintf(to, sizeof(to), "%s", (from) ? (from) : "")

static fm_trace_head head_of(const fm_trace_options *o)
{
    fm_trace_head h = {.version    = FM_TRACE_VERSION,
                       .order      = FM_TRACE_ORDER,
                       .head_bytes = sizeof(fm_trace_head),
                       .key_bytes  = sizeof(fm_trace_key),
                       .sum_bytes  = sizeof(fm_trace_sum),
                       .span_bytes = sizeof(fm_trace_span),
                       .n_key_max  = FM_TRACE_KEYS,
                       .n_span_max = o->ring_bytes / sizeof(fm_trace_span),
                       .job        = o->job,
                       .rank       = o->rank,
                       .n_rank     = o->n_rank};
    memcpy(h.magic, FM_TRACE_MAGIC, sizeof h.magic);
    h.key_at  = keys_at();
    h.sum_at  = sums_at();
    h.span_at = spans_at();
    COPY(h.host, o->host);
    COPY(h.program, o->program);
    COPY(h.command, o->command);
    COPY(h.task, o->task);
    COPY(h.row, o->row);
    return h;
}

/* Pages of the tables are made now, not one by one while something is measured; those of the ring
 * come later, one for 128 spans.  Where the system cannot, all come later. */
static void populate(void *at, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    if (madvise(at, bytes, MADV_POPULATE_WRITE) != 0) errno = 0;
#else
    (void)at, (void)bytes;
#endif
}

/* Reserved before it is mapped: writing to a page of a full disk would kill the process. */
static fm_status map(fm_trace *t, const fm_trace_head *h)
{
    t->bytes        = h->span_at + h->n_span_max * sizeof(fm_trace_span);
    const int error = posix_fallocate(t->fd, 0, (off_t)t->bytes);
    if (error)
        return fm_fail(FM_E_IO, "%s: no room for a trace of %.1f MiB: %s", t->path,
                       (double)t->bytes / MIB, strerror(error));
    void *at = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (at == MAP_FAILED) return fm_fail(FM_E_IO, "%s: %s", t->path, strerror(errno));
    populate(at, h->span_at);
    t->head  = at;
    t->key   = (fm_trace_key *)((char *)at + h->key_at);
    t->sum   = (fm_trace_sum *)((char *)at + h->sum_at);
    t->span  = (fm_trace_span *)((char *)at + h->span_at);
    *t->head = *h;
    fm_trace_begin(t);
    return FM_OK;
}

/* Creates a new file under the same name: a process that still writes the old file keeps that. */
static fm_status create(fm_trace *t)
{
    struct stat st;
    if (lstat(t->path, &st) == 0 && S_ISREG(st.st_mode)) unlink(t->path);
    t->fd = open(t->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return t->fd < 0 ? fm_fail(FM_E_IO, "%s: %s", t->path, strerror(errno)) : FM_OK;
}

/* Nothing half-made stays behind; a device that was named as the file does. */
static void remove_file(const fm_trace *t)
{
    struct stat st;
    if (fstat(t->fd, &st) == 0 && S_ISREG(st.st_mode)) unlink(t->path);
}

fm_status fm_trace_open(fm_trace **out, const fm_trace_options *o)
{
    const fm_trace_head h = head_of(o);
    FM_BUG_UNLESS(h.n_span_max > 0);
    fm_trace *t = calloc(1, sizeof *t);
    if (!t) return fm_fail(FM_E_OOM, "trace");
    t->fd        = -1;
    t->path      = strdup(o->path);
    fm_status rc = t->path ? FM_OK : fm_fail(FM_E_OOM, "trace");
    if (rc == FM_OK) rc = create(t);
    if (rc == FM_OK) {
        rc = map(t, &h);
        if (rc != FM_OK) remove_file(t);
    }
    if (rc == FM_OK)
        *out = t;
    else
        fm_trace_close(t);
    return rc;
}

/* A run that was shorter than the ring leaves a shorter file.  One that cannot be cut stays as
 * long as it was, which readers accept. */
void fm_trace_close(fm_trace *t)
{
    if (!t) return;
    if (t->head) {
        const uint64_t used = t->n_span < t->head->n_span_max ? t->n_span : t->head->n_span_max;
        const off_t    end  = (off_t)(t->head->span_at + used * sizeof(fm_trace_span));
        t->head->is_closed  = 1;
        munmap(t->head, t->bytes);
        if (ftruncate(t->fd, end) != 0) errno = 0;
    }
    if (t->fd >= 0) close(t->fd);
    free(t->path);
    free(t);
}

static int same_key(const fm_trace_key *a, const fm_trace_key *b)
{
    return a->cls == b->cls && !strcmp(a->name, b->name) && !strcmp(a->part, b->part) &&
           !strcmp(a->factor, b->factor);
}

int fm_trace_key_of(fm_trace *t, const fm_trace_key *k)
{
    static const fm_trace_key other = {.cls = FM_TRACE_WORK, .name = "other"};
    const uint64_t            n     = t->head->n_key;
    for (uint64_t i = 0; i < n; i++)
        if (same_key(&t->key[i], k)) return (int)i;
    if (n >= FM_TRACE_KEYS - 1) k = &other;
    if (n == FM_TRACE_KEYS) return FM_TRACE_KEYS - 1;
    t->key[n] = *k;
    __atomic_store_n(&t->head->n_key, n + 1, __ATOMIC_RELEASE);
    return (int)n;
}

static void add_to_bin(fm_trace_sum *s, const fm_trace_event *e, uint64_t own_ns, double n)
{
    fm_trace_bin *b = &s->bin[fm_trace_bin_of(e->bytes, e->flops)];
    b->bytes += n * e->bytes;
    b->flops += n * e->flops;
    b->ns += own_ns;
    s->bytes += n * e->bytes;
    s->flops += n * e->flops;
}

static void add_to_sum(fm_trace_sum *s, const fm_trace_event *e, uint64_t ns)
{
    const uint64_t n    = 1 + (uint64_t)e->more;
    const uint64_t comm = e->comm_ns < ns ? e->comm_ns : ns;
    const double   own  = (double)(ns - comm);
    if (!s->count || ns < s->min_ns) s->min_ns = ns;
    if (ns > s->max_ns) s->max_ns = ns;
    s->count += n;
    s->total_ns += n * ns;
    s->comm_ns += n * comm;
    s->rows += n * e->rows;
    s->square += (double)n * own * own;
    s->bucket[fm_bucket_of(ns)] += n;
    if (e->bytes > 0 || e->flops > 0) add_to_bin(s, e, n * (ns - comm), (double)n);
}

static void add_to_ring(fm_trace *t, int key, const fm_trace_event *e, uint64_t ns)
{
    t->span[t->n_span % t->head->n_span_max] =
        (fm_trace_span){.begin_ns = e->begin - t->head->epoch_ns,
                        .dur_ns   = ns,
                        .key      = (uint16_t)key,
                        .layer    = e->layer,
                        .rows     = e->rows,
                        .tag      = e->tag};
    t->n_span++;
    if (e->end - t->head->epoch_ns > t->head->last_ns)
        t->head->last_ns = e->end - t->head->epoch_ns;
    __atomic_store_n(&t->head->n_span, t->n_span, __ATOMIC_RELEASE);
}

/* What began before the trace counts from its beginning. */
void fm_trace_add(fm_trace *t, int key, const fm_trace_event *e)
{
    fm_trace_event c = *e;
    if (!c.no_span && c.begin < t->head->epoch_ns) c.begin = t->head->epoch_ns;
    if (c.end < c.begin) c.end = c.begin;
    add_to_sum(&t->sum[key], &c, c.end - c.begin);
    if (!c.no_span) add_to_ring(t, key, &c, c.end - c.begin);
}

void fm_trace_set_clock(fm_trace *t, int end, fm_trace_clock c) { t->head->clock[end] = c; }
