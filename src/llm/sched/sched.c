/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/sched/sched.h"

#include <limits.h>
#include <stdlib.h>

#include "llm/sched/sched_internal.h"

enum { MAX_STEP_ROWS = 1 << 28 };

static fm_status check_options(const fm_sched_options *o)
{
    const struct {
        const char *name;
        int         value, least, most;
    } range[] = {
        {"max_running", o->max_running, 1, MAX_STEP_ROWS / 2},
        {"max_prefill", o->max_prefill, 1, MAX_STEP_ROWS / 2},
        {"max_context", o->max_context, 1, MAX_STEP_ROWS / 2},
        {"page_size", o->page_size, 1, 64},
        {"n_page", o->n_page, 1, INT_MAX},
        {"max_draft", o->max_draft, 0, FM_MAX_DRAFT},
        {"keeps_states", o->keeps_states, 0, 1},
        {"n_eos", o->n_eos, 0, (int)(sizeof o->eos / sizeof *o->eos)},
    };
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (range[i].value < range[i].least || range[i].value > range[i].most)
            return fm_fail(FM_E_ARG, "scheduler: %s is %d; %d to %d are possible", range[i].name,
                           range[i].value, range[i].least, range[i].most);
    if (!(o->conservativeness >= 0 && o->conservativeness <= 1e6))
        return fm_fail(FM_E_ARG, "scheduler: conservativeness is %g; it cannot be negative",
                       o->conservativeness);
    return FM_OK;
}

static fm_status check_kv(const fm_sched_options *o, const fm_kv *kv)
{
    const fm_kv_options *k = fm_kv_get_options(kv);

    if (k->n_page != o->n_page || k->page_size != o->page_size)
        return fm_fail(FM_E_ARG,
                       "scheduler: made for %d pages of %d tokens, the cache has %d of %d",
                       o->n_page, o->page_size, k->n_page, k->page_size);
    if (k->max_lease < o->max_running || k->max_context < o->max_context)
        return fm_fail(FM_E_ARG,
                       "scheduler: runs %d texts of up to %d tokens, the cache takes %d of %d",
                       o->max_running, o->max_context, k->max_lease, k->max_context);
    return FM_OK;
}

int fm__prefill_budget(const fm_sched_options *o)
{
    return o->chunk > 0 && o->chunk < o->max_prefill ? o->chunk : o->max_prefill;
}

int fm_sched_max_rows(const fm_sched_options *o)
{
    if (check_options(o) != FM_OK) return 0;
    const int budget = fm__prefill_budget(o);
    const int whole  = o->chunk > 0 ? 0 : o->max_context; /* one prompt, whatever its length */
    return (budget > whole ? budget : whole) + o->max_running * (1 + o->max_draft);
}

int fm_sched_max_out(const fm_sched_options *o)
{
    return check_options(o) == FM_OK ? o->max_running * (1 + o->max_draft) + FM_SCORE_ROWS : 0;
}

void fm_sched_set_time(fm_sched *s, double now)
{
    s->now = now;
}

static void carve(fm_sched *s, fm_slab *slab)
{
    const size_t n_row = (size_t)fm_sched_max_rows(&s->opt), n = (size_t)s->opt.max_running;
    const size_t n_out = (size_t)fm_sched_max_out(&s->opt);

    for (int i = 0; i < FM__STEPS; i++) {
        fm__step *t    = &s->step[i];
        t->batch.token = fm_slab_take(slab, n_row * sizeof *t->batch.token);
        t->batch.pos   = fm_slab_take(slab, n_row * sizeof *t->batch.pos);
        t->batch.span  = fm_slab_take(slab, 2 * n * sizeof *t->batch.span); /* of both forms */
        t->batch.out   = fm_slab_take(slab, n_out * sizeof *t->batch.out);
        t->out         = fm_slab_take(slab, n_out * sizeof *t->out);
        t->slot        = fm_slab_take(slab, n * sizeof *t->slot);
    }
    fm__carve_chain(s, slab);
    s->running   = fm_slab_take(slab, n * sizeof *s->running);
    s->candidate = fm_slab_take(slab, FM__LPM_MAX * sizeof *s->candidate);
    s->future    = fm_slab_take(slab, n * sizeof *s->future);
}

/* The struct itself lies at the front of the block. */
static void lay_out(fm_sched *s, const fm_sched_options *opt, fm_slab *slab)
{
    fm_slab_take(slab, sizeof *s);
    *s = (fm_sched){.opt = *opt};
    carve(s, slab);
}

static size_t bytes_of(const fm_sched_options *opt)
{
    fm_sched measured;
    fm_slab  slab = {0};
    lay_out(&measured, opt, &slab);
    return slab.used;
}

