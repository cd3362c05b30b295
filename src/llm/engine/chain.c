/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of drafts: after a step is committed the MTP layer drafts for the next one, link by link.
 * model/model.h says how it works. */
#include <string.h>

#include "base/clock.h"
#include "llm/engine/engine_internal.h"

/* --- on every rank --------------------------------------------------------- */

/* The next link reads the token this link drafted and the hidden state it left. */
static void next_link(fm_batch *b)
{
    for (int i = 0; i < b->n_row; i++) {
        fm_span *s  = &b->span[i];
        b->token[i] = FM_CHOICE(i);
        b->pos[i]   = ++s->pos0;
        s->before   = s->keep0 + 1;
    }
    b->has_choices = 1;
}

/* The send of the plan may still read these tokens: they are copied before they change. */
static fm_status run_links(fm_engine *e, const fm_batch *first, int n_link)
{
    fm_batch b = *first;
    b.token    = e->draft.token;
    if (b.n_row) memcpy(b.token, first->token, (size_t)b.n_row * sizeof *b.token);
    for (b.link = 1; b.link <= n_link; b.link++) {
        fm_run_start(e->run, &b);
        e->model->draft(e->run);
        FM_TRY(fm_run_finish(e->run));
        next_link(&b);
    }
    return FM_OK;
}

fm_status fm__chain_run(fm_engine *e, const fm_batch *b, int n_link, int32_t *id)
{
    if (e->weights.n_mtp) FM_TRY(run_links(e, b, n_link));
    return e->weights.n_mtp || id ? fm_run_drafted(e->run, b, n_link, id) : FM_OK;
}

/* --- on the leader --------------------------------------------------------- */

static int n_decoding(const fm_engine *e, const fm_micro_batch *m)
{
    int n = 0;
    for (int g = 0; g < e->n_group; g++) n += fm_sched_n_running(m->partition[g].sched);
    return n;
}

/* A step that reads prompts as well says nothing about chains, so trials are put off for a few steps
 * where one is to be expected; not for ever, since a queue may wait for pages instead. */
static int may_try(fm_engine *e, const fm_micro_batch *m)
{
    enum { PUT_OFF = 8 };
    int decodes = 1;
    for (int g = 0; g < e->n_group; g++) decodes &= fm_sched_only_decodes(m->partition[g].sched);
    const int may = decodes || e->draft.n_put_off >= PUT_OFF;
    e->draft.n_put_off = may ? 0 : e->draft.n_put_off + 1;
    return may;
}

static int links_that_pay(fm_engine *e, const fm_micro_batch *m)
{
    fm_drafting *d = &e->draft;
    if (!d->is_adaptive) return d->most;
    const int n_seq = n_decoding(e, m);
    const int n =
        fm_pace_links(&d->pace, n_seq, &d->depths, d->most, may_try(e, m), &d->pays);
    return d->can_rest && !fm_rest_drafts(&d->rest[fm_pace_size(n_seq)]) ? 0 : n;
}

/* A request that wants drafts needs its last token on the host, so its next step is not planned
 * ahead. */
static int add_row(fm_engine *e, fm_partition *p, fm_job *j, int n_link)
{
    fm_request *r    = &j->request;
    const int   want = fm__drafts_for(e, j, n_link);
    j->n_ahead       = 0;
    j->row           = -1;
    r->is_sequential = j->needs_token || want > 0 || (e->draft.is_ngram && r->is_sequential);
    if (!want || !fm_sched_chain_add(p->sched, r, n_link)) return 0;
    j->n_ahead = want;
    return 1;
}

/* Rows of all partitions, one behind the other. */
static int add_rows(fm_engine *e, fm_micro_batch *m, const fm_batch **batch, int n_link)
{
    int n_row = 0;
    for (int g = 0; g < e->n_group; g++) {
        fm_partition *p = &m->partition[g];
        fm_sched_chain_begin(p->sched);
        for (int i = 0; i < fm_sched_n_running(p->sched); i++) {
            fm_job *j = fm_sched_running(p->sched, i)->user;
            if (add_row(e, p, j, n_link)) j->row = n_row++;
        }
        batch[g] = fm_sched_chain(p->sched);
    }
    return n_row;
}

static void give_drafts(fm_engine *e, fm_micro_batch *m, int n_row)
{
    for (int g = 0; g < e->n_group; g++)
        for (int i = 0; i < fm_sched_n_running(m->partition[g].sched); i++) {
            fm_job *j = fm_sched_running(m->partition[g].sched, i)->user;
            for (int k = 0; j->row >= 0 && k < j->n_ahead; k++)
                j->ahead[k] = e->draft.id[k * n_row + j->row];
        }
}

static fm_status run_chain(fm_engine *e, const fm_micro_batch *m, const fm_batch **batch, int lane,
                           int n_link)
{
    fm_read_plan own = {0};
    if (!e->courier) return fm__chain_run(e, batch[0], n_link, e->draft.id);
    const fm_step_plan p = {.head  = {FM_PLAN_DRAFT, lane, e->n_launched, n_link},
                            .batch = batch,
                            .page0 = m->page0,
                            .kept0 = m->kept0};
    FM_TRY(fm_courier_send(e->courier, &p, &own));
    if (e->run->ops->sample)
        FM_TRY(fm_courier_settle(e->courier)); /* devices wait for each other */
    return fm__chain_run(e, &own.batch, n_link, e->draft.id);
}

fm_status fm__chain(fm_engine *e, fm_micro_batch *m, int lane)
{
    const fm_batch *batch[e->n_group];
    const double    began = fm_now();
    if (!e->draft.is_chain) return FM_OK;
    const int n_link = links_that_pay(e, m);
    const int n_row  = add_rows(e, m, batch, n_link);
    m->chain         = (fm_chain_made){n_row ? n_link : 0, 0};
    if (!n_row) return FM_OK;
    FM_TRY(fm__tiers_move(e, m, 0)); /* pages evicted for the rows are still in place */
    FM_TRY(run_chain(e, m, batch, lane, n_link));
    give_drafts(e, m, n_row);
    m->chain.seconds = fm_now() - began;
    return FM_OK;
}
