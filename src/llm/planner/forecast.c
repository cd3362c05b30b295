/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/forecast.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/draft/gain.h"
#include "llm/load/config_read.h"
#include "llm/open/foresee.h"

void fm_forecast_name(fm_str *out, const fm_rank_sizes *s)
{
    fm_str_printf(out, "tp %d", s->tp);
    if (s->pp > 1) fm_str_printf(out, " pp %d", s->pp);
    if (s->dp > 1) fm_str_printf(out, s->dp_attention ? " dp-attention %d" : " dp %d", s->dp);
    if (s->ep > 1) fm_str_printf(out, " ep %d", s->ep);
}

/* --- memory ------------------------------------------------------------------- */

enum { CONTEXT_BYTES = 512 << 20 }; /* that a driver takes of a GPU before anything else */

static fm_backend_memory memory_of_gpu(const fm_forecast_ask *a, int n_rank)
{
    fm_backend_memory m = {.total     = (size_t)a->tuned->memory,
                           .available = (size_t)a->tuned->memory - CONTEXT_BYTES,
                           .reserve   = (size_t)(n_rank > 1 ? 2 : 1) << 30,
                           .kept_for  = "libraries"};
    snprintf(m.where, sizeof m.where, "on %s", a->tuned->name);
    return m;
}

static size_t host_part(size_t all, double shared, double own, int n)
{
    const double part = ((double)all - shared) / n + own;
    return part > 0 ? (size_t)part : 0;
}

/* Every part of the weights lies once on a host; what is left is divided by its ranks. */
static fm_backend_memory memory_of_host(const fm_forecast_ask *a, double shared, double own, int n)
{
    const size_t      total = a->host_total ? a->host_total : (size_t)a->tuned->memory;
    const size_t      free  = a->host_available ? a->host_available : total - total / 32;
    fm_backend_memory m     = {.total     = host_part(total, shared, own, n),
                               .available = host_part(free, shared, own, n),
                               .where     = "in main memory"};
    return m;
}

/* --- one layout --------------------------------------------------------------- */

typedef struct {
    const fm_forecast_ask *ask;
    fm_source             *source; /* borrowed */
    fm_forecast           *out;
    fm_options             options; /* a copy whose words are borrowed */
    fm_str                 layers;  /* of the stages, once the first has cut them */
    fm_stage_work         *stage;   /* [pp] */
    double                *pace;    /* [dp] */
    fm_sched_options       sched;
    int                    n_lane, n_page;
    double                 weights; /* bytes of all parts of a replica */
    fm_sim_tiers           tiers;   /* page_bytes 0: there are none */
} forecast;

static int on_host(const forecast *f)
{
    const int per = f->ask->cluster->per_node;
    return f->out->n_rank < per ? f->out->n_rank : per;
}

static void remember_layers(forecast *f, const fm_foreseen *s)
{
    if (f->layers.len || f->out->size.pp == 1) return;
    for (int i = 0; i < f->out->size.pp; i++)
        fm_str_printf(&f->layers, "%s%d", i ? "," : "", fm_range_len(s->stage[i]));
    f->options.pp_layer_partition = f->layers.text;
}

static int least(int a, int b) { return a < b ? a : b; }

/* The stage with the fewest slots decides how many there are; each copies and keeps its own layers
 * of a page. */
static void note_tiers(forecast *f, int stage, const fm_foreseen_tiers *t)
{
    fm_sim_tiers        *s = &f->tiers;
    const fm_tier_rates *r = &f->ask->cluster->tiers;
    if (!t->file_bytes) return;
    if (!stage)
        *s = (fm_sim_tiers){.n_slot   = t->n_slot,
                            .n_buffer = t->n_buffer,
                            .n_host   = t->n_host,
                            .most_in  = t->most_in,
                            .most_out = t->most_out,
                            .is_async = f->ask->tuned->is_gpu,
                            .saving   = t->saving,
                            .in       = r->host_in,
                            .out      = r->host_out,
                            .read     = r->file_read,
                            .write    = r->file_write,
                            .limit    = f->options.hicache_storage_size * 0x1p30};
    s->n_slot     = least(s->n_slot, t->n_slot);
    s->n_buffer   = least(s->n_buffer, t->n_buffer);
    s->n_host     = least(s->n_host, t->n_host);
    s->most_in    = least(s->most_in, t->most_in);
    s->most_out   = least(s->most_out, t->most_out);
    s->page_bytes = fmax(s->page_bytes, (double)t->image_bytes);
    s->file_bytes += (double)t->file_bytes;
}