fm_status fm_sched_create(fm_sched **out, const fm_sched_options *opt, fm_kv *kv)
{
    FM_TRY(check_options(opt));
    FM_TRY(check_kv(opt, kv));

    const size_t bytes = bytes_of(opt);
    char *const  base  = aligned_alloc(FM_SLAB_ALIGN, bytes);
    if (!base) return fm_fail(FM_E_OOM, "scheduler: the step tables need %zu bytes", bytes);

    fm_sched *s    = (fm_sched *)base;
    fm_slab   slab = {.base = base, .size = bytes};
    lay_out(s, opt, &slab);
    s->kv    = kv;
    s->ratio = fm__ratio_at_rest(s);

    *out = s;
    return FM_OK;
}

void fm_sched_destroy(fm_sched *s)
{
    if (!s) return;
    for (int i = 0; i < s->n_running; i++) {
        fm_request *r = s->running[i].r;
        fm_kv_end(s->kv, &r->lease);
        r->has_lease = 0;
    }
    free(s);
}

/* Tokens one text can have here. */
static int64_t text_room(const fm_sched_options *o)
{
    const int64_t pool = (int64_t)o->n_page * o->page_size;
    return pool < o->max_context ? pool : o->max_context;
}

fm_status fm_sched_check(const fm_sched *s, const fm_request *r)
{
    const int         needs_room = r->sampling.max_new_tokens > 0;
    const int64_t     n          = (int64_t)r->n_prompt + needs_room;
    const char *const of_which   = needs_room ? ", one of them for the answer" : "";

    if (r->n_prompt < 1) return fm_fail(FM_E_ARG, "the prompt is empty");
    FM_BUG_UNLESS(r->n_score >= 0 && r->n_score < r->n_prompt);
    if (r->sampling.max_new_tokens < 0)
        return fm_fail(FM_E_ARG, "max_new_tokens is %d; it cannot be negative",
                       r->sampling.max_new_tokens);
    if (n > s->opt.max_context)
        return fm_fail(FM_E_ARG, "the prompt has %d tokens; the context holds %d%s", r->n_prompt,
                       s->opt.max_context, of_which);
    if (n > text_room(&s->opt))
        return fm_fail(FM_E_ARG, "the prompt has %d tokens; the cache holds %lld%s", r->n_prompt,
                       (long long)text_room(&s->opt), of_which);
    return FM_OK;
}

fm_status fm_sched_submit(fm_sched *s, fm_request *r)
{
    FM_TRY(fm_sched_check(s, r));

    const int64_t room = text_room(&s->opt) - r->n_prompt;
    if (r->sampling.max_new_tokens > room) r->sampling.max_new_tokens = (int)room;
    r->state        = FM_REQ_WAITING;
    r->finish       = FM_FINISH_NONE;
    r->matched_stop = -1;
    r->n_token      = r->n_prompt;
    r->n_computed = r->n_published = r->n_cached = r->n_preempted = r->has_lease = 0;
    r->n_scored = r->n_pending = r->n_overtaken = r->n_passed = r->n_draft = r->kept = 0;
    r->n_from_host = r->n_from_disk = r->n_loaded = r->is_loading = r->is_looked_up = r->looks_again = 0;
    r->admitted = 0;
    r->arrival = s->n_arrival++;
    fm__queue_insert(&s->waiting, r);
    fm_kv_touch(s->kv, r->token, fm_request_n_lookup(r));
    return FM_OK;
}

fm_request *fm_sched_withdraw(fm_sched *s)
{
    for (fm_request *r = fm__queue_first(&s->waiting); r; r = fm_request_next(r))
        if (!r->n_preempted && !r->is_loading && !fm_request_n_output(r)) {
            fm__queue_remove(&s->waiting, r);
            return r;
        }
    return NULL;
}

/* Drops what steps in flight still bring for a sequence. */
static void forget(fm_sched *s, fm_request *r)
{
    for (int i = 0; i < s->n_in_flight; i++) {
        fm__step *t = &s->step[(s->oldest + i) % FM__STEPS];
        for (int k = 0; k < t->n_slot; k++)
            if (t->slot[k].r == r) t->slot[k].r = NULL;
        for (int k = 0; k < t->batch.n_out; k++)
            if (t->out[k].r == r) t->out[k].r = NULL;
    }
    if (!r->n_pending) return;
    r->n_token -= r->n_pending;
    r->n_pending  = 0;
    r->n_computed = r->n_token > r->n_prompt ? r->n_token - 1 : r->n_prompt; /* not surplus rows */
}

void fm__retire(fm_sched *s, fm_request *r)
{
    forget(s, r);
    if (r->has_lease) {
        const int32_t prompt = r->n_computed < r->n_prompt ? r->n_computed : r->n_prompt;
        r->n_published       = s->opt.deterministic ? prompt : r->n_computed;
        fm_kv_publish(s->kv, &r->lease, r->token, r->n_published);
        fm_kv_end(s->kv, &r->lease);
        r->has_lease = 0;
    }
    r->state = FM_REQ_DONE;
    fm__queue_push(&s->done, r);
}

