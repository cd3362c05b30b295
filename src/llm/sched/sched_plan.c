/* SPDX-License-Identifier: Apache-2.0 */
/* The next step: first every decode gets a page for its row, by preemption if
 * need be; then drafts, as far as pages are free; then unfinished prefills; then
 * newcomers; then the rows are written. */
#include "llm/sched/sched.h"

#include "llm/sched/sched_internal.h"

static int32_t decode_pages(const fm_sched *s)
{
    int32_t n = 0;
    for (int i = 0; i < s->n_running; i++) {
        const fm_request *r = s->running[i].r;
        if (!fm__is_decoding(r) || fm__is_ending(r)) continue;
        const int32_t more = fm__pages(s, r->n_token) - r->lease.n_page; /* drafts may have some */
        n += more > 0 ? more : 0;
    }
    return n;
}

/* Of the lowest priority the one that loses least: the fewest outputs, among
 * these the latest. */
static int goes_back_before(const fm_request *a, const fm_request *b)
{
    const int32_t na = fm_request_n_output(a), nb = fm_request_n_output(b);
    if (a->priority != b->priority) return a->priority < b->priority;
    return na != nb ? na < nb : a->arrival > b->arrival;
}

static int victim(const fm_sched *s)
{
    int v = 0;
    for (int i = 1; i < s->n_running; i++)
        if (goes_back_before(s->running[i].r, s->running[v].r)) v = i;
    return v;
}

static void preempt_one(fm_sched *s)
{
    const int   v = victim(s);
    fm_request *r = s->running[v].r;

    s->n_running--;
    for (int i = v; i < s->n_running; i++) s->running[i] = s->running[i + 1];

    fm__put_back(s, r);
    s->n_preempted++;
    s->stats.n_preemption++;
}

/* Rows of [from, to) that score the prompt. */
static int32_t n_score(const fm_request *r, int32_t from, int32_t to)
{
    const int32_t next = fm_request_next_score(r), last = r->n_prompt - 1;
    const int32_t n    = (to < last ? to : last) - (from > next ? from : next);
    return n > 0 ? n : 0;
}

/* As many of `want` rows as have no more than the step's scores among them. */
static int32_t cut_by_scores(const fm_sched *s, const fm_request *r, int32_t from, int32_t want)
{
    const int32_t left = FM_SCORE_ROWS - s->n_score_row;
    if (n_score(r, from, from + want) <= left) return want;
    const int32_t next = fm_request_next_score(r);
    return (from > next ? from : next) + left - from;
}

int32_t fm__prefill_share(const fm_sched *s, const fm_request *r, int32_t from)
{
    const int32_t left = fm__prefill_budget(&s->opt) - s->n_prefill_row;
    const int32_t want = cut_by_scores(s, r, from, r->n_token - from);
    if (want <= left) return want;
    if (s->opt.chunk > 0) return left;
    return s->n_prefill_row ? 0 : want; /* not cut, so a long text goes alone */
}

void fm__give_prefill(fm_sched *s, fm__slot *slot, int32_t want)
{
    const int32_t from = slot->r->n_computed;
    fm__give_rows(s, slot, want);
    s->n_prefill_row += slot->take;
    s->n_score_row += n_score(slot->r, from, from + slot->take);
}

void fm__give_rows(fm_sched *s, fm__slot *slot, int32_t want)
{
    fm_request   *r    = slot->r;
    const int64_t room = (int64_t)(r->lease.n_page + fm__free_pages(s)) * s->opt.page_size;
    const int64_t fit  = room - r->n_computed;

    slot->take            = fit < want ? (int32_t)fit : want;
    const fm_status grown = fm_kv_grow(s->kv, &r->lease, r->n_computed + slot->take);
    FM_BUG_UNLESS(grown == FM_OK);
}

static void give_decodes(fm_sched *s)
{
    while (s->n_running > 1 && decode_pages(s) > fm__free_pages(s)) preempt_one(s);
    for (int i = 0; i < s->n_running; i++) {
        const fm_request *r = s->running[i].r;
        s->running[i].take  = 0;
        s->running[i].n_draft = 0;
        if (fm__is_decoding(r) && !fm__is_ending(r)) fm__give_rows(s, &s->running[i], 1);
    }
}

/* Drafts never preempt: they get the pages that are left when every sequence has
 * its next row. */
static void give_drafts(fm_sched *s)
{
    s->n_draft_row = 0;
    for (int i = 0; s->opt.max_draft && i < s->n_running; i++) {
        fm__slot *slot = &s->running[i];
        if (!slot->take || !slot->r->n_draft) continue;
        fm__give_rows(s, slot, 1 + slot->r->n_draft);
        slot->n_draft = slot->take - 1;
        s->n_draft_row += slot->n_draft;
    }
}

/* Decodes may have taken the pages a prefill was admitted with; it then gets
 * fewer rows, or none until they end. */
