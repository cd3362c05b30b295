/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/histogram.h"
#include "trace_report/analysis_internal.h"

static const double chance = 1e-3;

/* --- samples ----------------------------------------------------------------- */

/* The sums of a key over ranks. */
typedef struct {
    double   n, seconds, square;
    uint64_t bucket[FM_TRACE_BUCKETS];
} sums;

/* What changed is the same op where the type of its factors did. */
static int is_same(const fm_trace_key *a, const fm_trace_key *b)
{
    return a->cls == b->cls && !strcmp(a->name, b->name) && !strcmp(a->part, b->part);
}

static int is_collective(const fm_trace_key *k) { return k->cls == FM_TRACE_COLLECTIVE; }

static void add_sum(sums *to, const fm_trace_key *k, const fm_trace_sum *s)
{
    to->n += (double)s->count;
    to->seconds += fm__seconds(is_collective(k) ? s->comm_ns : s->total_ns - s->comm_ns);
    to->square += 1e-18 * s->square;
    for (int i = 0; i < FM_TRACE_BUCKETS; i++) to->bucket[i] += s->bucket[i];
}

static void add_key(sums *to, const fm_trace_job *j, const fm_trace_key *k)
{
    for (int r = 0; r < j->n_row; r++)
        for (int i = 0; i < j->n && is_same(&j->row[r].key, k); i++) {
            const fm_trace_sum *s = fm_trace_sum_of(j, r, i);
            if (s) add_sum(to, k, s);
        }
}

/* Squares are kept of the time outside collectives; in them the histogram tells the spread. */
static double spread_of(const sums *s)
{
    double mean = 0, square = 0;
    for (int i = 0; i < FM_TRACE_BUCKETS; i++)
        mean += 1e-9 * fm_bucket_middle(i) * (double)s->bucket[i] / s->n;
    for (int i = 0; i < FM_TRACE_BUCKETS; i++) {
        const double off = 1e-9 * fm_bucket_middle(i) - mean;
        square += (double)s->bucket[i] * off * off;
    }
    return square / (s->n - 1);
}

static fm_moments sample_of(const fm_trace_job *j, const fm_trace_key *k)
{
    sums s = {0};
    add_key(&s, j, k);
    const double mean = fm__part(s.seconds, s.n);
    if (s.n < 2) return (fm_moments){s.n, mean, 0};
    const double variance =
        is_collective(k) ? spread_of(&s) : (s.square - s.n * mean * mean) / (s.n - 1);
    return (fm_moments){s.n, mean, variance > 0 ? variance : 0};
}

/* Of a device's ops a part was measured and stands for the rest. */
static fm_moments measured(fm_moments s, const fm_trace_key *k)
{
    if (k->cls == FM_TRACE_WORK && k->flags & FM_TRACE_IS_DEVICE) s.n /= FM_TRACE_SAMPLED;
    return s;
}

/* --- changes ----------------------------------------------------------------- */

/* `scale`: rows of the second run for a row of the first. */
typedef struct {
    const fm_trace_analysis *a, *b;
    double                   scale;
} runs;

/* Keys that divide a rank's time, as fm_account does; what the host does beside a device is none.
 */
static int is_part(const runs *r, const fm_trace_key *k)
{
    const int on_device = r->a->all.has_device || r->b->all.has_device;
    switch (k->cls) {
    case FM_TRACE_WORK:
        return !(k->flags & FM_TRACE_BESIDE) && (!on_device || k->flags & FM_TRACE_IS_DEVICE);
    case FM_TRACE_COLLECTIVE:
        return !(k->flags & FM_TRACE_AWAITS) && (!on_device || k->flags & FM_TRACE_IS_DEVICE);
    case FM_TRACE_PHASE: return !on_device && !(k->flags & (FM_TRACE_HOLDS_WORK | FM_TRACE_AWAITS));
    default: return k->cls == FM_TRACE_GAP && !on_device;
    }
}

static fm_change_kind kind_of(const runs *r, const fm_trace_change *c)
{
    const double fewest = 0.95, most = 1.05; /* calls a row, over those before */
    const double calls = fm__part(c->b.n, c->a.n * r->scale);
    if (!(c->a.n > 0)) return FM_CHANGE_NEW;
    if (!(c->b.n > 0)) return FM_CHANGE_GONE;
    if (c->p < chance) return FM_CHANGE_SIGNIFICANT;
    return calls < fewest || calls > most ? FM_CHANGE_CALLS : FM_CHANGE_CHANCE;
}

