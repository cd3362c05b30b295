/* SPDX-License-Identifier: Apache-2.0 */
/* Throughput and latencies of a simulation that has ended. */
#include <math.h>
#include <stdlib.h>

#include "base/ascending.h"
#include "llm/simulate/simulate_internal.h"

/* Mean and 99th percentile; sorts x. */
static void describe(double *x, int n, double *mean, double *p99)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    fm_sort_ascending(x, (size_t)n);
    *mean = n ? sum / n : 0;
    *p99  = n ? x[(int)(0.99 * (n - 1) + 0.5)] : 0;
}

static void add_tiers(fm_tier_policy_stats *sum, const fm_tier_policy *p)
{
    const fm_tier_policy_stats s = fm_tier_policy_get_stats(p);
    sum->n_load += s.n_load;
    sum->n_declined += s.n_declined;
    sum->disk_tokens += s.disk_tokens;
    sum->host_tokens += s.host_tokens;
    sum->n_host_page += s.n_host_page;
    sum->n_unsaved += s.n_unsaved;
    sum->load_seconds += s.load_seconds;
}

static void add_stats(fm_sim_result *out, const partition *p)
{
    const fm_sched_stats s = fm_sched_get_stats(p->sched);
    const fm_kv_stats    k = fm_kv_get_stats(p->kv);
    fm_sched_add_stats(&out->sched, &s);
    fm_kv_add_stats(&out->kv, &k);
    if (p->tiers) add_tiers(&out->tiers, p->tiers);
}

static void add_replica(fm_sim_result *out, const world *w, const replica *r)
{
    for (int i = 0; i < fm__world_n_partition(w); i++) add_stats(out, fm__world_partition(w, r, i));
}

/* Requests that are measured: [*from, *to). */
static void measured(const world *w, int *from, int *to)
{
    const int edge = w->sim->is_steady ? w->sim->concurrency : 0;
    *from          = edge;
    *to            = w->n - edge;
}

static int64_t tokens_of(const life *l)
{
    return (int64_t)l->request.n_prompt + fm_request_n_output(&l->request);
}

/* A steady state is measured from the first request that is asked for again to the last one:
 * answers that end in between, by the time in between. */
static double throughput_of(const world *w)
{
    const double from = w->sim->is_steady ? w->life[w->sim->concurrency].arrived : 0;
    const double to   = w->sim->is_steady ? w->life[w->n - 1].arrived : w->now;
    int64_t      n    = 0;
    for (int i = 0; i < w->n; i++) {
        const life *l = &w->life[i];
        if (!w->sim->is_steady || (l->last > from && l->last <= to)) n += tokens_of(l);
    }
    return to > from ? (double)n / (to - from) : 0;
}

fm_status fm__world_summarise(fm_sim_result *out, const world *w)
{
    int     from, to;
    int     n_first = 0, n_many = 0;
    double *ttft = malloc(2 * ((size_t)w->n + 1) * sizeof *ttft), *tpot = ttft + w->n + 1;
    if (!ttft) return fm_fail(FM_E_OOM, "latencies");
    *out = (fm_sim_result){.seconds = w->now, .throughput = throughput_of(w), .busy = w->busy};
    measured(w, &from, &to);
    for (int i = 0; i < w->n_replica; i++) add_replica(out, w, &w->replica[i]);
    for (int i = 0; i < w->n; i++) {
        const life *l        = &w->life[i];
        const int   n_output = fm_request_n_output(&l->request);
        out->n_input += l->request.n_prompt;
        out->n_output += n_output;
        if (i < from || i >= to) continue;
        if (l->first >= 0) ttft[n_first++] = l->first - l->arrived;
        if (n_output > 1) tpot[n_many++] = (l->last - l->first) / (n_output - 1);
    }
    describe(ttft, n_first, &out->mean_ttft, &out->p99_ttft);
    describe(tpot, n_many, &out->mean_tpot, &out->p99_tpot);
    free(ttft);
    return FM_OK;
}
