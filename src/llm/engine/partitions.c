/* SPDX-License-Identifier: Apache-2.0 */
/* The seats a leader schedules, and which of them a prompt gets. */
#include <stdlib.h>

#include "llm/engine/engine_internal.h"

static fm_status create_seat(fm_seat *s, const fm_sched_options *o, int max_lease, int share)
{
    const fm_kv_options kv = {.n_page      = o->n_page,
                              .page_size   = o->page_size,
                              .max_lease   = max_lease,
                              .max_context = o->max_context,
                              .share       = share};
    FM_TRY(fm_kv_create(&s->kv, &kv));
    return fm_sched_create(&s->sched, o, s->kv);
}

fm_status fm__lanes_create(fm_engine *e, int n_lane, const fm_sched_options *o, int share)
{
    const size_t n_seat = (size_t)n_lane * (size_t)e->layout.n_group;
    e->n_group          = e->layout.n_group;
    e->lane             = calloc((size_t)n_lane, sizeof *e->lane);
    fm_seat      *s     = calloc(n_seat, sizeof *s);
    fm_seat_rows *rows  = calloc(n_seat * FM__FLIGHTS, sizeof *rows);
    if (!e->lane || !s || !rows) {
        free(s);
        free(rows);
        return fm_fail(FM_E_OOM, "lanes");
    }
    e->n_lane = n_lane;
    for (int i = 0; i < e->n_lane; i++) {
        e->lane[i] = (fm_lane){.seat = s + i * e->n_group, .page0 = i * o->n_page};
        for (int k = 0; k < FM__FLIGHTS; k++)
            e->lane[i].flight[k].rows = rows + (i * FM__FLIGHTS + k) * e->n_group;
    }
    for (int i = 0; i < e->n_lane * e->n_group; i++) /* one lease more, for scoring */
        FM_TRY(create_seat(&s[i], o, o->max_running + 1, share));
    return FM_OK;
}

void fm__lanes_destroy(fm_engine *e)
{
    for (int i = 0; i < e->n_lane * e->n_group; i++) {
        fm_sched_destroy(fm__seat(e, i)->sched);
        fm_kv_destroy(fm__seat(e, i)->kv);
    }
    if (e->n_lane) free(e->lane[0].flight[0].rows);
    if (e->n_lane) free(e->lane[0].seat);
    free(e->lane);
}

/* Where the least work waits before it, counting what need not be computed
 * again there: a common prefix pulls, a long line pushes. */
fm_seat *fm__lanes_deal(fm_engine *e, const int32_t *token, int32_t n)
{
    fm_seat *best = fm__seat(e, 0);
    int64_t  least = INT64_MAX;
    if (e->n_lane * e->n_group == 1) return best;
    for (int i = 0; i < e->n_lane * e->n_group; i++) {
        fm_seat      *s     = fm__seat(e, i);
        const int32_t match = n > 1 ? fm_kv_match(s->kv, token, n - 1) : 0;
        if (s->load - match >= least) continue;
        least = s->load - match;
        best  = s;
    }
    return best;
}

static int n_waiting(const fm_seat *s)
{
    return fm_sched_get_stats(s->sched).n_waiting;
}

static fm_seat *longest_line(const fm_engine *e)
{
    fm_seat *longest = fm__seat(e, 0);
    for (int i = 1; i < e->n_lane * e->n_group; i++)
        if (n_waiting(fm__seat(e, i)) > n_waiting(longest)) longest = fm__seat(e, i);
    return longest;
}

/* How long answers get was only guessed when they were dealt: whoever has
 * nobody in line takes the first of the longest line. */
void fm__lanes_level(fm_engine *e, fm_lane *l)
{
    for (int g = 0; g < e->n_group && e->n_lane * e->n_group > 1; g++) {
        fm_seat *to = &l->seat[g], *from = longest_line(e);
        if (n_waiting(to) || from == to) continue;
        fm_request *r = fm_sched_withdraw(from->sched);
        if (!r) continue;
        fm_job *j = r->user;
        from->load -= j->load;
        to->load += j->load;
        j->seat = to;
        const fm_status rc = fm_sched_submit(to->sched, r); /* seats are alike */
        FM_BUG_UNLESS(rc == FM_OK);
    }
}

void fm__add_sched_stats(fm_sched_stats *sum, const fm_sched_stats *s)
{
    sum->n_waiting += s->n_waiting;
    sum->n_running += s->n_running;
    sum->n_step += s->n_step;
    sum->n_row += s->n_row;
    sum->n_prefill_row += s->n_prefill_row;
    sum->n_decode_row += s->n_decode_row;
    sum->n_preemption += s->n_preemption;
    sum->n_admission += s->n_admission;
    sum->n_output += s->n_output;
    sum->sum_running += s->sum_running;
}

fm_sched_stats fm__lanes_stats(const fm_engine *e)
{
    fm_sched_stats sum = {0};
    for (int i = 0; i < e->n_lane * e->n_group; i++) {
        const fm_sched_stats s = fm_sched_get_stats(fm__seat(e, i)->sched);
        fm__add_sched_stats(&sum, &s);
    }
    return sum;
}

int fm__seat_busy(const fm_seat *s)
{
    const fm_sched_stats st = fm_sched_get_stats(s->sched);
    return st.n_running + st.n_waiting > 0;
}

int fm__lane_busy(const fm_engine *e, const fm_lane *l)
{
    for (int g = 0; g < e->n_group; g++)
        if (fm__seat_busy(&l->seat[g])) return 1;
    return 0;
}
