/* SPDX-License-Identifier: Apache-2.0 */
/* Pages on their way between the pool and the tiers below it: when the leader decides. */
#include "base/clock.h"
#include "llm/engine/engine_internal.h"

static const double nap = 0.002, last_writes = 30; /* seconds */
enum { LEAST_PROMPT_ROWS = 32 };                   /* of a step whose cost is learned */

static fm_tier_policy_options options_of(fm_engine *e, int n_partition)
{
    const fm_tiers *t = &e->tiers;
    return (fm_tier_policy_options){.files    = fm_tier_files_of(t->store),
                                    .costs    = &e->tiers.costs,
                                    .saving   = t->saving,
                                    .n_slot   = t->n_slot / n_partition,
                                    .n_host   = t->n_host / n_partition,
                                    .n_check  = t->n_check / n_partition,
                                    .n_buffer = t->n_buffer,
                                    .most_in  = t->most_in,
                                    .most_out = t->most_out,
                                    .is_async = e->run && e->run->ops->copied != NULL,
                                    .waits    = e->n_group == 1,
                                    .view     = fm__tiers_view,
                                    .view_ctx = e};
}

int fm__tiers_max_moves(fm_engine *e)
{
    const fm_tier_policy_options o = options_of(e, 1);
    return e->tiers.file_bytes ? fm_tier_policy_most_moves(&o) : 0;
}

fm_status fm__tiers_add_partition(fm_engine *e, fm_partition *p, int index, int n_partition)
{
    fm_tier_policy_options o = options_of(e, n_partition);
    if (!e->tiers.memory) return FM_OK;
    o.kv    = p->kv;
    o.sched = p->sched;
    o.slot0 = index * o.n_slot;
    o.host0  = e->tiers.n_slot + index * o.n_host;
    o.check0 = e->tiers.n_slot + index * o.n_check;
    return fm_tier_policy_create(&p->tier_policy, &o);
}

fm_status fm__tiers_prepare(fm_engine *e, const fm_micro_batch *m)
{
    FM_TRY(fm__tiers_take_reports(e));
    for (int g = 0; e->tiers.memory && g < e->n_group; g++)
        fm_tier_policy_prepare(m->partition[g].tier_policy, fm_now());
    return FM_OK;
}

/* Pages of a micro-batch begin at page0 in the pools. */
static void number_pages(fm_moves *list, int32_t page0)
{
    for (int i = 0; i < list->n; i++)
        if (list->move[i].page >= 0) list->move[i].page += page0;
}

fm_status fm__tiers_move(fm_engine *e, const fm_micro_batch *m, int has_pass)
{
    if (!e->tiers.memory) return FM_OK;
    for (int g = 0; g < e->n_group; g++)
        number_pages(fm_tier_policy_moves(m->partition[g].tier_policy), m->page0);
    if (e->courier) FM_TRY(fm__tiers_send(e, m, has_pass));
    const fm_moves *own =
        fm_tier_policy_moves(m->partition[e->layout.shard.group.index].tier_policy);
    const fm_status rc = fm__tiers_carry_out(e, own->move, own->n, has_pass);
    for (int g = 0; g < e->n_group; g++) fm_tier_policy_moves(m->partition[g].tier_policy)->n = 0;
    return rc;
}

fm_status fm__tiers_wait(fm_engine *e)
{
    FM_TRY(fm__tiers_take_reports(e));
    for (int i = 0; e->tiers.memory && i < fm__n_partition(e); i++) {
        if (!fm_tier_policy_is_loading(fm__partition(e, i)->tier_policy)) continue;
        if (e->tiers.sums) fm_host_sums_wait(e->tiers.sums, nap);
        if (e->tiers.store) fm_store_wait(e->tiers.store, nap);
        break;
    }
    return FM_OK;
}

