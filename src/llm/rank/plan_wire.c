/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/plan_wire.h"

#include <string.h>

enum { MAGIC = 0x4e41504d, HEAD_WORDS = 5, GROUP_WORDS = 6, SPAN_WORDS = 4 };
enum { AT_MAGIC, AT_KIND, AT_LANE, AT_SERIAL, AT_LENGTH }; /* of the head */

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
    const size_t words = HEAD_WORDS + (size_t)l->n_group * (GROUP_WORDS + group_words(&most));
    return words > FM_PLAN_FIRST_WORDS ? words : FM_PLAN_FIRST_WORDS;
}

/* --- writing --------------------------------------------------------------- */

static int span_pages(const fm_span *s, int page_size)
{
    return (s->pos0 + s->n_row + page_size - 1) / page_size;
}

/* The prompt and the generated part of one sequence have the same pages: the
 * second adds what the first did not need. */
static int shares_pages(const fm_batch *b, int i)
{
    return i > 0 && b->span[i].page == b->span[i - 1].page;
}

static counts count(const fm_batch *b, int page_size)
{
    if (!b) return (counts){0};
    counts c = {b->n_row, b->n_span, b->n_out, 0, 0, 0};
    for (int i = 0; i < b->n_row; i++) c.n_choice += b->token[i] < 0;
    for (int i = 0; i < b->n_span; i++) {
        const int before = shares_pages(b, i) ? span_pages(&b->span[i - 1], page_size) : 0;
        c.n_page += span_pages(&b->span[i], page_size) - before;
        if (b->span[i].form == FM_FORM_PROMPT) c.n_prompt += b->span[i].n_row;
    }
    return c;
}

static int32_t *put(int32_t *at, const int32_t *from, int n)
{
    if (n) memcpy(at, from, (size_t)n * sizeof *at);
    return at + n;
}

static int32_t *put_spans(int32_t *at, const fm_batch *b, int page_size)
{
    int32_t page_at = 0, end = 0;
    for (int i = 0; i < b->n_span; i++) {
        const fm_span *s = &b->span[i];
        if (!shares_pages(b, i)) page_at = end;
        end = page_at + span_pages(s, page_size);
        const int32_t words[SPAN_WORDS] = {s->n_row, s->pos0, (int32_t)s->form, page_at};
        at = put(at, words, SPAN_WORDS);
    }
    return at;
}

static int32_t *put_pages(int32_t *at, const fm_batch *b, int page_size, int32_t page0)
{
    for (int i = 0; i < b->n_span; i++) {
        const fm_span *s = &b->span[i];
        int            k = shares_pages(b, i) ? span_pages(&b->span[i - 1], page_size) : 0;
        for (; k < span_pages(s, page_size); k++) *at++ = s->page[k] + page0;
    }
    return at;
}

static int32_t *put_group(int32_t *at, const fm_batch *b, int page_size, int32_t page0)
{
    at = put(at, b->token, b->n_row);
    at = put_spans(at, b, page_size);
    at = put(at, b->out, b->n_out);
    return put_pages(at, b, page_size, page0);
}

size_t fm_plan_write(int32_t *out, const fm_step_plan *p, const fm_plan_limits *l)
{
    const int n_group = p->head.kind == FM_PLAN_STEP ? l->n_group : 0;
    int32_t  *at      = out + HEAD_WORDS + n_group * GROUP_WORDS;
    for (int g = 0; g < n_group; g++) {
        const counts c = count(p->batch[g], l->page_size);
        memcpy(out + HEAD_WORDS + g * GROUP_WORDS, &c, sizeof c);
        if (p->batch[g]) at = put_group(at, p->batch[g], l->page_size, p->page0);
    }
    size_t n = (size_t)(at - out);
    FM_BUG_UNLESS(n <= fm_plan_max_words(l));
    if (n < FM_PLAN_FIRST_WORDS) {
        memset(at, 0, (FM_PLAN_FIRST_WORDS - n) * sizeof *at);
        n = FM_PLAN_FIRST_WORDS;
    }
    out[AT_MAGIC]  = MAGIC;
    out[AT_KIND]   = (int32_t)p->head.kind;
    out[AT_LANE]   = p->head.lane;
    out[AT_SERIAL] = (int32_t)p->head.serial;
    out[AT_LENGTH] = (int32_t)n;
    return n;
}

/* --- reading --------------------------------------------------------------- */

