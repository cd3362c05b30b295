/* SPDX-License-Identifier: Apache-2.0 */
/* The quantities of SGLang's bench_serving, by its definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_online.h"

void fm_online_answer_fini(fm_online_answer *a)
{
    free(a->itl);
    free(a->id);
    free(a->error);
    fm_str_fini(&a->text);
    fm_str_fini(&a->unread);
    *a = (fm_online_answer){0};
}

static void add_gaps(fm_online_answer *a, double each, int n)
{
    if (a->n_itl + n > a->cap_itl) {
        const int cap   = a->cap_itl * 2 > a->n_itl + n ? a->cap_itl * 2 : a->n_itl + n + 32;
        double   *grown = realloc(a->itl, (size_t)cap * sizeof *grown);
        FM_BUG_UNLESS(grown != NULL);
        a->itl     = grown;
        a->cap_itl = cap;
    }
    for (int i = 0; i < n; i++) a->itl[a->n_itl++] = each;
}

/* TTFT counts to the first text.  A server that knows only ids sends none: its
 * tokens are timed as they come, until a first text starts the count anew. */
void fm_online_arrived(fm_online_answer *a, double now, int has_text, int n_new)
{
    if (n_new < 0) n_new = has_text;
    if (n_new == 0 && !(has_text && !a->has_text)) return;
    if (a->ttft == 0 || (has_text && !a->has_text)) {
        a->ttft  = now - a->sent;
        a->n_itl = 0;
    } else {
        add_gaps(a, (now - a->recent) / n_new, n_new);
    }
    a->recent = now;
    a->n_seen += n_new;
    a->has_text |= has_text;
}

/* ---- spread ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* numpy.percentile: linear between the two nearest ranks. */
double fm_percentile(const double *sorted, size_t n, double q)
{
    const double at = q / 100 * (double)(n - 1);
    const size_t i  = (size_t)at;
    if (i + 1 >= n) return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

fm_spread fm_spread_of(double *sample, size_t n)
{
    if (n == 0) return (fm_spread){0};
    qsort(sample, n, sizeof *sample, ascending);
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) sum += sample[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) square += (sample[i] - mean) * (sample[i] - mean);
    return (fm_spread){.mean   = mean,
                       .median = fm_percentile(sample, n, 50),
                       .std    = sqrt(square / (double)n),
                       .p90    = fm_percentile(sample, n, 90),
                       .p95    = fm_percentile(sample, n, 95),
                       .p99    = fm_percentile(sample, n, 99),
                       .max    = sample[n - 1]};
}

/* ---- samples ---- */

typedef struct {
    double *x;
    size_t  n, cap;
} samples;

static void add(samples *s, double seconds)
{
    if (s->n == s->cap) {
        s->cap        = s->cap ? 2 * s->cap : 256;
        double *grown = realloc(s->x, s->cap * sizeof *grown);
        FM_BUG_UNLESS(grown != NULL);
        s->x = grown;
    }
    s->x[s->n++] = 1000 * seconds;
}

static fm_spread spread_and_free(samples *s)
{
    const fm_spread out = fm_spread_of(s->x, s->n);
    free(s->x);
    return out;
}

static void measure_latencies(fm_online_metrics *m, const fm_online_answer *a, int n)
{
    samples e2e = {0}, ttft = {0}, tpot = {0}, itl = {0};
    for (int i = 0; i < n; i++) {
        if (a[i].error) continue;
        add(&e2e, a[i].latency);
        add(&ttft, a[i].ttft);
        if (a[i].n_output > 1) add(&tpot, (a[i].latency - a[i].ttft) / (a[i].n_output - 1));
        for (int j = 0; j < a[i].n_itl; j++) add(&itl, a[i].itl[j]);
    }
    m->e2e  = spread_and_free(&e2e);
    m->ttft = spread_and_free(&ttft);
    m->tpot = spread_and_free(&tpot);
    m->itl  = spread_and_free(&itl);
}

/* ---- peaks over one-second buckets ---- */

enum { MOST_BUCKETS = 10 * 1000 * 1000 };

static size_t bucket(double t, double start, size_t n)
{
    const double x = t - start;
    if (x <= 0) return 0;
    return x >= (double)n ? n - 1 : (size_t)x;
}

static void count_one(const fm_online_answer *a, double start, double *tokens, int *alive, size_t n)
{
    double t = a->sent + a->ttft;
    if (a->n_output > 0) tokens[bucket(t, start, n)] += 1;
    for (int j = 0; j < a->n_itl; j++) {
        t += a->itl[j];
        tokens[bucket(t, start, n)] += 1;
    }
    const size_t last = bucket(a->sent + a->latency, start, n);
    for (size_t i = bucket(a->sent, start, n); i <= last; i++) alive[i]++;
}

static void measure_peaks(fm_online_metrics *m, const fm_online_answer *a, int n)
{
    double start = INFINITY, end = -INFINITY;
    for (int i = 0; i < n; i++) {
        if (a[i].error) continue;
        start = fmin(start, a[i].sent);
        end   = fmax(end, a[i].sent + a[i].latency);
    }
    if (!(end >= start) || end - start > MOST_BUCKETS) return;

    const size_t n_bucket = (size_t)(end - start) + 1;
    double      *tokens   = calloc(n_bucket, sizeof *tokens);
    int         *alive    = calloc(n_bucket, sizeof *alive);
    FM_BUG_UNLESS(tokens && alive);
    for (int i = 0; i < n; i++)
        if (!a[i].error) count_one(&a[i], start, tokens, alive, n_bucket);
    for (size_t i = 0; i < n_bucket; i++) {
        m->max_output_per_s = fmax(m->max_output_per_s, tokens[i]);
        if (alive[i] > m->max_concurrent) m->max_concurrent = alive[i];
    }
    free(tokens);
    free(alive);
}

static void add_cached(fm_online_cached *sum, const fm_online_cached *c)
{
    sum->has_parts |= c->has_parts;
    sum->all += c->all;
    sum->device += c->device;
    sum->host += c->host;
    sum->storage += c->storage;
}

fm_online_metrics fm_online_measure(const fm_online_answer *a, int n, double duration)
{
    fm_online_metrics m = {
        .duration = duration, .n_retokenized = -1, .accept_length = NAN, .accept_rate = NAN};
    double            busy = 0;
    for (int i = 0; i < n; i++) {
        if (a[i].error) {
            m.failed++;
            continue;
        }
        m.completed++;
        m.n_input += a[i].n_prompt;
        m.n_output += a[i].n_output;
        add_cached(&m.cached, &a[i].cached);
        busy += a[i].latency;
    }
    const double s       = duration > 0 ? duration : 1e-9;
    m.request_throughput = m.completed / s;
    m.input_throughput   = (double)m.n_input / s;
    m.output_throughput  = (double)m.n_output / s;
    m.total_throughput   = (double)(m.n_input + m.n_output) / s;
    m.concurrency        = busy / s;
    measure_latencies(&m, a, n);
    measure_peaks(&m, a, n);
    return m;
}

fm_status fm_online_verdict(const fm_online_metrics *m)
{
    if (m->failed <= m->completed) return FM_OK;
    if (!m->completed) return fm_fail(FM_E_COMM, "no request succeeded");
    return fm_fail(FM_E_COMM, "more requests failed (%d) than succeeded (%d)", m->failed,
                   m->completed);
}