static void add_change(fm_trace_comparison *o, const runs *r, const fm_trace_key *k)
{
    for (int i = 0; i < o->n; i++)
        if (is_same(&o->change[i].key, k)) return;
    fm_trace_change c = {.key     = *k,
                         .is_part = is_part(r, k),
                         .a       = sample_of(r->a->job, k),
                         .b       = sample_of(r->b->job, k)};
    if (k->cls == FM_TRACE_IDLE || (!(c.a.n > 0) && !(c.b.n > 0))) return;
    c.p               = fm_welch_p(measured(c.a, k), measured(c.b, k));
    c.more            = c.b.n * c.b.mean - r->scale * c.a.n * c.a.mean;
    c.kind            = kind_of(r, &c);
    o->change[o->n++] = c;
}

/* What no key has: the rest of the account. */
static void add_rest(fm_trace_comparison *o, const runs *r, const char *name, double a, double b)
{
    fm_trace_change c = {.key     = {.cls = FM_TRACE_GAP},
                         .is_part = 1,
                         .a       = {1, a, 0},
                         .b       = {1, b, 0},
                         .more    = b - r->scale * a,
                         .kind    = FM_CHANGE_SUM};
    snprintf(c.key.name, sizeof c.key.name, "%s", name);
    if (a > 0 || b > 0) o->change[o->n++] = c;
}

static int by_weight(const void *x, const void *y)
{
    const double a = fabs(((const fm_trace_change *)x)->more),
                 b = fabs(((const fm_trace_change *)y)->more);
    return (a < b) - (a > b);
}

/* The part that weighs most among those that changed as the whole did.  Where the whole hardly
 * changed, in any direction. */
static int cause_of(const fm_trace_comparison *o)
{
    const double hardly = 0.01, least = 0.002;
    const int    any = fabs(o->more) < hardly * o->active_b;
    for (int i = 0; i < o->n; i++) {
        const fm_trace_change *c = &o->change[i];
        if (fabs(c->more) < least * o->active_b) break;
        if (c->is_part && c->kind != FM_CHANGE_CHANCE && (any || c->more * o->more > 0)) return i;
    }
    return -1;
}

static double rows_of(const fm_trace_analysis *a)
{
    double rows = 0;
    for (int i = 0; i < a->n_total; i++)
        if (a->job->row[a->total[i].row].key.cls == FM_TRACE_STEP) rows += (double)a->total[i].rows;
    return rows;
}

static void find_changes(fm_trace_comparison *o, const runs *r)
{
    const int on_device = r->a->all.has_device || r->b->all.has_device;
    for (int i = 0; i < r->a->job->n_row; i++) add_change(o, r, &r->a->job->row[i].key);
    for (int i = 0; i < r->b->job->n_row; i++) add_change(o, r, &r->b->job->row[i].key);
    add_rest(o, r, on_device ? "device has nothing to do" : "between ops", r->a->all.rest,
             r->b->all.rest);
    add_rest(o, r, "waiting for the next plan", r->a->all.await, r->b->all.await);
    qsort(o->change, (size_t)o->n, sizeof *o->change, by_weight);
}

fm_status fm_trace_compare(fm_trace_comparison *out, const fm_trace_analysis *a,
                           const fm_trace_analysis *b)
{
    enum { RESTS = 2 };
    const double        x = rows_of(a), y = rows_of(b);
    const runs          r = {a, b, x > 0 && y > 0 ? y / x : 1};
    fm_trace_comparison o = {.more     = b->active - r.scale * a->active,
                             .rate_a   = fm__part(x, a->active),
                             .rate_b   = fm__part(y, b->active),
                             .active_b = b->active,
                             .row      = a->job->file[0].head.row,
                             .task     = a->job->file[0].head.task};
    o.change = calloc((size_t)(a->job->n_row + b->job->n_row + RESTS), sizeof *o.change);
    if (!o.change) return fm_fail(FM_E_OOM, "comparison of traces");
    find_changes(&o, &r);
    o.cause = cause_of(&o);
    *out    = o;
    return FM_OK;
}

void fm_trace_comparison_fini(fm_trace_comparison *c)
{
    free(c->change);
    *c = (fm_trace_comparison){0};
}