/* The last rank of a stage has the most of what does not divide evenly. */
static fm_status foresee_stage(forecast *f, int stage, const fm_backend_memory *m)
{
    const fm_rank_sizes *z     = &f->out->size;
    fm_foreseen          seen  = {0};
    const fm_place       place = {.rank     = stage * z->tp + z->tp - 1,
                                  .n_rank   = f->out->n_rank,
                                  .on_gpu   = f->ask->tuned->is_gpu,
                                  .n_thread = 1,
                                  .memory   = *m,
                                  .source   = f->source};
    FM_TRY(fm_engine_foresee(&seen, &f->options, &place));
    remember_layers(f, &seen);
    fm_stage_work_of(&f->stage[stage], &seen.weights,
                     (double)fm_plane_token_bytes(&seen.limits.planes.plane[0]),
                     f->ask->tuned->is_gpu, seen.limits.draft_head);
    f->weights += (double)seen.plan.weights * z->tp;
    note_tiers(f, stage, &seen.tiers);
    if (!stage || seen.plan.n_page < f->n_page) {
        f->n_page           = seen.plan.n_page;
        f->out->plan        = seen.plan;
        f->n_lane           = seen.n_lane;
        f->sched            = seen.sched;
        f->out->max_running = seen.max_running;
    }
    fm_foreseen_fini(&seen);
    return FM_OK;
}

static fm_status plan_stages(forecast *f, double shared)
{
    const double own = shared / (f->out->size.tp * f->out->size.pp);
    f->weights       = 0;
    for (int s = 0; s < f->out->size.pp; s++) {
        const fm_backend_memory m =
            f->ask->tuned->is_gpu
                ? memory_of_gpu(f->ask, f->out->n_rank)
                : memory_of_host(f->ask, shared, own, shared > 0 ? on_host(f) : 1);
        FM_TRY(foresee_stage(f, s, &m));
    }
    return FM_OK;
}

/* On a host first as if it were one rank's alone, then with what the others leave. */
static fm_status plan_memory(forecast *f)
{
    FM_TRY(plan_stages(f, 0));
    if (!f->ask->tuned->is_gpu && on_host(f) > 1) FM_TRY(plan_stages(f, f->weights));
    const fm_plan *p     = &f->out->plan;
    const int      parts = f->out->size.dp; /* groups or replicas: each has pages of its own */
    f->out->max_tokens   = (int64_t)f->n_page * p->page_size * parts;
    f->out->memory_left  = (double)p->budget - (double)p->weights - (double)p->workspace;
    return FM_OK;
}

static int is_crowded(const forecast *f)
{
    return !f->ask->tuned->is_gpu && on_host(f) > f->ask->tuned->n_thread;
}

/* A rank has its part of the host's threads, and of what they reach together; of more ranks than
 * threads, one thread while it has it: the simulation says when (fm_sim.n_core). */
static double slowness(const forecast *f)
{
    const int asked = (int)f->ask->options->threads, all = f->ask->tuned->n_thread;
    const int part = all / on_host(f) > 0 ? all / on_host(f) : 1;
    const int has  = asked > 0 && asked < part ? asked : part;
    return fmax((double)all / has, is_crowded(f) ? all : on_host(f));
}

static fm_sim_cores cores_of(const forecast *f)
{
    return fm_shared_cores(f->ask->tuned, on_host(f), f->out->n_node, f->out->size.tp);
}

/* A table's spread is half the distance of the quartiles of repeated steps; a larger one than this
 * comes from scaling and says nothing about steps. */
static double jitter_of(const fm_tuned *t) { return t->is_gpu ? 0 : fmin(t->spread, 0.1) / 0.674; }

static fm_step_model model_of(const forecast *f)
{
    const fm_forecast_ask *a   = f->ask;
    const fm_options      *o   = a->options;
    const fm_rank_sizes   *z   = &f->out->size;
    const int              gpu = a->tuned->is_gpu;
    return (fm_step_model){.tuned      = a->tuned,
                           .cluster    = a->cluster,
                           .steps      = fm_tuned_steps_of(a->tuned, a->model),
                           .size       = *z,
                           .n_group    = z->dp_attention ? z->dp : 1,
                           .stage      = f->stage,
                           .slow       = gpu ? 1 : slowness(f),
                           .op_s       = a->tuned->op_s * (gpu && o->disable_cuda_graph ? 1.4 : 1),
                           .n_draft    = f->sched.max_draft,
                           .n_core     = cores_of(f).n_core,
                           .jitter     = jitter_of(a->tuned),
                           .hides_host = gpu && z->pp == 1 && !o->disable_overlap_schedule};
}

/* Shares of the time of all stages: what they computed, divided as their steps are, which do not
 * know how long ranks waited for a core. */
