/* SPDX-License-Identifier: Apache-2.0 */
/* What a step does to its requests: when it is launched, and when its tokens are
 * known. */
#include "llm/sched/sched.h"

#include "base/rng.h"
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

    if (p->ignore_eos || fm_request_n_known(r) < p->min_new_tokens) return 0;
    return is_among(id, s->opt.eos, s->opt.n_eos) || is_among(id, p->stop_id, p->n_stop_id);
}

/* The first token that was pending has become known. */
static void take_token(fm_sched *s, fm_request *r, int32_t id)
{
    const int32_t at = r->n_token - r->n_pending;

    if (ends_text(s, r, id)) {
        r->finish       = FM_FINISH_STOP;
        r->matched_stop = id;
    }
    r->token[at] = id;
    r->n_pending--;
    s->stats.n_output++;
    if (r->finish == FM_FINISH_NONE && !r->n_pending && !fm__left(r)) r->finish = FM_FINISH_LENGTH;
}

void fm_sched_replay(fm_sched *s, fm_request *r, int32_t id)
{
    FM_BUG_UNLESS(r->state == FM_REQ_WAITING && !r->n_preempted && fm__left(r) > 0);
    if (!fm_request_n_output(r)) {
        fm__queue_remove(&s->waiting, r);
        r->arrival = 0; /* to the front of its priority */
        fm__queue_insert(&s->waiting, r);
    }
    r->n_token++;
    r->n_pending++;
    take_token(s, r, id);
    s->stats.n_output--; /* it was not sampled here */
    if (r->finish == FM_FINISH_NONE) return;
    fm__queue_remove(&s->waiting, r);
    fm__retire(s, r);
}

static void publish_prompt(fm_sched *s, fm_request *r)
{
    const int32_t n = r->n_computed < r->n_prompt ? r->n_computed : r->n_prompt;
    if (n == r->n_published) return;
    fm_kv_publish(s->kv, &r->lease, r->token, n);
    r->n_published = n;
}

static void count_step(fm_sched *s, const fm_batch *b)
{
    const int n_decode = b->n_row - s->n_prefill_row - s->n_draft_row;

    s->stats.n_step++;
    s->stats.n_row += b->n_row;
    s->stats.n_prefill_row += s->n_prefill_row;
    s->stats.n_decode_row += n_decode;
    s->stats.n_draft += s->n_draft_row;
    s->stats.sum_running += s->n_running;
    if (n_decode && !s->n_preempted) fm__ratio_fall(s);
}

/* Drafts are not counted as computed before they are accepted. */
static void launch_slot(fm_sched *s, fm__slot *slot)
{
    fm_request *r = slot->r;

    if (slot->take && fm__keeps_states(s, r)) {
        r->kept      = 1 + fm__keep_at(s, r);
        r->kept_half = !r->kept_half;
    } else if (slot->take) {
        r->kept = 0;
    }
    r->n_computed += slot->take - slot->n_draft;
    r->n_scored += slot->n_score;
    publish_prompt(s, r); /* a sequence that reuses these pages runs later */
    slot->is_last = !slot->n_sample && slot->take && r->n_computed == r->n_token;
    if (!slot->n_sample) return;
    if (!slot->n_draft) r->token[r->n_token] = FM_CHOICE(slot->out0 + slot->n_score);
    r->n_token++;
    r->n_pending++;
    r->n_draft = 0;
}

void fm_sched_launched(fm_sched *s)
{
    FM_BUG_UNLESS(s->is_planned);
    fm__step *t = fm__next_step(s);
    count_step(s, &t->batch);
    t->n_slot = 0;
    for (int i = 0; i < s->n_running; i++) {
        launch_slot(s, &s->running[i]);
        t->slot[t->n_slot++] = s->running[i];
    }
    s->is_planned = 0;
    s->n_in_flight++;
}

/* Draft i is right if the row before it sampled just that token. */
static int is_accepted(fm_sched *s, const fm__step *t, int32_t out, const int32_t *token)
{
    if (s->opt.simulated > 0)
        return fm_rng_u32(0x51, s->n_simulated++) < s->opt.simulated * 0x1p32;
    return token[out - 1] == t->batch.token[t->batch.out[out]];
}

static void commit_samples(fm_sched *s, fm__step *t, const fm__slot *slot, const int32_t *token)
{
    fm_request   *r   = slot->r;
    const int32_t out = slot->out0 + slot->n_score;

    if (token[out] == FM_NO_TOKEN) {
        r->finish = FM_FINISH_ERROR;
        return;
    }
    take_token(s, r, token[out]);
    t->out[out].is_taken = 1;
    for (int32_t i = out + 1; i < out + slot->n_sample; i++) {
        if (r->finish != FM_FINISH_NONE || !is_accepted(s, t, i, token)) return;
        if (r->kept) r->kept++;
        r->n_computed++;
        r->n_token++;
        r->n_pending++;
        take_token(s, r, token[i]);
        t->out[i].is_taken = 1;
        s->stats.n_accepted++;
    }
}

static void commit_slot(fm_sched *s, fm__step *t, const fm__slot *slot, const int32_t *token)
{
    fm_request *r = slot->r;

    if (!r || r->finish != FM_FINISH_NONE) return; /* ended from outside meanwhile */
    for (int32_t i = 0; i < slot->n_score; i++) t->out[slot->out0 + i].is_taken = 1;
    if (slot->n_sample) commit_samples(s, t, slot, token);
    else if (slot->is_last) r->finish = FM_FINISH_LENGTH;
}

void fm_sched_commit(fm_sched *s, const int32_t *token)
{
    if (!s->n_in_flight) fm_sched_launched(s);
    fm__step *t = &s->step[s->oldest];
    for (int i = 0; i < t->n_slot; i++) commit_slot(s, t, &t->slot[i], token);
    s->oldest = (s->oldest + 1) % FM__STEPS;
    s->n_in_flight--;
    fm__sweep(s);
}
