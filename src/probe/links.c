/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/links.h"

#include <stdlib.h>

#include "probe/link_wire.h"
#include "probe/pairs.h"

enum { MOST_SWEEPS = 5, ROUNDS = 7 };

/* --- all pairs -------------------------------------------------------------------- */

static int is_member(const fm_link_wire *w, int rank)
{
    return !w->is_member || w->is_member[rank];
}

/* A barrier of all ranks; for a wire that can fail, also whether it failed on any of them. */
static fm_status meet(const fm_turns *turns, const fm_link_wire *w)
{
    float n_failed = w->why[0] != 0;
    FM_TRY(fm_turns_meet(turns));
    if (!w->can_fail) return FM_OK;
    FM_TRY(fm_all_reduce_f32(fm_world_comm(turns->world), &n_failed, 1));
    return n_failed > 0 ? fm_fail(FM_E_DEVICE, "links failed on %.0f ranks", (double)n_failed)
                        : FM_OK;
}

/* Each side leads once: the lower rank first. */
static fm_status run_pair(fm_link_wire *w, int me, int peer, double *latency, double *bandwidth)
{
    if (me > peer) FM_TRY(w->serve(w, peer));
    FM_TRY(w->lead(w, peer, latency, bandwidth));
    return me < peer ? w->serve(w, peer) : FM_OK;
}

/* What this rank sends: [n_rank, MOST_SWEEPS] each. */
typedef struct {
    double *latency, *bandwidth;
    int     n_sweep;
} row;

static fm_status sweep(const fm_turns *turns, const fm_pairs_plan *plan, fm_link_wire *w, row *r)
{
    const int me = fm_world_comm(turns->world)->rank;
    for (int s = 0; s < plan->n_step; s++) {
        const int peer = plan->partner[(size_t)s * (size_t)plan->n_rank + (size_t)me];
        FM_TRY(meet(turns, w));
        if (peer < 0 || !is_member(w, me) || !is_member(w, peer)) continue;
        const size_t at = (size_t)peer * MOST_SWEEPS + (size_t)r->n_sweep;
        FM_TRY(run_pair(w, me, peer, &r->latency[at], &r->bandwidth[at]));
    }
    r->n_sweep++;
    return meet(turns, w);
}

static fm_status gather_rows(fm_links *l, fm_comm *c, row *r)
{
    const size_t n     = (size_t)l->n_rank;
    fm_rate     *mine  = calloc(2 * n, sizeof *mine);
    size_t      *bytes = calloc(n, sizeof *bytes);
    fm_status    rc    = mine && bytes ? FM_OK : fm_fail(FM_E_OOM, "links of %zu ranks", n);
    for (size_t j = 0; rc == FM_OK && j < n; j++) {
        bytes[j] = n * sizeof *mine;
        if (r->latency[j * MOST_SWEEPS] <= 0) continue;
        mine[j]     = fm_rate_of_times(r->latency + j * MOST_SWEEPS, r->n_sweep);
        mine[n + j] = fm_rate_of(r->bandwidth + j * MOST_SWEEPS, r->n_sweep);
    }
    if (rc == FM_OK) rc = fm_all_gather(c, l->latency, mine, bytes);
    if (rc == FM_OK) rc = fm_all_gather(c, l->bandwidth, mine + n, bytes);
    free(mine);
    free(bytes);
    return rc;
}

static fm_status measure_pairs(fm_links *l, const fm_turns *turns, const fm_pairs_plan *plan,
                               fm_link_wire *w)
{
    fm_comm     *c       = fm_world_comm(turns->world);
    const size_t n       = (size_t)c->n_rank * MOST_SWEEPS;
    const int    n_sweep = plan->n_step * MOST_SWEEPS <= w->most_steps ? MOST_SWEEPS : 1;
    row          r       = {calloc(n, sizeof(double)), calloc(n, sizeof(double)), 0};
    fm_status    rc      = r.latency && r.bandwidth ? FM_OK : fm_fail(FM_E_OOM, "links");
    while (rc == FM_OK && r.n_sweep < n_sweep) rc = sweep(turns, plan, w, &r);
    if (rc == FM_OK) rc = gather_rows(l, c, &r);
    free(r.latency);
    free(r.bandwidth);
    return rc;
}

/* --- all to all --------------------------------------------------------------------- */

/* All ranks take the numbers of the first member. */
static fm_status measure_all_to_all(fm_links *l, const fm_turns *turns, fm_link_wire *w)
{
    fm_comm *c = fm_world_comm(turns->world);
    double   rate[ROUNDS];
    int      first = 0;
    while (first < c->n_rank - 1 && !is_member(w, first)) first++;
    if (is_member(w, c->rank)) {
        FM_TRY(w->all_to_all(w, rate, ROUNDS));
        if (!w->why[0]) l->all_to_all = fm_rate_of(rate, ROUNDS);
    }
    if (w->can_fail) FM_TRY(meet(turns, w));
    return fm_broadcast(c, &l->all_to_all, sizeof l->all_to_all, first);
}

/* --- the whole ------------------------------------------------------------------------ */

fm_status fm_links_init(fm_links *l, int n_rank)
{
    const size_t n = (size_t)n_rank * (size_t)n_rank;
    *l             = (fm_links){.n_rank    = n_rank,
                                .latency   = calloc(n, sizeof *l->latency),
                                .bandwidth = calloc(n, sizeof *l->bandwidth)};
    if (l->latency && l->bandwidth) return FM_OK;
    fm_links_fini(l);
    return fm_fail(FM_E_OOM, "links of %d ranks", n_rank);
}

void fm_links_fini(fm_links *l)
{
    free(l->latency);
    free(l->bandwidth);
    *l = (fm_links){0};
}

static fm_status measure(fm_links *l, const fm_turns *turns, fm_link_wire *w)
{
    const int     n       = l->n_rank;
    int          *machine = calloc((size_t)n, sizeof *machine);
    fm_pairs_plan plan    = {0};
    fm_status     rc      = machine ? FM_OK : fm_fail(FM_E_OOM, "links of %d ranks", n);
    for (int i = 0; rc == FM_OK && i < n; i++) machine[i] = fm_world_machine(turns->world, i);
    if (rc == FM_OK) rc = fm_pairs_plan_make(&plan, machine, n, w->most_steps);
    if (rc == FM_OK) rc = measure_pairs(l, turns, &plan, w);
    if (rc == FM_OK) rc = measure_all_to_all(l, turns, w);
    fm_pairs_plan_fini(&plan);
    free(machine);
    return rc;
}

fm_status fm_links_measure_by(fm_links *out, const fm_turns *turns, fm_link_wire *wire)
{
    fm_links l = {0};
    FM_TRY(fm_links_init(&l, fm_world_comm(turns->world)->n_rank));
    const fm_status rc = l.n_rank > 1 ? measure(&l, turns, wire) : FM_OK;
    if (rc == FM_OK)
        *out = l;
    else
        fm_links_fini(&l);
    return rc;
}
