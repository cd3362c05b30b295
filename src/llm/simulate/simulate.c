/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llm/sched/partition_choice.h"

typedef struct {
    fm_kv    *kv;
    fm_sched *sched;
    int64_t   load; /* tokens its unfinished requests came with and may still produce */
} partition;

typedef struct {
    partition       *part;  /* [n_group] */
    const fm_batch **batch; /* [n_group] of the step in flight */
    int              in_flight;
    double           launched, ends;
} micro_batch;

typedef struct {
    micro_batch *micro;                     /* [n_lane] */
    double       free_at[FM_SIM_MAX_STAGE]; /* when each stage can begin */
    double       busy[FM_SIM_MAX_STAGE];    /* seconds that each has computed */
    int64_t      load;
} replica;

/* What becomes of one request. */
typedef struct {
    fm_request            request;
    const fm_sim_request *asked;
    replica              *replica;
    partition            *part;
    double                arrived;
    double                first, last; /* when its first and its last token came; first < 0: none */
} life;

typedef struct {
    const fm_sim *sim;
    int           n_replica, n_lane, n_group, n_stage;
    replica      *replica;
    life         *life; /* [n] */
    int           n, n_arrived, n_live;
    int32_t      *chosen; /* [out rows of a step] */
    double        now;
} world;

static int at_least_one(int n) { return n > 0 ? n : 1; }

/* --- begin and end ------------------------------------------------------------ */

static fm_status begin_life(life *l, const fm_sim_request *asked, int index)
{
    *l            = (life){.asked = asked, .first = -1};
    fm_request *r = &l->request;
    r->id         = (uint64_t)index;
    r->user       = l;
    r->n_prompt = r->n_token   = asked->n_prompt;
    r->sampling                = fm_sampling_default();
    r->sampling.ignore_eos     = 1;
    r->sampling.max_new_tokens = asked->n_output;
    r->token =
        malloc((size_t)(asked->n_prompt + asked->n_output + 1 + FM_MAX_DRAFT) * sizeof *r->token);
    if (!r->token) return fm_fail(FM_E_OOM, "requests");
    memcpy(r->token, asked->token, (size_t)asked->n_prompt * sizeof *r->token);
    return FM_OK;
}

static fm_status open_partition(partition *p, const fm_sim *sim)
{
    const fm_sched_options *o  = &sim->sched;
    const fm_kv_options     kv = {.n_page      = o->n_page,
                                  .page_size   = o->page_size,
                                  .max_lease   = o->max_running + o->other_leases + 1,
                                  .max_context = o->max_context,
                                  .share       = sim->share};
    FM_TRY(fm_kv_create(&p->kv, &kv));
    return fm_sched_create(&p->sched, o, p->kv);
}

static fm_status open_replica(replica *r, const world *w)
{
    r->micro = calloc((size_t)w->n_lane, sizeof *r->micro);
    if (!r->micro) return fm_fail(FM_E_OOM, "simulation");
    for (int i = 0; i < w->n_lane; i++) {
        micro_batch *m = &r->micro[i];
        m->part        = calloc((size_t)w->n_group, sizeof *m->part);
        m->batch       = calloc((size_t)w->n_group, sizeof *m->batch);
        if (!m->part || !m->batch) return fm_fail(FM_E_OOM, "simulation");
        for (int g = 0; g < w->n_group; g++) FM_TRY(open_partition(&m->part[g], w->sim));
    }
    return FM_OK;
}

static fm_status open_world(world *w, const fm_sim *sim, const fm_sim_request *request, int n)
{
    *w = (world){.sim       = sim,
                 .n         = n,
                 .n_replica = at_least_one(sim->n_replica),
                 .n_lane    = at_least_one(sim->n_lane),
                 .n_group   = at_least_one(sim->n_group),
                 .n_stage   = at_least_one(sim->n_stage)};
    if (w->n_stage > FM_SIM_MAX_STAGE)
        return fm_fail(FM_E_ARG, "more than %d stages", FM_SIM_MAX_STAGE);
    if (sim->is_steady && (sim->concurrency < 1 || n <= 2 * sim->concurrency))
        return fm_fail(FM_E_ARG, "%d requests of %d users show no steady state", n,
                       sim->concurrency);
    w->replica = calloc((size_t)w->n_replica, sizeof *w->replica);
    w->life    = calloc((size_t)n + 1, sizeof *w->life);
    w->chosen  = calloc((size_t)fm_sched_max_out(&sim->sched) + 1, sizeof *w->chosen);
    if (!w->life || !w->chosen || !w->replica) return fm_fail(FM_E_OOM, "simulation");
    for (int i = 0; i < w->n_replica; i++) FM_TRY(open_replica(&w->replica[i], w));
    for (int i = 0; i < n; i++) FM_TRY(begin_life(&w->life[i], &request[i], i));
    return FM_OK;
}

static void close_replica(replica *r, const world *w)
{
    for (int i = 0; r->micro && i < w->n_lane; i++) {
        micro_batch *m = &r->micro[i];
        for (int g = 0; m->part && g < w->n_group; g++) {
            fm_sched_destroy(m->part[g].sched);
            fm_kv_destroy(m->part[g].kv);
        }
        free(m->part);
        free(m->batch);
    }
    free(r->micro);
}