static void add_shares(fm_forecast *out, const fm_step_model *m)
{
    const double engines = out->size.dp_attention ? 1 : out->size.dp;
    const double all     = out->sim.seconds * out->size.pp * engines;
    const double busy    = all > 0 ? out->sim.busy / all : 0;
    double       sum     = 0;
    out->bound           = (fm_bound)0;
    for (int i = 0; i < FM_N_BOUND; i++) sum += m->by[i];
    for (int i = 0; i < FM_N_BOUND; i++) out->by[i] = sum > 0 ? busy * m->by[i] / sum : 0;
    out->by[FM_BOUND_IDLE] = fmax(0, 1 - busy);
    for (int i = 0; i < FM_N_BOUND; i++)
        if (out->by[i] > out->by[out->bound]) out->bound = (fm_bound)i;
}

/* What forecasts were off by where they were checked (docs/planning.md), put together as errors
 * that know nothing of each other. */
static double error_of(const forecast *f)
{
    const fm_forecast_ask *a        = f->ask;
    const fm_forecast     *o        = f->out;
    const int              measured = fm_tuned_steps_of(a->tuned, a->model) != NULL;
    const double           model = measured ? 0.05 : 0.15, noise = fmax(a->tuned->spread, 0.02);
    const double           links = o->n_rank == 1 ? 0 : a->cluster->is_near_measured ? 0.05 : 0.08;
    const double           far = o->n_node > 1 ? 0.08 : 0, drafts = f->sched.max_draft ? 0.1 : 0;
    return sqrt(model * model + noise * noise + links * links + far * far + drafts * drafts);
}

static fm_sim sim_of(const forecast *f, fm_step_model *m)
{
    const fm_forecast_ask *a   = f->ask;
    const fm_forecast     *o   = f->out;
    fm_sim                 sim = {.sched       = f->sched,
                                  .share       = !a->options->disable_radix_cache,
                                  .tiers       = f->tiers.page_bytes > 0 ? &f->tiers : NULL,
                                  .n_replica   = o->size.dp_attention ? 1 : o->size.dp,
                                  .n_lane      = f->n_lane,
                                  .n_group     = m->n_group,
                                  .n_stage     = o->size.pp,
                                  .cores       = cores_of(f),
                                  .n_draft     = f->sched.max_draft,
                                  .concurrency = a->concurrency,
                                  .is_steady   = a->is_steady,
                                  .pace        = f->pace,
                                  .step        = fm_step_seconds,
                                  .ctx         = m};
    sim.sched.n_page           = f->n_page / f->n_lane;
    sim.sched.keeps_states     = 0;
    if (sim.n_draft && !(sim.sched.simulated > 0))
        sim.sched.simulated =
            fm_acceptance_for(a->accept_length > 1 ? a->accept_length : 1, sim.n_draft);
    return sim;
}

static fm_status simulate(forecast *f)
{
    const fm_forecast_ask *a   = f->ask;
    fm_forecast           *o   = f->out;
    fm_step_model          m   = model_of(f);
    const fm_sim           sim = sim_of(f, &m);
    fm_replica_paces(&m, f->pace, sim.n_replica);
    FM_TRY(fm_simulate(&o->sim, &sim, a->request, a->n_request));
    add_shares(o, &m);
    o->has_tiers  = f->tiers.page_bytes > 0;
    o->throughput = o->sim.throughput;
    o->meets      = (!(a->slo_ttft > 0) || o->sim.p99_ttft <= a->slo_ttft) &&
               (!(a->slo_tpot > 0) || o->sim.p99_tpot <= a->slo_tpot);
    o->keeps_up = o->meets && a->is_paced && (a->slo_ttft > 0 || a->slo_tpot > 0);
    o->error    = error_of(f);
    return FM_OK;
}

static fm_status look_at(forecast *f)
{
    const fm_rank_sizes *z         = &f->out->size;
    f->options                     = *f->ask->options;
    f->options.tp_size             = z->tp;
    f->options.pp_size             = z->pp;
    f->options.dp_size             = z->dp;
    f->options.ep_size             = z->ep;
    f->options.enable_dp_attention = z->dp_attention;
    f->stage                       = calloc((size_t)z->pp, sizeof *f->stage);
    f->pace                        = calloc((size_t)z->dp, sizeof *f->pace);
    if (!f->stage || !f->pace) return fm_fail(FM_E_OOM, "stages");
    FM_TRY(plan_memory(f));
    return simulate(f);
}

