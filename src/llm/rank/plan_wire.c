/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/plan_wire.h"

#include <string.h>

#include "llm/rank/moves_wire.h"
#include "llm/rank/plan_internal.h"

enum { HEAD_WORDS = FM__HEAD_WORDS, GROUP_WORDS = 6, SPAN_WORDS = 7 };

typedef struct {
    int32_t n_row, n_span, n_out, n_page;
    int32_t n_prompt; /* rows of that form */
    int32_t n_choice; /* rows whose token the step before chooses */
} counts;

static size_t group_words(const counts *c)
{
    return (size_t)c->n_row + (size_t)c->n_span * SPAN_WORDS + (size_t)c->n_out + (size_t)c->n_page;
}

size_t fm_plan_max_words(const fm_plan_limits *l)
{
    const counts most  = {l->max_rows, l->max_spans, l->max_outs, l->max_pages, 0, 0};
    const size_t step  = HEAD_WORDS + (size_t)l->n_group * (GROUP_WORDS + group_words(&most));
    const size_t moves = fm_moves_max_words(l);
    const size_t words = step > moves ? step : moves;
    return words > FM_PLAN_FIRST_WORDS ? words : FM_PLAN_FIRST_WORDS;
}

/* --- writing --------------------------------------------------------------- */

/* The length of page lists includes the positions that a draft chain will write. */
typedef struct {
    int page_size, ahead;
} paging;

static paging paging_of(const fm_plan_limits *l, int n_link)
{
    return (paging){l->page_size, n_link > 1 ? n_link - 1 : 0};
}

static int span_pages(const fm_span *s, paging by)
{
    return (s->pos0 + s->n_row + by.ahead + by.page_size - 1) / by.page_size;
}

/* The prompt and the generated part of one sequence have the same pages: the
 * second adds what the first did not need. */
static int shares_pages(const fm_batch *b, int i)
{
    return i > 0 && b->span[i].page == b->span[i - 1].page;
}

static counts count(const fm_batch *b, paging by)
{
    if (!b) return (counts){0};
    counts c = {b->n_row, b->n_span, b->n_out, 0, 0, 0};
    for (int i = 0; i < b->n_row; i++) c.n_choice += b->token[i] < 0;
    for (int i = 0; i < b->n_span; i++) {
        const int before = shares_pages(b, i) ? span_pages(&b->span[i - 1], by) : 0;
        c.n_page += span_pages(&b->span[i], by) - before;
        if (b->span[i].form == FM_FORM_PROMPT) c.n_prompt += b->span[i].n_row;
    }
    return c;
}

static int32_t *put(int32_t *at, const int32_t *from, int n)
{
    if (n) memcpy(at, from, (size_t)n * sizeof *at);
    return at + n;
}

static int32_t *put_spans(int32_t *at, const fm_batch *b, paging by, int32_t kept0)
{
    int32_t page_at = 0, end = 0;
    for (int i = 0; i < b->n_span; i++) {
        const fm_span *s = &b->span[i];
        if (!shares_pages(b, i)) page_at = end;
        end                             = page_at + span_pages(s, by);
        const int32_t before            = s->before > 0 ? s->before + kept0 : s->before;
        const int32_t words[SPAN_WORDS] = {s->n_row, s->pos0,          (int32_t)s->form, page_at,
                                           before,   s->keep0 + kept0, s->n_keep};
        at                              = put(at, words, SPAN_WORDS);
    }
    return at;
}

static int32_t *put_pages(int32_t *at, const fm_batch *b, paging by, int32_t page0)
{
    for (int i = 0; i < b->n_span; i++) {
        const fm_span *s = &b->span[i];
        int            k = shares_pages(b, i) ? span_pages(&b->span[i - 1], by) : 0;
        for (; k < span_pages(s, by); k++) *at++ = s->page[k] + page0;
    }
    return at;
}

static int32_t *put_group(int32_t *at, const fm_batch *b, paging by, const fm_step_plan *p)
{
    at = put(at, b->token, b->n_row);
    at = put_spans(at, b, by, p->kept0);
    at = put(at, b->out, b->n_out);
    return put_pages(at, b, by, p->page0);
}

static int has_batch(fm_plan_kind k) { return k == FM_PLAN_STEP || k == FM_PLAN_DRAFT; }

size_t fm__plan_seal(int32_t *message, size_t n, const fm_plan_head *head)
{
    if (n < FM_PLAN_FIRST_WORDS) {
        memset(message + n, 0, (FM_PLAN_FIRST_WORDS - n) * sizeof *message);
        n = FM_PLAN_FIRST_WORDS;
    }
    message[FM__AT_MAGIC]  = FM__PLAN_MAGIC;
    message[FM__AT_KIND]   = (int32_t)head->kind;
    message[FM__AT_LANE]   = head->lane;
    message[FM__AT_SERIAL] = (int32_t)head->serial;
    message[FM__AT_LENGTH] = (int32_t)n;
    message[FM__AT_LINK]   = head->n_link;
    return n;
}