static void close_world(world *w)
{
    for (int i = 0; w->replica && i < w->n_replica; i++) close_replica(&w->replica[i], w);
    for (int i = 0; w->life && i < w->n; i++) free(w->life[i].request.token);
    free(w->replica);
    free(w->life);
    free(w->chosen);
}

/* --- who gets a request ------------------------------------------------------- */

static int64_t load_of(const life *l) { return (int64_t)l->asked->n_prompt + l->asked->n_output; }

static replica *least_loaded(const world *w)
{
    replica *best = &w->replica[0];
    for (int i = 1; i < w->n_replica; i++)
        if (w->replica[i].load < best->load) best = &w->replica[i];
    return best;
}

static int n_partition(const world *w) { return w->n_lane * w->n_group; }

static partition *partition_at(const world *w, const replica *r, int i)
{
    return &r->micro[i / w->n_group].part[i % w->n_group];
}

typedef struct {
    const world   *world;
    const replica *replica;
} partitions;

static fm_partition_view view_at(const void *ctx, int i)
{
    const partitions *all = ctx;
    const partition  *p   = partition_at(all->world, all->replica, i);
    return (fm_partition_view){.kv = p->kv, .sched = p->sched, .load = p->load};
}

static fm_partitions_view view_of(const partitions *all)
{
    return (fm_partitions_view){.n = n_partition(all->world), .at = view_at, .ctx = all};
}

static fm_status submit(world *w, life *l)
{
    l->arrived = w->sim->concurrency > 0 ? w->now : l->asked->arrival;
    w->n_live++;
    l->replica                    = least_loaded(w);
    const partitions         all  = {w, l->replica};
    const fm_partitions_view view = view_of(&all);
    const int place = fm_choose_partition(&view, l->request.token, l->request.n_prompt);
    l->part         = partition_at(w, l->replica, place);
    l->replica->load += load_of(l);
    l->part->load += load_of(l);
    return fm_sched_submit(l->part->sched, &l->request);
}

/* As fm__partitions_balance. */
static fm_status balance(world *w, replica *r, micro_batch *m)
{
    const partitions         all  = {w, r};
    const fm_partitions_view view = view_of(&all);
    for (int g = 0; g < w->n_group; g++) {
        const int lender = fm_choose_lender(&view, (int)(m - r->micro) * w->n_group + g);
        if (lender < 0) continue;
        partition  *to = &m->part[g], *from = partition_at(w, r, lender);
        fm_request *q = fm_sched_withdraw(from->sched);
        if (!q) continue;
        life *l = q->user;
        from->load -= load_of(l);
        to->load += load_of(l);
        l->part = to;
        FM_TRY(fm_sched_submit(to->sched, q));
    }
    return FM_OK;
}

/* --- a step ------------------------------------------------------------------- */

/* A token that no prompt has, another for each request and position. */
static int32_t invent(const fm_request *r)
{
    const uint32_t mixed = (uint32_t)r->id * 2654435761u + (uint32_t)r->n_token * 40503u;
    return (int32_t)(0x40000000u | (mixed & 0x3fffffffu));
}

static void propose(const fm_sim *sim, fm_sched *s)
{
    static const int32_t draft[FM_MAX_DRAFT];
    for (int i = 0; sim->n_draft > 0 && i < fm_sched_n_running(s); i++) {
        fm_request *r    = fm_sched_running(s, i);
        r->is_sequential = 1;
        fm_sched_propose(s, r, draft, sim->n_draft);
    }
}

static int plan(world *w, micro_batch *m)
{
    int n_row = 0;
    for (int g = 0; g < w->n_group; g++) {
        fm_sched *s = m->part[g].sched;
        fm_sched_set_time(s, w->now);
        propose(w->sim, s);
        m->batch[g] = fm_sched_plan(s);
        if (m->batch[g]) n_row += m->batch[g]->n_row;
    }
    return n_row > 0;
}

/* Through the stages: each begins when the one before has passed the rows on and it has done with
 * the step before. */
static fm_status launch(world *w, replica *r, micro_batch *m)
{
    fm_sim_times t = {0};
    FM_TRY(balance(w, r, m));
    m->in_flight = plan(w, m);
    if (!m->in_flight) return FM_OK;
    w->sim->step(w->sim->ctx, m->batch, &t);
    m->launched = w->now;
    double at   = w->now;
    for (int s = 0; s < w->n_stage; s++) {
        if (r->free_at[s] > at) at = r->free_at[s];
        at += t.stage[s];
        r->free_at[s] = at;
        r->busy[s] += t.stage[s];
        at += w->n_stage > 1 ? t.pass : 0;
    }
    m->ends = at;
    return FM_OK;
}

static void note_tokens(world *w, const partition *p, const fm_batch *b)
{
    for (int i = 0; i < b->n_out; i++) {
        const fm_out *o = fm_sched_out(p->sched, b, i);
        w->chosen[i]    = 0;
        if (!o->r || o->is_score) continue;
        life *l      = o->r->user;
        w->chosen[i] = invent(o->r);
        if (l->first < 0) l->first = w->now;
        l->last = w->now;
    }
}

