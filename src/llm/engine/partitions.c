/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions a leader schedules, and which of them a prompt gets. */
#include <stdlib.h>

#include "llm/engine/engine_internal.h"
#include "llm/sched/partition_choice.h"

static fm_status create_partition(fm_partition *p, const fm_sched_options *o, int share,
                                  int has_tiers)
{
    const fm_kv_options kv = {.n_page      = o->n_page,
                              .page_size   = o->page_size,
                              .max_lease   = o->max_running + o->other_leases,
                              .max_context = o->max_context,
                              .share       = share,
                              .has_tiers   = has_tiers};
    FM_TRY(fm_kv_create(&p->kv, &kv));
    return fm_sched_create(&p->sched, o, p->kv);
}

static fm_status create_step(fm_step *s, const fm_engine *e)
{
    const size_t n_group = (size_t)e->n_group, n_out = n_group * (size_t)e->limits.max_out;
    s->batch = calloc(n_group, sizeof *s->batch);
    s->out   = calloc(n_out, sizeof *s->out);
    return s->batch && s->out ? FM_OK : fm_fail(FM_E_OOM, "steps");
}

static fm_status create_micro_batch(fm_engine *e, fm_micro_batch *m, const fm_sched_options *o,
                                    int share)
{
    m->page0     = (int32_t)(m - e->micro) * o->n_page;
    m->kept0     = (int32_t)(m - e->micro) * fm_sched_n_kept(o);
    m->partition = calloc((size_t)e->n_group, sizeof *m->partition);
    if (!m->partition) return fm_fail(FM_E_OOM, "partitions");
    for (int g = 0; g < e->n_group; g++) {
        const int index = (int)(m - e->micro) * e->n_group + g;
        FM_TRY(create_partition(&m->partition[g], o, share, e->tiers.memory != NULL));
        FM_TRY(fm__tiers_add_partition(e, &m->partition[g], index, e->n_micro * e->n_group));
    }
    for (int k = 0; k < FM_STEPS_IN_FLIGHT; k++) FM_TRY(create_step(&m->step[k], e));
    return FM_OK;
}

static fm_status follow_pages(fm_engine *e, const fm_sched_options *o)
{
    const int n = fm__n_partition(e);
    FM_TRY(fm_page_feed_create(&e->page_feed, n * o->n_page, o->page_size));
    for (int i = 0; i < n; i++)
        FM_TRY(fm_page_feed_follow(e->page_feed, fm__partition(e, i)->kv, i * o->n_page));
    return FM_OK;
}

fm_status fm__partitions_create(fm_engine *e, int n_micro, const fm_sched_options *o, int share)
{
    e->n_group = e->layout.n_group;
    e->micro   = calloc((size_t)n_micro, sizeof *e->micro);
    if (!e->micro) return fm_fail(FM_E_OOM, "micro-batches");
    e->n_micro = n_micro;
    for (int i = 0; i < n_micro; i++) FM_TRY(create_micro_batch(e, &e->micro[i], o, share));
    return follow_pages(e, o);
}

void fm__partitions_destroy(fm_engine *e)
{
    for (int i = 0; i < e->n_micro; i++) {
        fm_micro_batch *m = &e->micro[i];
        for (int g = 0; m->partition && g < e->n_group; g++) {
            fm_tier_policy_destroy(m->partition[g].tier_policy);
            fm_sched_destroy(m->partition[g].sched);
            fm_kv_destroy(m->partition[g].kv);
        }
        free(m->partition);
        for (int k = 0; k < FM_STEPS_IN_FLIGHT; k++) {
            free(m->step[k].batch);
            free(m->step[k].out);
        }
    }
    free(e->micro);
    fm_page_feed_destroy(e->page_feed);
}

static fm_partition_view view_at(const void *ctx, int i)
{
    const fm_partition *p = fm__partition(ctx, i);
    return (fm_partition_view){.kv = p->kv, .sched = p->sched, .load = p->load};
}

static fm_partitions_view view_of(const fm_engine *e)
{
    return (fm_partitions_view){.n = fm__n_partition(e), .at = view_at, .ctx = e};
}

fm_partition *fm__partition_for(fm_engine *e, const int32_t *token, int32_t n)
{
    const fm_partitions_view all = view_of(e);
    return fm__partition(e, fm_choose_partition(&all, token, n));
}

void fm__partitions_balance(fm_engine *e, fm_micro_batch *m)
{
    const fm_partitions_view all = view_of(e);
    for (int g = 0; g < e->n_group; g++) {
        const int lender = fm_choose_lender(&all, (int)(m - e->micro) * e->n_group + g);
        if (lender < 0) continue;
        fm_partition *to = &m->partition[g], *from = fm__partition(e, lender);
        fm_request   *r = fm_sched_withdraw(from->sched);
        if (!r) continue;
        fm_job *j = r->user;
        from->load -= j->of->load;
        to->load += j->of->load;
        j->partition       = to;
        const fm_status rc = fm_sched_submit(to->sched, r); /* partitions are alike */
        FM_BUG_UNLESS(rc == FM_OK);
    }
}

fm_sched_stats fm__partitions_stats(const fm_engine *e)
{
    fm_sched_stats sum = {0};
    for (int i = 0; i < fm__n_partition(e); i++) {
        const fm_sched_stats s = fm_sched_get_stats(fm__partition(e, i)->sched);
        fm_sched_add_stats(&sum, &s);
    }
    return sum;
}

int fm__micro_batch_busy(const fm_engine *e, const fm_micro_batch *m)
{
    for (int g = 0; g < e->n_group; g++) {
        const fm_sched_stats st = fm_sched_get_stats(m->partition[g].sched);
        if (st.n_running + st.n_waiting) return 1;
    }
    return 0;
}