size_t fm_plan_write(int32_t *out, const fm_step_plan *p, const fm_plan_limits *l)
{
    const int    n_group = has_batch(p->head.kind) ? l->n_group : 0;
    const paging by      = paging_of(l, p->head.n_link);
    int32_t     *at      = out + HEAD_WORDS + n_group * GROUP_WORDS;
    for (int g = 0; g < n_group; g++) {
        const counts c = count(p->batch[g], by);
        memcpy(out + HEAD_WORDS + g * GROUP_WORDS, &c, sizeof c);
        if (p->batch[g]) at = put_group(at, p->batch[g], by, p);
    }
    FM_BUG_UNLESS((size_t)(at - out) <= fm_plan_max_words(l));
    return fm__plan_seal(out, (size_t)(at - out), &p->head);
}

/* --- reading --------------------------------------------------------------- */

fm_status fm__plan_garbled(const char *what)
{
    return fm_fail(FM_E_FORMAT, "the leader's plan is garbled: %s", what);
}

fm_status fm_plan_length(const int32_t *in, const fm_plan_limits *l, size_t *words)
{
    if (in[FM__AT_MAGIC] != FM__PLAN_MAGIC) return fm__plan_garbled("no plan");
    if (in[FM__AT_KIND] < 0 || in[FM__AT_KIND] >= FM_N_PLAN_KIND) return fm__plan_garbled("kind");
    if (in[FM__AT_LINK] < (in[FM__AT_KIND] == FM_PLAN_DRAFT) || in[FM__AT_LINK] > l->max_draft)
        return fm__plan_garbled("links");
    if (in[FM__AT_LENGTH] < FM_PLAN_FIRST_WORDS || (size_t)in[FM__AT_LENGTH] > fm_plan_max_words(l))
        return fm__plan_garbled("length");
    if (in[FM__AT_LANE] < 0 || in[FM__AT_LANE] >= l->n_lane) return fm__plan_garbled("lane");
    *words = (size_t)in[FM__AT_LENGTH];
    return FM_OK;
}

static fm_status check_counts(const counts *c, const fm_plan_limits *l)
{
    if (c->n_row < 0 || c->n_row > l->max_rows) return fm__plan_garbled("rows");
    if (c->n_span < 0 || c->n_span > l->max_spans) return fm__plan_garbled("spans");
    if (c->n_out < 0 || c->n_out > l->max_outs || c->n_out > c->n_row) return fm__plan_garbled("outs");
    if (c->n_page < 0 || c->n_page > l->max_pages) return fm__plan_garbled("pages");
    if (c->n_prompt < 0 || c->n_prompt > c->n_row) return fm__plan_garbled("prompt rows");
    if (c->n_choice < 0 || c->n_choice > c->n_row || c->n_choice > l->max_outs)
        return fm__plan_garbled("choices");
    return FM_OK;
}

/* Counts of all groups, and where the own group's words begin. */
static fm_status read_counts(const fm_plan_room *room, const int32_t *in, const fm_plan_limits *l,
                             int group, counts *own, const int32_t **at, fm_batch *b)
{
    size_t used    = HEAD_WORDS + (size_t)l->n_group * GROUP_WORDS;
    b->is_decode   = 1;
    b->has_choices = 0;
    for (int g = 0; g < l->n_group; g++) {
        counts c;
        memcpy(&c, in + HEAD_WORDS + g * GROUP_WORDS, sizeof c);
        FM_TRY(check_counts(&c, l));
        room->group_rows[g] = c.n_row;
        room->group_outs[g] = c.n_out;
        if (c.n_prompt) b->is_decode = 0;
        if (c.n_choice) b->has_choices = 1;
        if (g == group) {
            *own = c;
            *at  = in + used;
        }
        used += group_words(&c);
    }
    return used <= (size_t)in[FM__AT_LENGTH] ? FM_OK : fm__plan_garbled("length");
}

/* Places of kept states; 0 of them where there are no drafts. */
static fm_status read_places(fm_span *s, const int32_t *w, const fm_plan_limits *l)
{
    s->before = w[0];
    s->keep0  = w[1];
    s->n_keep = w[2];
    if (s->before < FM_STATE_OF_ROW(s->row0 - 1) || s->before > l->n_kept)
        return fm__plan_garbled("a state");
    if (s->n_keep < 0 || s->n_keep > s->n_row || s->keep0 < 0 ||
        (s->n_keep && s->keep0 > l->n_kept - s->n_keep))
        return fm__plan_garbled("kept states");
    return FM_OK;
}

