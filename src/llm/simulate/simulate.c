/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/simulate/simulate.h"

#include <math.h>

#include "llm/sched/partition_choice.h"
#include "llm/simulate/simulate_internal.h"

/* --- who gets a request ------------------------------------------------------- */

static int64_t load_of(const life *l) { return (int64_t)l->asked->n_prompt + l->asked->n_output; }

static replica *least_loaded(const world *w)
{
    replica *best = &w->replica[0];
    for (int i = 1; i < w->n_replica; i++)
        if (w->replica[i].load < best->load) best = &w->replica[i];
    return best;
}

typedef struct {
    const world   *world;
    const replica *replica;
} partitions;

static fm_partition_view view_at(const void *ctx, int i)
{
    const partitions *all = ctx;
    const partition  *p   = fm__world_partition(all->world, all->replica, i);
    return (fm_partition_view){.kv = p->kv, .sched = p->sched, .load = p->load};
}

static fm_partitions_view view_of(const partitions *all)
{
    return (fm_partitions_view){.n = fm__world_n_partition(all->world), .at = view_at, .ctx = all};
}

static fm_status submit(world *w, life *l)
{
    l->arrived = w->sim->concurrency > 0 ? w->now : l->asked->arrival;
    w->n_live++;
    l->replica                    = least_loaded(w);
    const partitions         all  = {w, l->replica};
    const fm_partitions_view view = view_of(&all);
    const int place = fm_choose_partition(&view, l->request.token, l->request.n_prompt);
    l->part         = fm__world_partition(w, l->replica, place);
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
        partition  *to = &m->part[g], *from = fm__world_partition(w, r, lender);
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

/* --- tiers -------------------------------------------------------------------- */

static void prepare_tiers(world *w, const micro_batch *m)
{
    if (!w->sim->tiers) return;
    if (w->sim->tiers->n_slot) fm__disk_advance(&w->disk, w->now);
    for (int g = 0; g < w->n_group; g++) fm_tier_policy_prepare(m->part[g].tiers, w->now);
}

/* Groups copy side by side, each on ranks of its own.  When the pass can begin. */
static double move_pages(world *w, replica *r, const micro_batch *m, int has_rows)
{
    double longest = 0;
    int    waits   = 0;
    for (int g = 0; w->sim->tiers && g < w->n_group; g++) {
        double busy;
        int    is_now;
        fm__below_move(&r->below, m->part[g].tiers, w->now, &busy, &is_now);
        longest = fmax(longest, busy);
        waits |= is_now;
    }
    return fm__below_begins(&r->below, w->now, longest, waits, has_rows);
}

static int is_loading(const world *w, const micro_batch *m)
{
    for (int g = 0; w->sim->tiers && g < w->n_group; g++)
        if (fm_tier_policy_is_loading(m->part[g].tiers)) return 1;
    return 0;
}

/* As an engine without work: pages that were to be saved are. */
static void save_while_idle(world *w, replica *r, micro_batch *m)
{
    int n = 0;
    if (!w->sim->tiers) return;
    for (int g = 0; g < w->n_group; g++) n += fm_tier_policy_save(m->part[g].tiers);
    const double made = move_pages(w, r, m, 0);
    for (int g = 0; g < w->n_group; g++) fm_tier_policy_settled(m->part[g].tiers);
    if (n) m->wakes = fm__below_wakes(&r->below, w->now, made);
}

static int prompt_rows(const world *w, const micro_batch *m, int *n_row)
{
    int n  = 0;
    *n_row = 0;
    for (int g = 0; g < w->n_group; g++) {
        const fm_batch *b = m->batch[g];
        *n_row += b ? b->n_row : 0;
        for (int i = 0; b && i < b->n_span; i++)
            if (b->span[i].form == FM_FORM_PROMPT) n += b->span[i].n_row;
    }
    return n;
}

static void learn_costs(world *w, replica *r, const micro_batch *m)
{
    int       n_row;
    const int n = prompt_rows(w, m, &n_row);
    fm__below_learn(&r->below, m->launched, w->now, n, n_row);
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

static fm_status launch(world *w, replica *r, micro_batch *m)
{
    FM_TRY(balance(w, r, m));
    prepare_tiers(w, m);
    const int has_rows  = plan(w, m);
    m->wakes            = INFINITY;
    const double begins = move_pages(w, r, m, has_rows);
    if (!has_rows) {
        if (is_loading(w, m))
            m->wakes = fm__below_wakes(&r->below, w->now, begins);
        else
            save_while_idle(w, r, m);
        return FM_OK;
    }
    m->times = (fm_sim_times){0};
    w->sim->step(w->sim->ctx, m->batch, &m->times);
    m->launched = begins;
    fm__stages_launch(w, m, begins);
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

static void finish(world *w, replica *r, micro_batch *m)
{
    learn_costs(w, r, m);
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
        if (r->micro[i].state == FLIGHT_NONE) FM_TRY(launch(w, r, &r->micro[i]));
    return FM_OK;
}

/* An idle micro-batch whose loads go on first. */
static micro_batch *first_to_wake(const world *w, replica **whose)
{
    micro_batch *first = NULL;
    for (int i = 0; i < w->n_replica; i++)
        for (int k = 0; k < w->n_lane; k++) {
            micro_batch *m = &w->replica[i].micro[k];
            if (m->state != FLIGHT_NONE || !isfinite(m->wakes) ||
                (first && m->wakes >= first->wakes))
                continue;
            first  = m;
            *whose = &w->replica[i];
        }
    return first;
}

static int all_answered(const world *w) { return w->n_arrived == w->n && !w->n_live; }

static fm_status arrive(world *w)
{
    fm__stages_compute_until(w, fmax(w->now, next_arrival(w)));
    FM_TRY(admit_arrivals(w));
    for (int i = 0; i < w->n_replica; i++) FM_TRY(launch_idle(w, &w->replica[i]));
    return FM_OK;
}

static fm_status end_step(world *w, replica *r, micro_batch *m)
{
    finish(w, r, m);
    FM_TRY(admit_arrivals(w));
    FM_TRY(launch(w, r, m));
    return launch_idle(w, r);
}

/* The next event: a load that lets a micro-batch go on, a request, a step that leaves a stage. */
static fm_status advance(world *w, int *is_over)
{
    replica     *r = NULL, *sleeper = NULL;
    micro_batch *m = NULL, *const idle = first_to_wake(w, &sleeper);
    const double at = fm__stages_next(w, &r, &m), wakes = idle ? idle->wakes : INFINITY;
    *is_over = all_answered(w) || (!m && !idle && w->n_arrived == w->n);
    if (*is_over) return FM_OK;
    if (wakes < at && wakes <= next_arrival(w)) {
        fm__stages_compute_until(w, fmax(w->now, wakes));
        return launch(w, sleeper, idle);
    }
    if (next_arrival(w) < at) return arrive(w);
    fm__stages_compute_until(w, at);
    return fm__stages_advance(w, r, m) ? end_step(w, r, m) : FM_OK;
}

static fm_status run(world *w, int *is_over)
{
    const double patience = w->sim->patience > 0 ? w->sim->patience : INFINITY;
    *is_over              = 0;
    FM_TRY(admit_arrivals(w));
    for (int i = 0; i < w->n_replica; i++) FM_TRY(launch_idle(w, &w->replica[i]));
    while (w->now < patience && !*is_over) FM_TRY(advance(w, is_over));
    return FM_OK;
}

fm_status fm_simulate(fm_sim_result *out, const fm_sim *sim, const fm_sim_request *request, int n)
{
    world     w       = {0};
    int       is_over = 0;
    fm_status rc      = fm__world_open(&w, sim, request, n);
    if (rc == FM_OK) rc = run(&w, &is_over);
    if (rc == FM_OK) rc = fm__world_summarise(out, &w);
    if (rc == FM_OK) out->is_over = is_over;
    fm__world_close(&w);
    return rc;
}
