/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank the others wait for.  Ranks of a group make the same collectives in the same order, so
 * calls with the same tag are one: the rank that began last was late, and the others waited from
 * their own begin until then.
 *
 *     rank 0  [--waits--|--moves--|...held up...]
 *     rank 1         [--|--moves--|...held up...]
 *     rank 2            [--moves--|...stopped...]   arrived last
 *
 * After the last arrival a call moves bytes, for as long as the quick calls of its size take on the
 * same rank.  What is longer is no moving: a rank was stopped or slow inside the call, and the
 * others waited for it.  The call does not show which one: who is stopped before it sends leaves
 * with the others.  But a rank that is stopped or slow is so outside of calls, too, so this waiting
 * is divided as that for late arrivals is. */
#include <stdlib.h>

#include "trace_report/analysis_internal.h"

typedef struct {
    uint64_t tag;
    int      rank, row;
    uint16_t size;       /* class of its bytes; FM_TRACE_NO_LAYER: unknown */
    int64_t  begin, end; /* ns of the job's axis */
    double   busy;       /* seconds at its end in which the rank did nothing else */
    double   after;      /* of them, after the last rank arrived; -1: not known of all ranks */
    double   quick;      /* what quick calls like this one take after that; 0: too few to say */
} call;

typedef struct {
    call  *at; /* owned */
    size_t n;
} calls;

static int is_shared(const fm_trace_job *j, int i, const fm_trace_span *s)
{
    const fm_trace_key *k = &j->file[i].key[s->key];
    return k->cls == FM_TRACE_COLLECTIVE && s->tag && !(k->flags & FM_TRACE_AWAITS);
}

static fm_status gather(calls *c, const fm_trace_job *j)
{
    size_t n = 0;
    for (int i = 0; i < j->n; i++)
        for (size_t s = 0; s < j->file[i].n_span; s++)
            n += (size_t)is_shared(j, i, &j->file[i].span[s]);
    c->at = malloc((n + 1) * sizeof *c->at);
    if (!c->at) return fm_fail(FM_E_OOM, "%zu calls", n);
    for (int i = 0; i < j->n; i++)
        for (size_t k = 0; k < j->file[i].n_span; k++) {
            const fm_trace_span *s = &j->file[i].span[k];
            if (!is_shared(j, i, s)) continue;
            c->at[c->n++] = (call){.tag   = s->tag,
                                   .rank  = i,
                                   .row   = j->row_of[i][s->key],
                                   .size  = s->layer,
                                   .after = -1,
                                   .begin = fm_trace_time(j, i, s->begin_ns),
                                   .end   = fm_trace_time(j, i, s->begin_ns + s->dur_ns),
                                   .busy  = 1e-6 * s->rows};
        }
    return FM_OK;
}

static int by_tag(const void *a, const void *b)
{
    const call *x = a, *y = b;
    if (x->tag != y->tag) return x->tag < y->tag ? -1 : 1;
    return x->rank - y->rank;
}

static fm_key_total *total_of(fm_trace_analysis *a, int row)
{
    for (int i = 0; i < a->n_total; i++)
        if (a->total[i].row == row) return &a->total[i];
    return NULL;
}

static void add_wait(fm_trace_analysis *a, const call *c, double seconds)
{
    fm_key_total *t = total_of(a, c->row);
    a->account[c->rank].wait += seconds;
    if (t) t->wait += seconds;
}

/* One collective on all its ranks: who arrived last. */
static void judge_arrival(fm_trace_analysis *a, call *c, size_t n)
{
    size_t last = 0;
    for (size_t i = 1; i < n; i++)
        if (c[i].begin > c[last].begin) last = i;
    for (size_t i = 0; i < n; i++) {
        const double after = 1e-9 * (double)(c[i].end - c[last].begin);
        c[i].after         = after < 0 ? 0 : after < c[i].busy ? after : c[i].busy;
        add_wait(a, &c[i], c[i].busy - c[i].after);
        a->in_row[c->row * a->job->n + c[last].rank] += c[i].busy - c[i].after;
        a->matched += c[i].busy;
    }
}

/* What bytes can need at most.  Where the size is unknown a call may be longer because it is
 * larger: as long as the first rank to leave, then. */