static fm_status read_span(fm_span *s, const int32_t *w, const counts *c, const int32_t *page,
                           const fm_plan_limits *l, paging by)
{
    const int32_t n_row = w[0], pos0 = w[1], form = w[2], page_at = w[3];
    const int64_t longest = (int64_t)l->max_span_pages * l->page_size;
    if (n_row < 1 || n_row > c->n_row - s->row0) return fm__plan_garbled("rows of a span");
    if (pos0 < 0 || (int64_t)pos0 + n_row + by.ahead > longest)
        return fm__plan_garbled("position of a span");
    if (form != FM_FORM_PROMPT && form != FM_FORM_GENERATED) return fm__plan_garbled("form of a span");
    *s = (fm_span){.row0  = s->row0,
                   .n_row = n_row,
                   .pos0  = pos0,
                   .form  = (fm_form)form,
                   .page  = page + page_at};
    if (page_at < 0 || (int64_t)page_at + span_pages(s, by) > c->n_page)
        return fm__plan_garbled("pages of a span");
    return read_places(s, w + 4, l);
}

static fm_status check_words(const int32_t *w, int n, int limit, const char *what)
{
    for (int i = 0; i < n; i++)
        if (w[i] < 0 || w[i] >= limit) return fm__plan_garbled(what);
    return FM_OK;
}

/* Tokens, or outs of the step before. */
static fm_status check_tokens(const int32_t *w, const counts *c, const fm_plan_limits *l)
{
    int32_t n_choice = 0;
    for (int i = 0; i < c->n_row; i++) {
        if (w[i] >= l->vocab || w[i] < FM_CHOICE(l->max_outs - 1)) return fm__plan_garbled("a token");
        n_choice += w[i] < 0;
    }
    return n_choice == c->n_choice ? FM_OK : fm__plan_garbled("choices");
}

static fm_status read_group(fm_batch *b, const fm_plan_room *room, const counts *c,
                            const int32_t *at, const fm_plan_limits *l, int n_link)
{
    const int32_t *spans = at + c->n_row, *out = spans + (size_t)c->n_span * SPAN_WORDS;
    const int32_t *page = out + c->n_out;
    FM_TRY(check_tokens(at, c, l));
    FM_TRY(check_words(out, c->n_out, c->n_row, "an out row"));
    FM_TRY(check_words(page, c->n_page, l->n_page, "a page"));
    int row = 0, n_prompt = 0;
    for (int i = 0; i < c->n_span; i++) {
        fm_span *s = &room->span[i];
        s->row0    = row;
        FM_TRY(read_span(s, spans + (size_t)i * SPAN_WORDS, c, page, l, paging_of(l, n_link)));
        for (int k = 0; k < s->n_row; k++) room->pos[row++] = s->pos0 + k;
        if (s->form == FM_FORM_PROMPT) n_prompt += s->n_row;
    }
    if (n_prompt != c->n_prompt) return fm__plan_garbled("prompt rows");
    if (row != c->n_row) return fm__plan_garbled("rows without a span");
    if (n_link && (c->n_span != row || c->n_out != row)) return fm__plan_garbled("rows of a chain");
    b->n_row  = c->n_row;
    b->n_span = c->n_span;
    b->n_out  = c->n_out;
    b->token  = (int32_t *)at;
    b->pos    = room->pos;
    b->span   = room->span;
    b->out    = (int32_t *)out;
    return FM_OK;
}

fm_status fm_plan_read(fm_read_plan *out, const fm_plan_room *room, const int32_t *in,
                       const fm_plan_limits *l, int group)
{
    size_t words;
    FM_TRY(fm_plan_length(in, l, &words));
    *out = (fm_read_plan){
        .head = {(fm_plan_kind)in[FM__AT_KIND], in[FM__AT_LANE], (uint32_t)in[FM__AT_SERIAL], in[FM__AT_LINK]}};
    if (out->head.kind == FM_PLAN_MOVES) return fm_moves_read(out, room->move, in, l, group);
    if (!has_batch(out->head.kind)) return FM_OK;
    counts         own = {0};
    const int32_t *at  = NULL;
    FM_TRY(read_counts(room, in, l, group, &own, &at, &out->batch));
    FM_TRY(read_group(&out->batch, room, &own, at, l, out->head.n_link));
    if (l->n_group > 1) {
        out->batch.group_rows = room->group_rows;
        out->batch.group_outs = room->group_outs;
    }
    return FM_OK;
}