static int prompt_rows(const fm_step *s, int n_group)
{
    int n = 0;
    for (int g = 0; g < n_group; g++)
        for (int i = 0; s->batch[g] && i < s->batch[g]->n_span; i++)
            if (s->batch[g]->span[i].form == FM_FORM_PROMPT) n += s->batch[g]->span[i].n_row;
    return n;
}

/* What a prompt token costs to compute: the time of a step, divided evenly among its rows.  A prefix
 * worth loading is computed in full chunks: steps with few prompt rows, which read the weights for few,
 * do not count. */
void fm__tiers_learn(fm_engine *e, const fm_step *s)
{
    fm_tiers *t = &e->tiers;
    if (!t->memory) return;
    const double now   = fm_now();
    const double began = s->launched > t->learned ? s->launched : t->learned;
    const int    n     = prompt_rows(s, e->n_group);
    if (n > t->most_prompt_rows) t->most_prompt_rows = n;
    if (n >= LEAST_PROMPT_ROWS && 2 * n >= t->most_prompt_rows)
        fm_load_costs_computed(&t->costs, n, (now - began) * n / s->n_row);
    fm_load_costs_step(&t->costs, now - began);
    t->learned = now;
}

/* Waits for all copies that were requested, and for files that are being written. */
static fm_status settle(fm_engine *e, fm_micro_batch *m)
{
    FM_TRY(fm__tiers_made(e, 1));
    for (int g = 0; g < e->n_group; g++) fm_tier_policy_settled(m->partition[g].tier_policy);
    if (e->tiers.store) fm_store_drain(e->tiers.store);
    return FM_OK;
}

/* Before the end: saves the pages that are to be saved, for a limited time. */
static fm_status save_all(fm_engine *e, fm_micro_batch *m)
{
    const double began = fm_now();
    for (int n_idle = 0; n_idle < 2 && fm_now() - began < last_writes;) {
        int n = 0;
        for (int g = 0; g < e->n_group; g++) n += fm_tier_policy_save(m->partition[g].tier_policy);
        FM_TRY(fm__tiers_move(e, m, 0));
        FM_TRY(settle(e, m));
        n_idle = n ? 0 : n_idle + 1;
    }
    return FM_OK;
}

/* Copies count as finished some steps after they were requested; without steps they are waited for
 * here. */
static fm_status save_some(fm_engine *e, fm_micro_batch *m, int *n)
{
    for (int g = 0; g < e->n_group; g++) *n += fm_tier_policy_save(m->partition[g].tier_policy);
    FM_TRY(fm__tiers_move(e, m, 0));
    FM_TRY(fm__tiers_made(e, 1));
    for (int g = 0; g < e->n_group; g++) fm_tier_policy_settled(m->partition[g].tier_policy);
    return FM_OK;
}

fm_status fm__tiers_save(fm_engine *e, int *more)
{
    int n = 0;
    *more = 0;
    if (!e->tiers.memory) return FM_OK;
    for (int i = 0; i < e->n_micro; i++) FM_TRY(save_some(e, &e->micro[i], &n));
    if (!e->tiers.store) return FM_OK;
    const fm_store_stats s = fm_store_get_stats(e->tiers.store);
    *more                  = s.is_on && (n > 0 || s.n_queued > 0);
    return FM_OK;
}

fm_status fm__tiers_demote(fm_engine *e, fm_micro_batch *m)
{
    if (!e->tiers.demotes || !e->tiers.memory) return FM_OK;
    FM_TRY(save_all(e, m));
    for (int g = 0; g < e->n_group; g++) fm_kv_demote_all(m->partition[g].kv);
    return FM_OK;
}

fm_status fm__tiers_finish(fm_engine *e)
{
    for (int i = 0; e->tiers.store && i < e->n_micro; i++) {
        for (int g = 0; g < e->n_group; g++)
            if (e->tiers.saving == FM_KV_SAVE_AT_EVICTION)
                fm_kv_want_all(e->micro[i].partition[g].kv);
        FM_TRY(save_all(e, &e->micro[i]));
    }
    return fm__tiers_await_reports(e);
}