void fm__sweep(fm_sched *s)
{
    int kept = 0;
    for (int i = 0; i < s->n_running; i++) {
        if (s->running[i].r->finish != FM_FINISH_NONE) fm__retire(s, s->running[i].r);
        else                                           s->running[kept++] = s->running[i];
    }
    s->n_running = kept;
}

void fm__put_back(fm_sched *s, fm_request *r)
{
    fm_kv_end(s->kv, &r->lease);
    r->has_lease  = 0;
    r->n_computed = r->n_published = r->n_draft = 0;
    r->n_preempted++;
    r->is_looked_up = 0;
    r->preempted    = s->now;
    r->state        = FM_REQ_WAITING;
    fm__queue_insert(&s->waiting, r);
}

static void unscore(const fm__step *t)
{
    for (int k = 0; k < t->n_slot; k++)
        if (t->slot[k].r) t->slot[k].r->n_scored -= t->slot[k].n_score;
}

/* Prefixes were published when their steps were launched. */
static void begin_anew(fm_sched *s)
{
    for (int i = 0; i < s->n_in_flight; i++) unscore(&s->step[(s->oldest + i) % FM__STEPS]);
    for (int i = 0; i < s->n_running; i++) {
        fm_request *r = s->running[i].r;
        forget(s, r);
        fm__put_back(s, r);
    }
    for (fm_request *r = fm__queue_first(&s->waiting), *next; r; r = next) {
        next = fm_request_next(r);
        if (r->finish == FM_FINISH_NONE) continue;
        fm__queue_remove(&s->waiting, r);
        fm__retire(s, r);
    }
    s->n_running = s->n_in_flight = 0;
    fm_kv_flush(s->kv);
}

void fm_sched_give_up(fm_sched *s)
{
    s->is_planned = 0;
    if (s->n_in_flight) begin_anew(s);
    fm__sweep(s);
}

void fm_sched_finish(fm_sched *s, fm_request *r, fm_finish why)
{
    if (r->state == FM_REQ_DONE || r->finish != FM_FINISH_NONE) return;
    r->finish = why;
    if (r->state == FM_REQ_WAITING) {
        fm__queue_remove(&s->waiting, r);
        fm__retire(s, r);
    } else if (!s->is_planned && !s->n_in_flight) {
        fm__sweep(s);
    }
}

void fm_sched_cancel(fm_sched *s, fm_request *r)
{
    fm_sched_finish(s, r, FM_FINISH_ABORT);
}

fm_request *fm_sched_first_waiting(const fm_sched *s)
{
    return fm__queue_first(&s->waiting);
}

void fm_sched_await_lookups(fm_sched *s)
{
    s->awaits_lookups = 1;
}

void fm_sched_set_held(fm_sched *s, int32_t n_page)
{
    s->n_held = n_page;
}

int fm_sched_only_decodes(const fm_sched *s)
{
    if (s->waiting.n && s->n_running < s->opt.max_running) return 0;
    for (int i = 0; i < s->n_running; i++)
        if (!fm__is_decoding(s->running[i].r)) return 0;
    return 1;
}

int fm_sched_n_running(const fm_sched *s)
{
    return s->n_running;
}

fm_request *fm_sched_running(const fm_sched *s, int i)
{
    FM_BUG_UNLESS(i >= 0 && i < s->n_running);
    return s->running[i].r;
}

int fm_sched_propose(fm_sched *s, fm_request *r, const int32_t *draft, int n)
{
    r->n_draft = 0;
    if (r->state != FM_REQ_RUNNING || !r->is_sequential || !fm__is_decoding(r)) return 0;
    const int32_t room = fm__left(r) - 1; /* the step's own token is the last it may have */
    const int32_t most = room < s->opt.max_draft ? room : s->opt.max_draft;
    if (n > most) n = most;
    for (; r->n_draft < n; r->n_draft++) r->token[r->n_token + r->n_draft] = draft[r->n_draft];
    return r->n_draft;
}

const fm_out *fm_sched_out(const fm_sched *s, const fm_batch *b, int i)
{
    const fm__step *t = (const fm__step *)b;
    FM_BUG_UNLESS(t >= s->step && t < s->step + FM__STEPS && i >= 0 && i < b->n_out);
    return &t->out[i];
}

fm_request *fm_sched_pop_done(fm_sched *s)
{
    return fm__queue_pop(&s->done);
}

fm_sched_stats fm_sched_get_stats(const fm_sched *s)
{
    fm_sched_stats st = s->stats;
    st.n_waiting      = s->waiting.n;
    st.n_running      = s->n_running;
    return st;
}

void fm_sched_add_stats(fm_sched_stats *sum, const fm_sched_stats *s)
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
    sum->n_draft += s->n_draft;
    sum->n_accepted += s->n_accepted;
    sum->sum_running += s->sum_running;
}