static void forecast_one(const fm_forecast_ask *ask, fm_source *source, fm_forecast *out)
{
    forecast f = {.ask = ask, .source = source, .out = out};
    out->rc    = look_at(&f);
    if (out->rc != FM_OK) snprintf(out->why, sizeof out->why, "%s", fm_why());
    free(f.stage);
    free(f.pace);
    fm_str_fini(&f.layers);
}

/* --- all of them -------------------------------------------------------------- */

typedef struct {
    const fm_forecast_ask *ask;
    fm_source             *source; /* of the model, for all */
    fm_forecast           *list;
    int                    n;
    atomic_int             next;
} crew;

static void *work(void *ctx)
{
    crew *c = ctx;
    for (int i; (i = atomic_fetch_add(&c->next, 1)) < c->n;)
        forecast_one(c->ask, c->source, &c->list[i]);
    return NULL;
}

static void run_crew(crew *c, int n_thread)
{
    enum { MOST = 64 };
    pthread_t t[MOST];
    int       n = 0;
    while (n < n_thread - 1 && n < MOST && pthread_create(&t[n], NULL, work, c) == 0) n++;
    work(c);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}

/* Throughputs within a percent or so are alike, and so are those of layouts that answer in time
 * what comes at a rate, which differ by how long the last answer takes: fewer devices, then latency
 * decide. */
static double step_of(const fm_forecast *f)
{
    if (f->keeps_up) return INFINITY;
    return f->throughput > 0 ? floor(log(f->throughput) / 0.015) : -INFINITY;
}

static int better(const void *pa, const void *pb)
{
    const fm_forecast *a = pa, *b = pb;
    if ((a->rc == FM_OK) != (b->rc == FM_OK)) return a->rc == FM_OK ? -1 : 1;
    if (a->meets != b->meets) return a->meets ? -1 : 1;
    const double s = step_of(a), t = step_of(b);
    if (s != t) return s > t ? -1 : 1;
    if (a->n_rank != b->n_rank) return a->n_rank - b->n_rank;
    const double x = a->sim.mean_ttft + a->sim.mean_tpot, y = b->sim.mean_ttft + b->sim.mean_tpot;
    return (x > y) - (x < y);
}

static int add_layouts(fm_forecast *list, int n, const fm_forecast_ask *a, int n_rank, int n_node,
                       const fm_model_config *c)
{
    fm_rank_sizes size[FM_MAX_FORECAST];
    const int     found = fm_layouts_of(size, FM_MAX_FORECAST - n, n_rank, c, &a->wish);
    for (int i = 0; i < found; i++)
        list[n + i] = (fm_forecast){.size = size[i], .n_rank = n_rank, .n_node = n_node};
    return n + found;
}

/* Every number of hosts up to four; beyond, powers of two and all of them. */
static int is_listed(int nodes, const fm_forecast_ask *a)
{
    if (nodes == a->cluster->n_node) return 1;
    return !a->whole && (nodes <= 4 || !(nodes & (nodes - 1)));
}

/* Of one host all devices, halves of them, one. */
static int list_layouts(fm_forecast *list, const fm_forecast_ask *a, const fm_model_config *config)
{
    const fm_cluster *c = a->cluster;
    int               n = 0;
    for (int nodes = c->n_node; nodes >= 1; nodes--)
        if (is_listed(nodes, a)) n = add_layouts(list, n, a, nodes * c->per_node, nodes, config);
    for (int k = c->per_node / 2; !a->whole && k >= 1; k /= 2)
        n = add_layouts(list, n, a, k, 1, config);
    return n;
}

static fm_status read_config(fm_model_config *out, const fm_options *o)
{
    fm_model_path path;
    FM_TRY(fm_model_path_find(&path, o->model_path ? o->model_path : "r1-mini"));
    return fm_config_of(out, &path, o->json_model_override_args);
}

fm_status fm_forecast_all(fm_forecast *list, int *n, const fm_forecast_ask *ask)
{
    fm_model_config config;
    FM_TRY(read_config(&config, ask->options));
    crew c = {.ask = ask, .list = list};
    c.n    = list_layouts(list, ask, &config);
    if (!c.n)
        return fm_fail(FM_E_ARG,
                       "none of the layouts of %d x %d devices suits the model and the "
                       "sizes that were given: tp x pp x dp (with DP attention, tp x pp) must be "
                       "the devices of whole nodes, or all, a half, a quarter ... of one node's",
                       ask->cluster->n_node, ask->cluster->per_node);
    FM_TRY(fm_engine_foresee_source(&c.source, ask->options, ask->tuned->is_gpu));
    run_crew(&c, ask->n_thread > 0 ? ask->n_thread : 1);
    fm_source_close(c.source);
    qsort(list, (size_t)c.n, sizeof *list, better);
    *n = c.n;
    return FM_OK;
}