static fm_status garbled(const char *what)
{
    return fm_fail(FM_E_FORMAT, "the leader's plan is garbled: %s", what);
}

fm_status fm_plan_length(const int32_t *in, const fm_plan_limits *l, size_t *words)
{
    if (in[AT_MAGIC] != MAGIC) return garbled("no plan");
    if (in[AT_KIND] != FM_PLAN_STEP && in[AT_KIND] != FM_PLAN_QUIT) return garbled("kind");
    if (in[AT_LENGTH] < FM_PLAN_FIRST_WORDS || (size_t)in[AT_LENGTH] > fm_plan_max_words(l))
        return garbled("length");
    if (in[AT_LANE] < 0 || in[AT_LANE] >= l->n_lane) return garbled("lane");
    *words = (size_t)in[AT_LENGTH];
    return FM_OK;
}

static fm_status check_counts(const counts *c, const fm_plan_limits *l)
{
    if (c->n_row < 0 || c->n_row > l->max_rows) return garbled("rows");
    if (c->n_span < 0 || c->n_span > l->max_spans) return garbled("spans");
    if (c->n_out < 0 || c->n_out > l->max_outs || c->n_out > c->n_row) return garbled("outs");
    if (c->n_page < 0 || c->n_page > l->max_pages) return garbled("pages");
    if (c->n_prompt < 0 || c->n_prompt > c->n_row) return garbled("prompt rows");
    if (c->n_choice < 0 || c->n_choice > c->n_row || c->n_choice > l->max_outs)
        return garbled("choices");
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
    return used <= (size_t)in[AT_LENGTH] ? FM_OK : garbled("length");
}

static fm_status read_span(fm_span *s, const int32_t *w, const counts *c, const int32_t *page,
                           const fm_plan_limits *l)
{
    const int32_t n_row = w[0], pos0 = w[1], form = w[2], page_at = w[3];
    const int64_t longest = (int64_t)l->max_span_pages * l->page_size;
    if (n_row < 1 || n_row > c->n_row - s->row0) return garbled("rows of a span");
    if (pos0 < 0 || (int64_t)pos0 + n_row > longest) return garbled("position of a span");
    if (form != FM_FORM_PROMPT && form != FM_FORM_GENERATED) return garbled("form of a span");
    *s = (fm_span){.row0 = s->row0, .n_row = n_row, .pos0 = pos0, .form = (fm_form)form,
                   .page = page + page_at};
    if (page_at < 0 || (int64_t)page_at + span_pages(s, l->page_size) > c->n_page)
        return garbled("pages of a span");
    return FM_OK;
}

static fm_status check_words(const int32_t *w, int n, int limit, const char *what)
{
    for (int i = 0; i < n; i++)
        if (w[i] < 0 || w[i] >= limit) return garbled(what);
    return FM_OK;
}

/* Tokens, or outs of the step before. */
static fm_status check_tokens(const int32_t *w, const counts *c, const fm_plan_limits *l)
{
    int32_t n_choice = 0;
    for (int i = 0; i < c->n_row; i++) {
        if (w[i] >= l->vocab || w[i] < FM_CHOICE(l->max_outs - 1)) return garbled("a token");
        n_choice += w[i] < 0;
    }
    return n_choice == c->n_choice ? FM_OK : garbled("choices");
}

static fm_status read_group(fm_batch *b, const fm_plan_room *room, const counts *c,
                            const int32_t *at, const fm_plan_limits *l)
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
        FM_TRY(read_span(s, spans + (size_t)i * SPAN_WORDS, c, page, l));
        for (int k = 0; k < s->n_row; k++) room->pos[row++] = s->pos0 + k;
        if (s->form == FM_FORM_PROMPT) n_prompt += s->n_row;
    }
    if (n_prompt != c->n_prompt) return garbled("prompt rows");
    if (row != c->n_row) return garbled("rows without a span");
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
    *out = (fm_read_plan){.head = {(fm_plan_kind)in[AT_KIND], in[AT_LANE], (uint32_t)in[AT_SERIAL]}};
    if (out->head.kind == FM_PLAN_QUIT) return FM_OK;
    counts         own = {0};
    const int32_t *at  = NULL;
    FM_TRY(read_counts(room, in, l, group, &own, &at, &out->batch));
    FM_TRY(read_group(&out->batch, room, &own, at, l));
    if (l->n_group > 1) {
        out->batch.group_rows = room->group_rows;
        out->batch.group_outs = room->group_outs;
    }
    return FM_OK;
}
