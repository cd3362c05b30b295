/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace_report/analysis_internal.h"
#include "trace_report/verdict.h"
#include "trace_report/welch.h"

typedef struct {
    const fm_trace_key *key;
    fm_sample           a, b; /* seconds of a call, without collectives inside */
    double              p;
    double              gain; /* seconds of B that it costs more than at A's mean; below 0: less */
} change;

static fm_sample sample_of(const fm_trace_job *j, int row)
{
    double n = 0, sum = 0, square = 0;
    for (int i = 0; i < j->n; i++) {
        const fm_trace_sum *s = fm_trace_sum_of(j, row, i);
        if (!s) continue;
        n += (double)s->count;
        sum += fm__seconds(s->total_ns -
                           (j->row[row].key.cls == FM_TRACE_COLLECTIVE ? 0 : s->comm_ns));
        square += 1e-18 * s->square;
    }
    const double mean     = fm__part(sum, n),
                 variance = n > 1 ? (square - n * mean * mean) / (n - 1) : 0;
    return (fm_sample){n, mean, variance > 0 ? variance : 0};
}

/* Of a device's ops a part was measured and stands for the rest. */
static fm_sample measured(fm_sample s, const fm_trace_key *k)
{
    if (k->cls == FM_TRACE_WORK && k->flags & FM_TRACE_IS_DEVICE) s.n /= FM_TRACE_SAMPLED;
    return s;
}

static int find(const fm_trace_job *j, const fm_trace_key *k)
{
    for (int r = 0; r < j->n_row; r++) {
        const fm_trace_key *q = &j->row[r].key;
        if (q->cls == k->cls && !strcmp(q->name, k->name) && !strcmp(q->part, k->part)) return r;
    }
    return -1;
}

/* Of collectives the spread is not kept: their time depends on other ranks anyway. */
static int is_compared(const fm_trace_key *k)
{
    return k->cls == FM_TRACE_WORK || k->cls == FM_TRACE_PHASE || k->cls == FM_TRACE_STEP ||
           k->cls == FM_TRACE_GAP || k->cls == FM_TRACE_TASK;
}

static int by_weight(const void *x, const void *y)
{
    const double a = fabs(((const change *)x)->gain), b = fabs(((const change *)y)->gain);
    return (a < b) - (a > b);
}

/* Rows of steps per second of active time on a rank. */
static double rate_of(const fm_trace_analysis *a)
{
    double rows = 0;
    for (int i = 0; i < a->n_total; i++)
        if (a->job->row[a->total[i].row].key.cls == FM_TRACE_STEP) rows += (double)a->total[i].rows;
    return fm__part(rows, a->active);
}

static void put_change(fm_str *out, const change *c)
{
    fm_str name = {0};
    fm_trace_key_text(&name, c->key);
    fm_str_printf(out, "%-30.30s", name.text);
    fm_str_fini(&name);
    for (int i = 0; i < 2; i++) {
        fm_str time = {0};
        fm_trace_time_text(&time, i ? c->b.mean : c->a.mean);
        fm_str_printf(out, " %10s", time.text);
        fm_str_fini(&time);
    }
    fm_str_printf(out, " %+8.1f %% %+9.3f s  %s\n", 100 * (fm__part(c->b.mean, c->a.mean) - 1),
                  c->gain, c->p < 1e-3 ? "significant" : "chance");
}

static int gather(change *c, const fm_trace_job *a, const fm_trace_job *b)
{
    int n = 0;
    for (int r = 0; r < a->n_row; r++) {
        const int q = find(b, &a->row[r].key);
        if (q < 0 || !is_compared(&a->row[r].key)) continue;
        change x = {.key = &a->row[r].key, .a = sample_of(a, r), .b = sample_of(b, q)};
        if (!(x.a.n > 0) || !(x.b.n > 0)) continue;
        x.p    = fm_welch_p(measured(x.a, x.key), measured(x.b, x.key));
        x.gain = x.b.n * (x.b.mean - x.a.mean);
        c[n++] = x;
    }
    qsort(c, (size_t)n, sizeof *c, by_weight);
    return n;
}

static void put_rate(fm_str *out, const fm_trace_analysis *a, const fm_trace_analysis *b)
{
    const double x = rate_of(a), y = rate_of(b);
    const char  *row = a->job->file[0].head.row;
    if (!(x > 0) || !(y > 0)) return;
    fm_str_printf(out, "%.1f %ss a second and rank before, %.1f after: %s by %.1f %%.\n", x, row, y,
                  y >= x ? "faster" : "slower", 100 * fabs(y / x - 1));
}

static void put_cause(fm_str *out, const change *c, int n)
{
    for (int i = 0; i < n; i++) {
        if (c[i].p >= 1e-3 || (c[i].key->cls != FM_TRACE_WORK && c[i].key->cls != FM_TRACE_GAP))
            continue;
        fm_str_puts(out, "What weighs most: ");
        fm_trace_key_text(out, c[i].key);
        fm_str_printf(out, ", %+.1f %% a call, %+.3f s in all.\n",
                      100 * (fm__part(c[i].b.mean, c[i].a.mean) - 1), c[i].gain);
        return;
    }
    fm_str_puts(out, "No op changed by more than chance.\n");
}

void fm_trace_compare(fm_str *out, const fm_trace_analysis *a, const fm_trace_analysis *b)
{
    enum { TOP = 30 };
    change *c = calloc((size_t)a->job->n_row + 1, sizeof *c);
    FM_BUG_UNLESS(c != NULL);
    const int n = gather(c, a->job, b->job);
    put_rate(out, a, b);
    put_cause(out, c, n);
    fm_str_printf(out, "\n%-30s %10s %10s %10s %11s\n", "mean of a call", "before", "after",
                  "change", "in all");
    for (int i = 0; i < n && i < TOP; i++) put_change(out, &c[i]);
    if (n > TOP) fm_str_printf(out, "and %d that weigh less\n", n - TOP);
    free(c);
}
