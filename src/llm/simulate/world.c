/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llm/simulate/simulate_internal.h"

static int at_least_one(int n) { return n > 0 ? n : 1; }

static fm_status begin_life(life *l, const fm_sim_request *asked, int index)
{
    *l            = (life){.asked = asked, .first = -1};
    fm_request *r = &l->request;
    r->id         = (uint64_t)index;
    r->user       = l;
    r->n_prompt = r->n_token   = asked->n_prompt;
    r->sampling                = fm_sampling_default();
    r->sampling.ignore_eos     = !asked->is_open;
    r->sampling.max_new_tokens = asked->n_output;
    r->token =
        malloc((size_t)(asked->n_prompt + asked->n_output + 1 + FM_MAX_DRAFT) * sizeof *r->token);
    if (!r->token) return fm_fail(FM_E_OOM, "requests");
    memcpy(r->token, asked->token, (size_t)asked->n_prompt * sizeof *r->token);
    return FM_OK;
}

static fm_status open_tiers(partition *p, replica *r, int index, int n)
{
    if (!r->below.sizes) return FM_OK;
    fm_tier_policy_options o = fm__below_options(&r->below, index, n);
    o.kv                     = p->kv;
    o.sched                  = p->sched;
    return fm_tier_policy_create(&p->tiers, &o);
}

static fm_status open_partition(partition *p, const fm_sim *sim)
{
    const fm_sched_options *o  = &sim->sched;
    const fm_kv_options     kv = {.n_page      = o->n_page,
                                  .page_size   = o->page_size,
                                  .max_lease   = o->max_running + o->other_leases + 1,
                                  .max_context = o->max_context,
                                  .share       = sim->share,
                                  .has_tiers   = sim->tiers != NULL};
    FM_TRY(fm_kv_create(&p->kv, &kv));
    return fm_sched_create(&p->sched, o, p->kv);
}

static fm_status open_micro_batch(const world *w, replica *r, micro_batch *m)
{
    m->wakes = INFINITY;
    m->part  = calloc((size_t)w->n_group, sizeof *m->part);
    m->batch = calloc((size_t)w->n_group, sizeof *m->batch);
    if (!m->part || !m->batch) return fm_fail(FM_E_OOM, "simulation");
    for (int g = 0; g < w->n_group; g++) {
        const int index = (int)(m - r->micro) * w->n_group + g;
        FM_TRY(open_partition(&m->part[g], w->sim));
        FM_TRY(open_tiers(&m->part[g], r, index, w->n_lane * w->n_group));
    }
    return FM_OK;
}

static fm_status open_replica(world *w, replica *r)
{
    FM_TRY(fm__below_open(&r->below, w->sim->tiers, &w->disk));
    r->micro = calloc((size_t)w->n_lane, sizeof *r->micro);
    if (!r->micro) return fm_fail(FM_E_OOM, "simulation");
    for (int i = 0; i < w->n_lane; i++) FM_TRY(open_micro_batch(w, r, &r->micro[i]));
    return FM_OK;
}

/* It needs room for the pages of all requests at most. */
static fm_status open_disk(world *w, const fm_sim_request *request)
{
    const fm_sim_tiers *t = w->sim->tiers;
    double              n = 1;
    if (!t || !t->n_slot) return FM_OK;
    for (int i = 0; i < w->n; i++)
        n += (request[i].n_prompt + request[i].n_output) / w->sim->sched.page_size;
    if (t->limit > 0) n = fmax(1, fmin(n, t->limit / t->file_bytes));
    w->disk.read_s  = t->file_bytes / t->read;
    w->disk.write_s = t->file_bytes / t->write;
    return fm__disk_open(&w->disk, (int32_t)fmin(n, 1 << 28), w->n_replica * t->n_slot,
                         w->n_replica * t->n_buffer);
}

fm_status fm__world_open(world *w, const fm_sim *sim, const fm_sim_request *request, int n)
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
    FM_TRY(open_disk(w, request));
    for (int i = 0; i < w->n_replica; i++) FM_TRY(open_replica(w, &w->replica[i]));
    for (int i = 0; i < n; i++) FM_TRY(begin_life(&w->life[i], &request[i], i));
    return FM_OK;
}

static void close_replica(replica *r, const world *w)
{
    for (int i = 0; r->micro && i < w->n_lane; i++) {
        micro_batch *m = &r->micro[i];
        for (int g = 0; m->part && g < w->n_group; g++) {
            fm_tier_policy_destroy(m->part[g].tiers);
            fm_sched_destroy(m->part[g].sched);
            fm_kv_destroy(m->part[g].kv);
        }
        free(m->part);
        free(m->batch);
    }
    free(r->micro);
    fm__below_close(&r->below);
}

void fm__world_close(world *w)
{
    for (int i = 0; w->replica && i < w->n_replica; i++) close_replica(&w->replica[i], w);
    for (int i = 0; w->life && i < w->n; i++) free(w->life[i].request.token);
    fm__disk_close(&w->disk);
    free(w->replica);
    free(w->life);
    free(w->chosen);
}
