/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/analysis.h"

#include <stdlib.h>

#include "trace/histogram.h"
#include "trace_report/analysis_internal.h"

const char *fm__class_text(const fm_trace_key *k)
{
    static const char *const cls[] = {
#define NAME(id, text) text,
        FM_TRACE_CLASS_MAP(NAME)
#undef NAME
    };
    return cls[k->cls];
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fm__median(double *x, int n)
{
    if (n <= 0) return 0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

/* --- a rank's time ----------------------------------------------------------- */

static void add_key(fm_account *a, const fm_trace_key *k, const fm_trace_sum *s)
{
    const double total = fm__seconds(s->total_ns), comm = fm__seconds(s->comm_ns),
                 own = total - comm;
    switch (k->cls) {
    case FM_TRACE_IDLE: a->idle += total; break;
    case FM_TRACE_GAP: a->gap += own; break;
    case FM_TRACE_WORK: a->work += own; break;
    case FM_TRACE_PHASE:
        if (k->flags & FM_TRACE_HOLDS_WORK)
            a->rest += own;
        else if (k->flags & FM_TRACE_AWAITS)
            a->await += total;
        else if (k->flags & FM_TRACE_IS_DEVICE)
            a->work += own;
        else
            a->host += own;
        break;
    case FM_TRACE_COLLECTIVE:
        if (!(k->flags & FM_TRACE_AWAITS)) a->comm += comm;
        break;
    default: break;
    }
}

/* On a device: what it did, one op after the other. */
static void add_device_key(fm_account *a, const fm_trace_key *k, const fm_trace_sum *s)
{
    if (!(k->flags & FM_TRACE_IS_DEVICE) || (k->flags & FM_TRACE_BESIDE)) return;
    if (k->cls == FM_TRACE_WORK) a->work += fm__seconds(s->total_ns - s->comm_ns);
    if (k->cls == FM_TRACE_COLLECTIVE) a->comm += fm__seconds(s->comm_ns);
}

static int has_device_ops(const fm_trace_file *f)
{
    for (int k = 0; k < f->n_key; k++)
        if (f->key[k].cls == FM_TRACE_WORK && f->key[k].flags & FM_TRACE_IS_DEVICE &&
            f->sum[k].count)
            return 1;
    return 0;
}

/* The host works ahead of its device: only what it keeps the device waiting counts. */
static fm_account account_of_device(const fm_trace_file *f)
{
    fm_account a = {.wall = fm__seconds(f->head.last_ns), .has_device = 1};
    for (int k = 0; k < f->n_key; k++) {
        add_device_key(&a, &f->key[k], &f->sum[k]);
        if (f->key[k].cls == FM_TRACE_IDLE) a.idle += fm__seconds(f->sum[k].total_ns);
    }
    const double left = a.wall - a.idle - a.work - a.comm;
    a.rest            = left > 0 ? left : 0;
    return a;
}

static fm_account account_of(const fm_trace_file *f)
{
    fm_account a = {.wall = fm__seconds(f->head.last_ns)};
    if (has_device_ops(f)) return account_of_device(f);
    for (int k = 0; k < f->n_key; k++) add_key(&a, &f->key[k], &f->sum[k]);
    a.rest = a.rest > a.work ? a.rest - a.work : 0;
    return a;
}

/* A rank that waits to be told what is next is idle while the first rank is. */
static void share_idle(fm_trace_analysis *a)
{
    for (int i = 1; i < a->job->n; i++) {
        fm_account  *r    = &a->account[i];
        const double idle = a->account[0].idle < r->await ? a->account[0].idle : r->await;
        r->idle += idle;
        r->await -= idle;
    }
}

static void sum_up(fm_trace_analysis *a)
{
    for (int i = 0; i < a->job->n; i++) {
        const fm_account *r = &a->account[i];
        a->all.wall += r->wall;
        a->all.idle += r->idle;
        a->all.gap += r->gap;
        a->all.host += r->host;
        a->all.await += r->await;
        a->all.work += r->work;
        a->all.comm += r->comm;
        a->all.rest += r->rest;
        a->all.has_device |= r->has_device;
    }
    a->active = a->all.wall > a->all.idle ? a->all.wall - a->all.idle : 0;
}

/* --- keys -------------------------------------------------------------------- */

static void add_rank(fm_key_total *t, uint64_t *bucket, const fm_trace_sum *s)
{
    t->count += s->count;
    t->rows += s->rows;
    t->total += fm__seconds(s->total_ns);
    t->own += fm__seconds(s->total_ns - s->comm_ns);
    t->busy += fm__seconds(s->comm_ns);
    t->bytes += s->bytes;
    t->flops += s->flops;
    if (fm__seconds(s->max_ns) > t->max) t->max = fm__seconds(s->max_ns);
    for (int b = 0; b < FM_TRACE_BUCKETS; b++) bucket[b] += s->bucket[b];
}

/* The middle of a bucket can lie outside of what was measured. */
static double quantile(const uint64_t *bucket, double q, double least, double most)
{
    const double x = 1e-9 * fm_bucket_quantile(bucket, q);
    return x < least ? least : x > most ? most : x;
}

/* A quantile that is below the mean only because a bucket has a width. */
static double not_rounded_below(double mean, double quantile)
{
    const double half_bucket = 1.0 / 32;
    return quantile < mean && mean <= quantile * (1 + half_bucket) ? mean : quantile;
}

static fm_key_total total_of(const fm_trace_job *j, int row, const fm_rates *rates)
{
    fm_key_total t                        = {.row = row, .late = -1};
    uint64_t     bucket[FM_TRACE_BUCKETS] = {0};
    double       least                    = 0;
    for (int i = 0; i < j->n; i++) {
        const fm_trace_sum *s = fm_trace_sum_of(j, row, i);
        if (!s) continue;
        if (s->count && (!t.count || fm__seconds(s->min_ns) < least))
            least = fm__seconds(s->min_ns);
        add_rank(&t, bucket, s);
        t.limit += fm__limit_of(j, rates, &j->row[row].key, s, i, &t.memory_limit);
    }
    t.mean = fm__part(t.total, (double)t.count);
    t.p50  = quantile(bucket, 0.5, least, t.max);
    t.p99  = not_rounded_below(t.mean, quantile(bucket, 0.99, least, t.max));
    return t;
}

static int goes_before(const fm_trace_job *j, const fm_key_total *x, const fm_key_total *y)
{
    const int p = j->row[x->row].key.cls, q = j->row[y->row].key.cls;
    if (p != q) return p < q;
    return p == FM_TRACE_WORK ? x->own > y->own : x->total > y->total;
}

static void insert(fm_trace_analysis *a, fm_key_total t)
{
    int at = a->n_total++;
    for (; at > 0 && goes_before(a->job, &t, &a->total[at - 1]); at--)
        a->total[at] = a->total[at - 1];
    a->total[at] = t;
}

static void find_interval(fm_trace_analysis *a)
{
    int any = 0;
    for (int i = 0; i < a->job->n; i++) {
        const fm_trace_file *f = &a->job->file[i];
        for (size_t s = 0; s < f->n_span; s++) {
            const double begin = 1e-9 * (double)fm_trace_time(a->job, i, f->span[s].begin_ns);
            const double end   = begin + fm__seconds(f->span[s].dur_ns);
            const int    cls   = f->key[f->span[s].key].cls;
            if (cls == FM_TRACE_IDLE || cls == FM_TRACE_TASK) continue;
            if (!any || begin < a->began) a->began = begin;
            if (!any || end > a->ended) a->ended = end;
            any = 1;
        }
    }
}

fm_status fm_trace_analyse(fm_trace_analysis *out, const fm_trace_job *j, const fm_rates *rates)
{
    fm_trace_analysis a = {.job     = j,
                           .rates   = rates,
                           .account = calloc((size_t)j->n, sizeof *a.account),
                           .caused  = calloc((size_t)j->n, sizeof *a.caused),
                           .in_row =
                               calloc((size_t)(j->n_row + 1) * (size_t)j->n, sizeof *a.in_row),
                           .total = calloc((size_t)j->n_row + 1, sizeof *a.total)};
    fm_status         rc =
        a.account && a.caused && a.in_row && a.total ? FM_OK : fm_fail(FM_E_OOM, "analysis");
    for (int i = 0; rc == FM_OK && i < j->n; i++) a.account[i] = account_of(&j->file[i]);
    for (int r = 0; rc == FM_OK && r < j->n_row; r++) {
        const fm_key_total t = total_of(j, r, rates);
        if (t.count) insert(&a, t);
    }
    if (rc == FM_OK) {
        share_idle(&a);
        sum_up(&a);
        find_interval(&a);
        rc = fm__find_late(&a);
    }
    if (rc == FM_OK) rc = fm__find_stalls(&a);
    if (rc == FM_OK)
        *out = a;
    else
        fm_trace_analysis_fini(&a);
    return rc;
}

void fm_trace_analysis_fini(fm_trace_analysis *a)
{
    free(a->account);
    free(a->caused);
    free(a->in_row);
    free(a->total);
    *a = (fm_trace_analysis){0};
}
