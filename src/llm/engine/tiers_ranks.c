/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers with several ranks per replica: the leader broadcasts moves and collects how the ranks'
 * reads went.
 *
 *     leader ──moves, "how did reads go?"──> every rank ──state of each slot──> leader
 *
 * No rank waits: the leader looks for replies before each step and asks again as long as reads
 * are under way.  A page counts as read when every rank that holds a part of it has read its
 * own; if one rank fails, the page counts as failed. */
#include <stdlib.h>

#include "llm/engine/engine_internal.h"

/* Slots for reading, then checks of pages in host memory. */
static int n_state(const fm_engine *e) { return e->tiers.n_slot + e->tiers.n_check; }

static fm_slot_state state_here(const fm_engine *e, int i)
{
    const fm_tiers *t = &e->tiers;
    return i < t->n_slot ? fm_store_slot(t->store, i) : fm_host_sums_checked(t->sums, i - t->n_slot);
}

/* Which attention group the partition is of that the slot or check belongs to. */
static int group_of_slot(const fm_engine *e, int i)
{
    const fm_tiers *t = &e->tiers;
    const int       n = fm__n_partition(e);
    return (i < t->n_slot ? i / (t->n_slot / n) : (i - t->n_slot) / (t->n_check / n)) % e->n_group;
}

static int group_of_rank(const fm_engine *e, int rank)
{
    const int tp = e->layout.size.tp;
    return rank % tp / (tp / e->n_group);
}

fm_status fm__tiers_meet(fm_engine *e)
{
    fm_slot_reports *w = &e->tiers.reports;
    w->comm         = e->groups.tiers;
    if (w->comm->n_rank == 1) return FM_OK;
    const size_t n = (size_t)n_state(e), n_rank = (size_t)w->comm->n_rank;
    w->others   = calloc(n + 1, sizeof *w->others);
    w->asked_in = calloc(n + 1, sizeof *w->asked_in);
    w->reply    = calloc(n_rank * n, sizeof *w->reply);
    w->job      = calloc(n_rank, sizeof *w->job);
    if (!w->others || !w->asked_in || !w->reply || !w->job) return fm_fail(FM_E_OOM, "tiers");
    return FM_OK;
}

void fm__tiers_part(fm_engine *e)
{
    fm_slot_reports *w = &e->tiers.reports;
    if (!e->layout.is_leader && w->n_started) fm_comm_wait(&w->job[0]); /* the last reply */
    free(w->others);
    free(w->asked_in);
    free(w->reply);
    free(w->job);
}

/* --- a rank that follows --------------------------------------------------- */

fm_status fm__tiers_follow(fm_engine *e, const fm_read_plan *p)
{
    fm_slot_reports *w = &e->tiers.reports;
    FM_TRY(fm__tiers_carry_out(e, p->move, p->n_move, p->has_pass));
    if (!p->asks) return FM_OK;
    if (w->n_started) FM_TRY(fm_comm_wait(&w->job[0])); /* the last reply; the leader has it */
    for (int i = 0; i < n_state(e); i++) w->reply[i] = (int8_t)state_here(e, i);
    w->n_started = 1;
    return fm_comm_start(w->comm, &w->job[0], fm_call_send(w->reply, (size_t)n_state(e), 0, 0));
}

/* --- the leader ------------------------------------------------------------ */

fm_slot_state fm__tiers_view(void *engine, int slot)
{
    const fm_engine    *e    = engine;
    const int           mine = group_of_slot(e, slot) == e->layout.shard.group.index;
    const fm_slot_state here = mine ? state_here(e, slot) : FM_SLOT_READY;
    if (!e->courier || (here != FM_SLOT_READY && here != FM_SLOT_FAILED)) return here;
    const fm_slot_state there = (fm_slot_state)e->tiers.reports.others[slot];
    return there == FM_SLOT_READY ? here : there;
}

/* What all ranks that hold a part of the slot's page said. */
static fm_slot_state combine(const fm_engine *e, int slot)
{
    const fm_slot_reports *w  = &e->tiers.reports;
    fm_slot_state       is = FM_SLOT_READY;
    for (int r = 1; r < w->comm->n_rank; r++) {
        if (group_of_rank(e, r) != group_of_slot(e, slot)) continue;
        const int8_t said = w->reply[(size_t)r * (size_t)n_state(e) + (size_t)slot];
        if (said == FM_SLOT_BUSY || said == FM_SLOT_IDLE) return FM_SLOT_BUSY;
        if (said == FM_SLOT_FAILED) is = FM_SLOT_FAILED;
    }
    return is;
}

