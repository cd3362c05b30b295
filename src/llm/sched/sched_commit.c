/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/sched/sched.h"

#include "llm/sched/sched_internal.h"

static int is_among(int32_t id, const int32_t *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == id) return 1;
    return 0;
}

static int ends_text(const fm_sched *s, const fm_request *r, int32_t id)
{
    const fm_sampling *p = &r->sampling;

    if (p->ignore_eos || fm_request_n_output(r) < p->min_new_tokens) return 0;
    return is_among(id, s->opt.eos, s->opt.n_eos) || is_among(id, p->stop_id, p->n_stop_id);
}

static void append(fm_sched *s, fm_request *r, int32_t id)
{
    if (ends_text(s, r, id)) {
        r->finish       = FM_FINISH_STOP;
        r->matched_stop = id;
    }
    r->token[r->n_token++] = id;
    s->stats.n_output++;
    if (r->finish == FM_FINISH_NONE && !fm__left(r)) r->finish = FM_FINISH_LENGTH;
}

static void publish_prompt(fm_sched *s, fm_request *r)
{
    const int32_t n = r->n_computed < r->n_prompt ? r->n_computed : r->n_prompt;
    if (n == r->n_published) return;
    fm_kv_publish(s->kv, &r->lease, r->token, n);
    r->n_published = n;
}

static void commit_slot(fm_sched *s, const fm__slot *slot, const int32_t *token)
{
    fm_request *r = slot->r;

    r->n_computed += slot->take;
    r->n_scored += slot->n_score;
    publish_prompt(s, r);
    if (r->finish != FM_FINISH_NONE) return; /* ended from outside meanwhile */
    if (slot->out >= 0) append(s, r, token[slot->out]);
    else if (r->n_computed == r->n_token) r->finish = FM_FINISH_LENGTH; /* no output wanted */
}

static void count_step(fm_sched *s)
{
    const int n_decode = s->batch.n_row - s->n_prefill_row;

    s->stats.n_step++;
    s->stats.n_row += s->batch.n_row;
    s->stats.n_prefill_row += s->n_prefill_row;
    s->stats.n_decode_row += n_decode;
    s->stats.sum_running += s->n_running;
    if (n_decode && !s->n_preempted) fm__ratio_fall(s);
}

void fm_sched_commit(fm_sched *s, const int32_t *token)
{
    FM_BUG_UNLESS(s->is_planned);
    count_step(s);
    for (int i = 0; i < s->n_running; i++) commit_slot(s, &s->running[i], token);
    s->is_planned = 0;
    fm__sweep(s);
}