static double moving(const call *c, double least)
{
    const double enough = 2; /* times the quick ones: calls vary */
    if (!(c->quick > 0) || c->after <= enough * c->quick) return c->after;
    return c->size == FM_TRACE_NO_LAYER && least > c->quick ? least : c->quick;
}

/* One collective on all its ranks: whether it took longer than bytes need. */
static void judge_length(fm_trace_analysis *a, const call *c, size_t n)
{
    double least = c->after;
    for (size_t i = 1; i < n; i++)
        if (c[i].after < least) least = c[i].after;
    for (size_t i = 0; i < n; i++) add_wait(a, &c[i], c[i].after - moving(&c[i], least));
}

static size_t length(const calls *c, size_t at)
{
    size_t n = 1;
    while (at + n < c->n && c->at[at + n].tag == c->at[at].tag) n++;
    return n;
}

/* The ranks of a group: the most that are seen in one of its calls. */
static size_t members(const calls *c, size_t at)
{
    const uint64_t group = c->at[at].tag >> 32;
    size_t         most  = 0;
    for (; at < c->n && c->at[at].tag >> 32 == group;) {
        const size_t n = length(c, at);
        if (n > most) most = n;
        at += n;
    }
    return most;
}

/* Calls of which a rank's ring has lost its part say nothing. */
static void judge_arrivals(fm_trace_analysis *a, calls *c)
{
    size_t n_member = 0;
    for (size_t at = 0; at < c->n;) {
        if (!at || c->at[at].tag >> 32 != c->at[at - 1].tag >> 32) n_member = members(c, at);
        const size_t n = length(c, at);
        if (n == n_member && n > 1) judge_arrival(a, c->at + at, n);
        at += n;
    }
}

static void judge_lengths(fm_trace_analysis *a, const calls *c)
{
    for (size_t at = 0; at < c->n;) {
        const size_t n = length(c, at);
        if (c->at[at].after >= 0) judge_length(a, c->at + at, n);
        at += n;
    }
}

/* --- quick calls -------------------------------------------------------------- */

static int compare_alike(const call *x, const call *y)
{
    if (x->row != y->row) return x->row - y->row;
    if (x->rank != y->rank) return x->rank - y->rank;
    return (int)x->size - (int)y->size;
}

static int by_likeness(const void *a, const void *b)
{
    const call *x = a, *y = b;
    const int   order = compare_alike(x, y);
    return order ? order : (x->after > y->after) - (x->after < y->after);
}

/* Of the calls of a kind, size and rank the lower quartile: a quarter of them met no stopped rank,
 * and one of them alone may be the error of a clock. */
static void find_quick(calls *c)
{
    enum { ENOUGH = 8 };
    qsort(c->at, c->n, sizeof *c->at, by_likeness);
    for (size_t at = 0, end; at < c->n; at = end) {
        size_t known = at; /* those that are not come first */
        for (end = at; end < c->n && !compare_alike(&c->at[at], &c->at[end]); end++)
            known += c->at[end].after < 0;
        if (end - known < ENOUGH) continue;
        const double quick = c->at[known + (end - known) / 4].after;
        for (size_t i = known; i < end; i++) c->at[i].quick = quick;
    }
}

/* --- the rank that is late --------------------------------------------------- */

static double own_mean(const fm_trace_job *j, int row, int i)
{
    const fm_trace_sum *s = fm_trace_sum_of(j, row, i);
    return s && s->count ? fm__seconds(s->total_ns - s->comm_ns) / (double)s->count : 0;
}

/* Mean of a call on rank i over the median of the others; 1: there are none. */
static double ratio_of(const fm_trace_job *j, int row, int i, double *others)
{
    enum { ENOUGH = 4096 };
    double x[ENOUGH];
    int    n = 0;
    for (int k = 0; k < j->n && n < ENOUGH; k++)
        if (k != i && own_mean(j, row, k) > 0) x[n++] = own_mean(j, row, k);
    *others = fm__median(x, n);
    return *others > 0 ? own_mean(j, row, i) / *others : 1;
}