static void give_prefills(fm_sched *s)
{
    s->n_prefill_row = s->n_score_row = 0;
    for (int i = 0; i < s->n_running; i++) {
        const fm_request *r  = s->running[i].r;
        s->running[i].is_new = 0;
        if (fm__is_decoding(r) || fm__is_ending(r)) continue;
        fm__give_prefill(s, &s->running[i], fm__prefill_share(s, r, r->n_computed));
    }
}

static void add_span(fm_batch *b, const fm_request *r, int32_t from, int32_t to, fm_form form)
{
    if (from >= to) return;
    b->span[b->n_span++] = (fm_span){
        .row0 = b->n_row, .n_row = to - from, .pos0 = from, .form = form, .page = r->lease.page};
    for (int32_t p = from; p < to; p++) {
        b->token[b->n_row] = r->token[p];
        b->pos[b->n_row++] = p;
    }
}

static int32_t clamp(int32_t x, int32_t lo, int32_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void add_outs(fm__step *t, fm_request *r, int32_t row0, int32_t n, int is_score)
{
    fm_batch *b = &t->batch;
    for (int32_t row = row0; row < row0 + n; row++) {
        t->out[b->n_out]    = (fm_out){.r = r, .pos = b->pos[row], .is_score = is_score};
        b->out[b->n_out++] = row;
    }
}

/* The sequence's spans from `first` on: where the state before them is, and where those of its
 * last rows go. */
static void place_states(const fm_sched *s, fm_batch *b, int first, const fm__slot *slot)
{
    if (!fm__keeps_states(s, slot->r) || first == b->n_span) return;
    fm_span *last         = &b->span[b->n_span - 1];
    b->span[first].before = slot->r->kept;
    if (b->n_span - first > 1) last->before = FM_STATE_OF_ROW(last->row0 - 1);
    last->keep0  = fm__keep_at(s, slot->r);
    last->n_keep = slot->n_sample ? slot->n_sample : 1;
}

static void write_rows(const fm_sched *s, fm__step *t, fm__slot *slot)
{
    const fm_request *r    = slot->r;
    const int32_t     from = r->n_computed, to = from + slot->take;
    const int32_t     cut  = clamp(r->n_prompt, from, to);
    fm_batch         *b    = &t->batch;
    const int         span = b->n_span;

    add_span(b, r, from, cut, FM_FORM_PROMPT);
    add_span(b, r, cut, to, FM_FORM_GENERATED);
    slot->out0          = b->n_out;
    slot->n_score       = n_score(r, from, to);
    slot->n_sample      = slot->take && to >= r->n_token && fm__left(r) ? 1 + slot->n_draft : 0;
    const int32_t first = from > fm_request_next_score(r) ? from : fm_request_next_score(r);
    add_outs(t, slot->r, b->n_row - (to - first), slot->n_score, 1);
    add_outs(t, slot->r, b->n_row - slot->n_sample, slot->n_sample, 0);
    place_states(s, b, span, slot);
}

static void write_batch(fm_sched *s, fm__step *t)
{
    t->batch.n_row = t->batch.n_span = t->batch.n_out = 0;
    for (int i = 0; i < s->n_running; i++)
        if (fm__is_decoding(s->running[i].r)) write_rows(s, t, &s->running[i]);
    for (int i = 0; i < s->n_running; i++)
        if (!fm__is_decoding(s->running[i].r)) write_rows(s, t, &s->running[i]);
}

/* The tokens of the step in flight must be known before the next is planned:
 * a sequence needs its own, or pages are short and those of ended ones come free. */
static int must_commit_first(const fm_sched *s)
{
    for (int i = 0; i < s->n_running; i++)
        if (s->running[i].r->is_sequential && s->running[i].r->n_pending) return 1;
    return decode_pages(s) > fm__free_pages(s);
}

const fm_batch *fm_sched_plan(fm_sched *s)
{
    FM_BUG_UNLESS(s->n_in_flight < FM__STEPS);
    s->is_planned = s->n_preempted = 0;
    if (!s->n_in_flight) fm__sweep(s);
    else if (must_commit_first(s)) return NULL;
    give_decodes(s);
    give_drafts(s);
    give_prefills(s);
    if (s->n_preempted) fm__ratio_raise(s);
    else                fm__admit(s);

    if (!s->n_running) {
        s->ratio = fm__ratio_at_rest(s);
        return NULL;
    }
    fm__step *t = fm__next_step(s);
    write_batch(s, t);
    if (!t->batch.n_row && (s->n_in_flight || s->n_held)) return NULL;

    /* Where nothing decodes, the prefills have the pages they were admitted
     * with: what decodes took beyond their guess came back when they ended. */
    FM_BUG_UNLESS(t->batch.n_row > 0);
    s->is_planned = 1;
    return &t->batch;
}