static void take_replies(fm_engine *e)
{
    fm_slot_reports *w = &e->tiers.reports;
    for (int i = 0; i < n_state(e); i++)
        if (w->others[i] == FM_SLOT_BUSY && (int32_t)(w->round - w->asked_in[i]) >= 0)
            w->others[i] = (int8_t)combine(e, i);
    w->is_asking = 0;
}

/* As many receives in flight as the group allows. */
static fm_status start_receives(fm_engine *e)
{
    fm_slot_reports *w = &e->tiers.reports;
    for (; w->n_started < w->comm->n_rank; w->n_started++) {
        int8_t *const   to = w->reply + (size_t)w->n_started * (size_t)n_state(e);
        const fm_status rc = fm_comm_start(w->comm, &w->job[w->n_started],
                                           fm_call_recv(to, (size_t)n_state(e), w->n_started, 0));
        if (rc == FM_E_FULL) break;
        FM_TRY(rc);
    }
    return FM_OK;
}

fm_status fm__tiers_take_reports(fm_engine *e)
{
    fm_slot_reports *w    = &e->tiers.reports;
    int           done = 1;
    if (!w->is_asking) return FM_OK;
    while (done && w->n_heard < w->n_started) {
        FM_TRY(fm_comm_test(&w->job[w->n_heard], &done));
        w->n_heard += done;
    }
    FM_TRY(start_receives(e));
    if (w->n_heard == w->comm->n_rank) take_replies(e);
    return FM_OK;
}

fm_status fm__tiers_await_reports(fm_engine *e)
{
    fm_slot_reports *w = &e->tiers.reports;
    while (w->is_asking) {
        if (w->n_heard < w->n_started) FM_TRY(fm_comm_wait(&w->job[w->n_heard++]));
        FM_TRY(start_receives(e));
        if (w->n_heard == w->comm->n_rank) take_replies(e);
    }
    return FM_OK;
}

/* Reads and checks that begin with this message are covered by the next status request at the
 * earliest. */
static void note(fm_slot_reports *w, const fm_moves *list, int n_slot)
{
    for (int i = 0; i < list->n; i++) {
        const fm_page_move *m        = &list->move[i];
        const int           is_check = m->kind == FM_MOVE_CHECK;
        const int           at       = is_check ? m->depth : m->slot;
        if (!is_check && (m->kind == FM_MOVE_WRITE || m->slot >= n_slot)) continue;
        w->others[at]   = m->kind == FM_MOVE_READ || is_check ? FM_SLOT_BUSY : FM_SLOT_IDLE;
        w->asked_in[at] = w->round + 1;
    }
}

static int is_anything_open(const fm_engine *e)
{
    for (int i = 0; i < n_state(e); i++)
        if (e->tiers.reports.others[i] == FM_SLOT_BUSY) return 1;
    return 0;
}

fm_status fm__tiers_send(fm_engine *e, const fm_micro_batch *m, int has_pass)
{
    fm_slot_reports   *w = &e->tiers.reports;
    const fm_moves *list[e->n_group];
    int             n = 0;
    for (int g = 0; g < e->n_group; g++) {
        list[g] = fm_tier_policy_moves(m->partition[g].tier_policy);
        note(w, list[g], e->tiers.n_slot);
        n += list[g]->n;
    }
    const int asks = !w->is_asking && is_anything_open(e);
    if (!n && !asks) return FM_OK;
    const int lane = e->overlaps ? (int)(e->n_launched % FM_STEPS_IN_FLIGHT) : (int)(m - e->micro);
    const fm_moves_plan p = {.head     = {FM_PLAN_MOVES, e->tiers.lane0 + lane, e->n_launched, 0},
                             .moves    = list,
                             .asks     = asks,
                             .has_pass = has_pass};
    FM_TRY(fm_courier_send_moves(e->courier, &p));
    if (!asks) return FM_OK;
    w->round++;
    w->is_asking = 1;
    w->n_started = w->n_heard = 1; /* from rank 1 on */
    return start_receives(e);
}
