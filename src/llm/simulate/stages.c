/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on their way through the stages of a pipeline, and the cores that ranks share meanwhile. */
#include <math.h>

#include "llm/simulate/simulate_internal.h"

/* Of a core that is one of many busy ones: what the ranks of a stage have now.  More ranks than
 * cores take turns; fewer have more of the bandwidth, which makes the part of a step shorter that
 * waits for memory. */
static double speed(const world *w, const micro_batch *m)
{
    const fm_sim_cores *c    = &w->sim->cores;
    const double        here = (double)w->n_computing * c->n_rank, all = c->n_core;
    const double        stage = m->times.stage[m->stage], reads = m->times.reads[m->stage];
    if (!c->n_core || !(stage > 0)) return 1;
    if (here >= all) return all / here;
    const double more = fmin(all / here, fmax(c->most_read, 1));
    return stage / (stage - reads + reads / more);
}

static void compute(world *w, const replica *r, micro_batch *m)
{
    const double pace = w->sim->pace ? w->sim->pace[r - w->replica] : 1;
    m->state          = FLIGHT_COMPUTES;
    m->left           = pace * m->times.stage[m->stage];
    w->n_computing++;
}

static int is_free(const world *w, const replica *r, int stage)
{
    for (int i = 0; i < w->n_lane; i++)
        if (r->micro[i].state == FLIGHT_COMPUTES && r->micro[i].stage == stage) return 0;
    return 1;
}

/* Of those that wait for a stage the one that was launched first. */
static void begin_next(world *w, replica *r, int stage)
{
    micro_batch *first = NULL;
    for (int i = 0; i < w->n_lane; i++) {
        micro_batch *m = &r->micro[i];
        if (m->state != FLIGHT_WAITS || m->stage != stage) continue;
        if (!first || m->serial < first->serial) first = m;
    }
    if (first) compute(w, r, first);
}

static void leave_stage(world *w, replica *r, micro_batch *m)
{
    const int stage = m->stage++;
    w->n_computing--;
    m->state = FLIGHT_TRAVELS;
    m->due   = w->now + (w->n_stage > 1 ? m->times.pass : 0);
    begin_next(w, r, stage);
}

void fm__stages_launch(world *w, micro_batch *m, double begins)
{
    m->state  = FLIGHT_TRAVELS;
    m->stage  = 0;
    m->due    = begins;
    m->serial = w->n_launched++;
}

/* When something happens to it. */
static double next_of(const world *w, const micro_batch *m)
{
    if (m->state == FLIGHT_TRAVELS) return m->due;
    return m->state == FLIGHT_COMPUTES ? w->now + m->left / speed(w, m) : INFINITY;
}

double fm__stages_next(const world *w, replica **whose, micro_batch **which)
{
    double first = INFINITY;
    for (int i = 0; i < w->n_replica; i++)
        for (int k = 0; k < w->n_lane; k++) {
            micro_batch *m  = &w->replica[i].micro[k];
            const double at = next_of(w, m);
            if (at >= first) continue;
            first  = at;
            *whose = &w->replica[i];
            *which = m;
        }
    return first;
}

void fm__stages_compute_until(world *w, double now)
{
    for (int i = 0; i < w->n_replica; i++)
        for (int k = 0; k < w->n_lane; k++) {
            micro_batch *m = &w->replica[i].micro[k];
            if (m->state != FLIGHT_COMPUTES) continue;
            m->left = fmax(0, m->left - (now - w->now) * speed(w, m));
            w->busy += now - w->now;
        }
    w->now = now;
}

int fm__stages_advance(world *w, replica *r, micro_batch *m)
{
    if (m->state == FLIGHT_COMPUTES) {
        leave_stage(w, r, m);
        if (m->due > w->now) return 0; /* that is an event of its own */
    }
    if (m->stage == w->n_stage) {
        m->state = FLIGHT_NONE;
        return 1;
    }
    m->state = FLIGHT_WAITS;
    if (is_free(w, r, m->stage)) compute(w, r, m);
    return 0;
}