/* Over all ops that others have, too: its time over what the median of the others needs. */
static void compare_work(fm_trace_analysis *a, fm_late *l)
{
    const fm_trace_job *j    = a->job;
    double              mine = 0, usual = 0, most = 0;
    l->row = -1;
    for (int r = 0; r < j->n_row; r++) {
        double              others = 0;
        const fm_trace_sum *s      = fm_trace_sum_of(j, r, l->rank);
        if (j->row[r].key.cls != FM_TRACE_WORK || !s) continue;
        const double ratio = ratio_of(j, r, l->rank, &others), n = (double)s->count;
        mine += n * others * ratio;
        usual += n * others;
        if (n * others * (ratio - 1) <= most) continue;
        most          = n * others * (ratio - 1);
        l->row        = r;
        l->row_slower = ratio - 1;
    }
    l->slower = usual > 0 ? mine / usual - 1 : 0;
}

/* A rank stands out if it causes much more waiting than its part. */
static void accuse(fm_trace_analysis *a)
{
    double all = 0;
    int    top = 0;
    for (int i = 0; i < a->job->n; i++) {
        all += a->caused[i];
        if (a->caused[i] > a->caused[top]) top = i;
    }
    const double even = 1.0 / a->job->n;
    a->late           = (fm_late){.rank = -1, .row = -1};
    if (a->job->n < 2 || !(all > 0) || a->caused[top] < all * (even + 0.25 * (1 - even))) return;
    a->late = (fm_late){.rank = top, .caused = a->caused[top], .share = a->caused[top] / all};
    compare_work(a, &a->late);
}

/* Divides the waiting inside the calls of a collective as that for late arrivals. */
static void divide_waiting(fm_trace_analysis *a)
{
    const int n = a->job->n;
    for (int i = 0; i < a->n_total; i++) {
        double *by       = a->in_row + a->total[i].row * n;
        double  arrivals = 0;
        for (int k = 0; k < n; k++) arrivals += by[k];
        for (int k = 0; k < n && arrivals > 0; k++) {
            by[k] *= a->total[i].wait / arrivals;
            a->caused[k] += by[k];
        }
    }
}

/* For each collective: the rank that others waited for most. */
static void find_late_rows(fm_trace_analysis *a)
{
    for (int i = 0; i < a->n_total; i++) {
        fm_key_total *t   = &a->total[i];
        const double *by  = a->in_row + t->row * a->job->n;
        double        all = 0;
        for (int k = 0; k < a->job->n; k++) {
            all += by[k];
            if (by[k] > (t->late < 0 ? 0 : by[t->late])) t->late = k;
        }
        t->late_share = t->late < 0 ? 0 : by[t->late] / all;
    }
}

/* The ring shows a part of the calls; waits are scaled to all of them. */
static void scale(fm_trace_analysis *a, double busy)
{
    const double seen = fm__part(a->matched, busy), by = seen > 0 ? 1 / seen : 0;
    for (int i = 0; i < a->job->n; i++) {
        a->caused[i] *= by;
        a->account[i].wait *= by;
        if (a->account[i].wait > a->account[i].comm) a->account[i].wait = a->account[i].comm;
        a->all.wait += a->account[i].wait;
    }
    for (int i = 0; i < a->n_total; i++) {
        a->total[i].wait *= by;
        if (a->total[i].wait > a->total[i].busy) a->total[i].wait = a->total[i].busy;
    }
    a->matched = seen;
}

fm_status fm__find_late(fm_trace_analysis *a)
{
    calls  c    = {0};
    double busy = 0;
    FM_TRY(gather(&c, a->job));
    for (int i = 0; i < a->n_total; i++) {
        const fm_trace_key *k = &a->job->row[a->total[i].row].key;
        if (k->cls == FM_TRACE_COLLECTIVE && !(k->flags & FM_TRACE_AWAITS))
            busy += a->total[i].busy;
    }
    qsort(c.at, c.n, sizeof *c.at, by_tag);
    judge_arrivals(a, &c);
    find_quick(&c);
    qsort(c.at, c.n, sizeof *c.at, by_tag);
    judge_lengths(a, &c);
    divide_waiting(a);
    find_late_rows(a);
    scale(a, busy);
    accuse(a);
    free(c.at);
    return FM_OK;
}