static void retire(world *w, partition *p)
{
    for (const fm_request *q; (q = fm_sched_pop_done(p->sched));) {
        const life *l = q->user;
        p->load -= load_of(l);
        l->replica->load -= load_of(l);
        w->n_live--;
    }
}

static void finish(world *w, micro_batch *m)
{
    m->in_flight = 0;
    for (int g = 0; g < w->n_group; g++) {
        partition *p = &m->part[g];
        if (!m->batch[g]) continue;
        note_tokens(w, p, m->batch[g]);
        fm_sched_commit(p->sched, w->chosen);
        retire(w, p);
        const fm_sched_stats stats = fm_sched_get_stats(p->sched);
        if (w->sim->stepped) w->sim->stepped(w->sim->ctx, &stats);
    }
}

/* --- the clock ---------------------------------------------------------------- */

static double next_arrival(const world *w)
{
    if (w->sim->concurrency > 0 && w->n_live >= w->sim->concurrency) return INFINITY;
    return w->n_arrived < w->n ? w->life[w->n_arrived].asked->arrival : INFINITY;
}

static fm_status admit_arrivals(world *w)
{
    while (next_arrival(w) <= w->now) FM_TRY(submit(w, &w->life[w->n_arrived++]));
    return FM_OK;
}

static fm_status launch_idle(world *w, replica *r)
{
    for (int i = 0; i < w->n_lane; i++)
        if (!r->micro[i].in_flight) FM_TRY(launch(w, r, &r->micro[i]));
    return FM_OK;
}

/* The step that ends first; of a replica the oldest, since stages keep the order. */
static micro_batch *first_to_end(const world *w, replica **whose)
{
    micro_batch *first = NULL;
    for (int i = 0; i < w->n_replica; i++)
        for (int k = 0; k < w->n_lane; k++) {
            micro_batch *m = &w->replica[i].micro[k];
            if (!m->in_flight || (first && m->ends >= first->ends)) continue;
            first  = m;
            *whose = &w->replica[i];
        }
    return first;
}

static fm_status run(world *w, int *is_over)
{
    const double patience = w->sim->patience > 0 ? w->sim->patience : INFINITY;
    *is_over              = 0;
    FM_TRY(admit_arrivals(w));
    for (int i = 0; i < w->n_replica; i++) FM_TRY(launch_idle(w, &w->replica[i]));
    while (w->now < patience) {
        replica     *r = NULL;
        micro_batch *m = first_to_end(w, &r);
        if (!m && w->n_arrived == w->n) {
            *is_over = 1;
            return FM_OK;
        }
        if (!m || next_arrival(w) < m->ends) {
            w->now = fmax(w->now, next_arrival(w));
            FM_TRY(admit_arrivals(w));
            for (int i = 0; i < w->n_replica; i++) FM_TRY(launch_idle(w, &w->replica[i]));
            continue;
        }
        w->now = m->ends;
        finish(w, m);
        FM_TRY(admit_arrivals(w));
        FM_TRY(launch(w, r, m));
        FM_TRY(launch_idle(w, r));
    }
    return FM_OK;
}

/* --- the result --------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean and 99th percentile; sorts x. */
static void describe(double *x, int n, double *mean, double *p99)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    qsort(x, (size_t)n, sizeof *x, ascending);
    *mean = n ? sum / n : 0;
    *p99  = n ? x[(int)(0.99 * (n - 1) + 0.5)] : 0;
}

static void add_stats(fm_sim_result *out, const partition *p)
{
    const fm_sched_stats s = fm_sched_get_stats(p->sched);
    const fm_kv_stats    k = fm_kv_get_stats(p->kv);
    fm_sched_add_stats(&out->sched, &s);
    fm_kv_add_stats(&out->kv, &k);
}

static void add_replica(fm_sim_result *out, const world *w, const replica *r)
{
    for (int i = 0; i < n_partition(w); i++) add_stats(out, partition_at(w, r, i));
    for (int s = 0; s < w->n_stage; s++)
        if (r->busy[s] > out->busy) out->busy = r->busy[s];
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

static fm_status summarise(fm_sim_result *out, const world *w)
{
    int     from, to;
    int     n_first = 0, n_many = 0;
    double *ttft = malloc(2 * ((size_t)w->n + 1) * sizeof *ttft), *tpot = ttft + w->n + 1;
    if (!ttft) return fm_fail(FM_E_OOM, "latencies");
    *out = (fm_sim_result){.seconds = w->now, .throughput = throughput_of(w)};
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

fm_status fm_simulate(fm_sim_result *out, const fm_sim *sim, const fm_sim_request *request, int n)
{
    world     w       = {0};
    int       is_over = 0;
    fm_status rc      = open_world(&w, sim, request, n);
    if (rc == FM_OK) rc = run(&w, &is_over);
    if (rc == FM_OK) rc = summarise(out, &w);
    if (rc == FM_OK) out->is_over = is_over;
    close_world(&w);
    return rc;
}
