/* SPDX-License-Identifier: Apache-2.0 */
/* Step plans through the wire: what comes out is what went in, and a garbled
 * message is an error, never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/rank/plan_wire.h"

enum { N_GROUP = 3, ROWS = 200, SPANS = 16, OUTS = 40, CONTEXT = 256, PAGE = 16, N_PAGE = 500 };
enum { SPAN_PAGES = CONTEXT / PAGE, N_KEPT = 64, LINKS = 3 };

static const fm_plan_limits limits = {.n_lane = 4, .n_group = N_GROUP, .max_rows = ROWS,
                                      .max_spans = SPANS, .max_outs = OUTS,
                                      .max_pages = SPANS * SPAN_PAGES,
                                      .max_span_pages = SPAN_PAGES, .page_size = PAGE,
                                      .n_page = N_PAGE, .vocab = 1000, .n_kept = N_KEPT,
                                      .max_draft = LINKS};

typedef struct {
    fm_batch batch;
    int32_t  token[ROWS], pos[ROWS], out[OUTS], page[SPANS][SPAN_PAGES];
    fm_span  span[SPANS];
} drawn;

static uint64_t key, n_drawn;

static int draw(int below)
{
    return (int)(fm_rng_u32(key, n_drawn++) % (uint32_t)below);
}

static void add_span(drawn *d, int pos0, int n, fm_form form, const int32_t *page)
{
    fm_batch *b          = &d->batch;
    b->span[b->n_span++] = (fm_span){.row0 = b->n_row, .n_row = n, .pos0 = pos0, .form = form,
                                     .page   = page,
                                     .before = b->n_span % 3 == 2 ? FM_STATE_OF_ROW(b->n_row - 1) : pos0 % (N_KEPT / 2),
                                     .keep0 = pos0 % (N_KEPT / 4), .n_keep = pos0 % 2};
    for (int i = 0; i < n; i++) {
        b->token[b->n_row] = draw(30) ? draw(1000) : FM_CHOICE(draw(OUTS));
        b->pos[b->n_row++] = pos0 + i;
    }
    if (b->n_out < OUTS) b->out[b->n_out++] = b->n_row - 1;
}

/* Prompts, decodes, and texts computed again in both forms from one lease. */
static void draw_batch(drawn *d)
{
    d->batch = (fm_batch){.token = d->token, .pos = d->pos, .span = d->span, .out = d->out};
    for (int i = 0; i < SPANS / 2; i++) {
        const int pos0 = draw(CONTEXT / 2), n = 1 + draw(ROWS / SPANS);
        for (int k = 0; k < SPAN_PAGES; k++) d->page[i][k] = draw(N_PAGE - 8);
        add_span(d, pos0, n, draw(2) ? FM_FORM_PROMPT : FM_FORM_GENERATED, d->page[i]);
        if (draw(3) == 0)
            add_span(d, pos0 + n, 1 + draw(ROWS / SPANS), FM_FORM_GENERATED, d->page[i]);
    }
}

typedef struct {
    int32_t      pos[ROWS], rows[N_GROUP], outs[N_GROUP];
    fm_span      span[SPANS];
    fm_plan_room room;
} reader;

static fm_status read_plan(fm_read_plan *p, reader *r, const int32_t *in, int group)
{
    r->room = (fm_plan_room){r->pos, r->span, r->rows, r->outs, NULL};
    return fm_plan_read(p, &r->room, in, &limits, group);
}

/* `ahead`: positions behind the rows whose pages travel, too. */
static void compare(const fm_batch *got, const fm_batch *want, int page0, int kept0, int ahead)
{
    assert_int_equal(got->n_row, want->n_row);
    assert_int_equal(got->n_span, want->n_span);
    assert_int_equal(got->n_out, want->n_out);
    assert_memory_equal(got->token, want->token, (size_t)want->n_row * 4);
    assert_memory_equal(got->pos, want->pos, (size_t)want->n_row * 4);
    assert_memory_equal(got->out, want->out, (size_t)want->n_out * 4);
    for (int i = 0; i < want->n_span; i++) {
        const fm_span *a = &got->span[i], *b = &want->span[i];
        assert_true(a->row0 == b->row0 && a->n_row == b->n_row && a->pos0 == b->pos0);
        assert_int_equal(a->form, b->form);
        assert_int_equal(a->before, b->before > 0 ? b->before + kept0 : b->before);
        assert_true(a->keep0 == b->keep0 + kept0 && a->n_keep == b->n_keep);
        for (int k = 0; k < (b->pos0 + b->n_row + ahead + PAGE - 1) / PAGE; k++)
            assert_int_equal(a->page[k], b->page[k] + page0);
    }
}

static int prompt_rows(const fm_batch *b)
{
    int n = 0;
    for (int i = 0; i < b->n_span; i++)
        if (b->span[i].form == FM_FORM_PROMPT) n += b->span[i].n_row;
    return n;
}

static int choices(const fm_batch *b)
{
    int n = 0;
    for (int i = 0; i < b->n_row; i++) n += b->token[i] < 0;
    return n;
}

static void what_goes_in_comes_out(void **state)
{
    int n_decode = 0, n_known = 0;
    (void)state;
    int32_t     *wire = malloc(fm_plan_max_words(&limits) * sizeof *wire);
    static drawn d[N_GROUP];
    for (key = 1; key < 300; key++) {
        const fm_batch *batch[N_GROUP];
        for (int g = 0; g < N_GROUP; g++) {
            draw_batch(&d[g]);
            batch[g] = draw(4) ? &d[g].batch : NULL;
        }
        const fm_step_plan plan = {{FM_PLAN_STEP, draw(4), (uint32_t)key, 0}, batch, draw(8), (int)(key % 9)};
        const size_t       n    = fm_plan_write(wire, &plan, &limits);
        size_t             told = 0;
        assert_int_equal(fm_plan_length(wire, &limits, &told), FM_OK);
        assert_int_equal(told, n);
        for (int g = 0; g < N_GROUP; g++) {
            static const fm_batch none;
            static reader         r;
            fm_read_plan          p;
            assert_int_equal(read_plan(&p, &r, wire, g), FM_OK);
            assert_int_equal(p.head.lane, plan.head.lane);
            assert_int_equal(p.head.serial, key);
            compare(&p.batch, batch[g] ? batch[g] : &none, plan.page0, plan.kept0, 0);
            int n_prompt = 0, n_choice = 0;
            for (int k = 0; k < N_GROUP; k++) {
                assert_int_equal(p.batch.group_rows[k], batch[k] ? batch[k]->n_row : 0);
                n_prompt += batch[k] ? prompt_rows(batch[k]) : 0;
                n_choice += batch[k] ? choices(batch[k]) : 0;
                assert_int_equal(p.batch.group_outs[k], batch[k] ? batch[k]->n_out : 0);
            }
            assert_int_equal(p.batch.is_decode, n_prompt == 0);
            assert_int_equal(p.batch.has_choices, n_choice > 0);
            n_decode += p.batch.is_decode;
            n_known += !p.batch.has_choices;
        }
    }
    assert_true(n_decode > 10);
    assert_true(n_known > 10 && n_known < 800);
    free(wire);
}

/* One row of each sequence, all of them out rows, and pages for the links behind the first. */
static void draw_chain(drawn *d)
{
    d->batch = (fm_batch){.token = d->token, .pos = d->pos, .span = d->span, .out = d->out};
    for (int i = 0; i < SPANS; i++) {
        for (int k = 0; k < SPAN_PAGES; k++) d->page[i][k] = draw(N_PAGE - 8);
        add_span(d, draw(CONTEXT - LINKS), 1, FM_FORM_GENERATED, d->page[i]);
    }
}

static void chains_bring_pages_for_their_links(void **state)
{
    (void)state;
    int32_t     *wire = malloc(fm_plan_max_words(&limits) * sizeof *wire);
    static drawn d;
    for (key = 5000; key < 5100; key++) {
        draw_chain(&d);
        const fm_batch    *batch[N_GROUP] = {NULL, &d.batch, NULL};
        const fm_step_plan plan = {{FM_PLAN_DRAFT, 1, (uint32_t)key, LINKS}, batch, draw(8), (int)(key % 9)};
        static reader      r;
        fm_read_plan       p;
        fm_plan_write(wire, &plan, &limits);
        assert_int_equal(read_plan(&p, &r, wire, 1), FM_OK);
        assert_int_equal(p.head.kind, FM_PLAN_DRAFT);
        assert_int_equal(p.head.n_link, LINKS);
        compare(&p.batch, &d.batch, plan.page0, plan.kept0, LINKS - 1);
        assert_int_equal(read_plan(&p, &r, wire, 0), FM_OK);
        assert_int_equal(p.batch.n_row, 0);
        d.span[0].n_keep = 2; /* of one row */
        fm_plan_write(wire, &plan, &limits);
        assert_int_equal(read_plan(&p, &r, wire, 1), FM_E_FORMAT);
    }
    free(wire);
}

static void quit_is_short(void **state)
{
    (void)state;
    int32_t           *wire = malloc(fm_plan_max_words(&limits) * sizeof *wire);
    const fm_step_plan quit = {.head = {.kind = FM_PLAN_QUIT}};
    static reader      r;
    fm_read_plan       p;
    assert_int_equal(fm_plan_write(wire, &quit, &limits), FM_PLAN_FIRST_WORDS);
    assert_int_equal(read_plan(&p, &r, wire, 1), FM_OK);
    assert_int_equal(p.head.kind, FM_PLAN_QUIT);
    free(wire);
}

/* Any word may be wrong.  What is still accepted keeps every limit. */
static void garbled_plans_are_refused(void **state)
{
    (void)state;
    int32_t *const wire = malloc(fm_plan_max_words(&limits) * sizeof *wire);
    static drawn   d[N_GROUP];
    static reader  r;
    int            n_refused = 0;
    for (key = 1000; key < 4000; key++) {
        const fm_batch *batch[N_GROUP];
        for (int g = 0; g < N_GROUP; g++) {
            draw_batch(&d[g]);
            batch[g] = &d[g].batch;
        }
        const fm_step_plan plan = {{FM_PLAN_STEP, 1, 7, 0}, batch, 0, 0};
        const int          n    = (int)fm_plan_write(wire, &plan, &limits);
        const int32_t      odd[] = {-1, 0, 1, 17, 1 << 20, INT32_MAX, INT32_MIN, draw(1000)};
        wire[draw(draw(2) ? 20 : n)] = odd[draw(8)];
        fm_read_plan p;
        if (read_plan(&p, &r, wire, draw(N_GROUP)) != FM_OK) {
            assert_non_null(strstr(fm_why(), "garbled"));
            n_refused++;
            continue;
        }
        for (int i = 0; i < p.batch.n_row; i++)
            assert_true(p.batch.token[i] >= FM_CHOICE(OUTS - 1) && p.batch.token[i] < 1000);
        for (int i = 0; i < p.batch.n_out; i++)
            assert_in_range(p.batch.out[i], 0, p.batch.n_row - 1);
        for (int i = 0; i < p.batch.n_span; i++) {
            const fm_span *s = &p.batch.span[i];
            assert_in_range(s->row0 + s->n_row, 1, p.batch.n_row);
            assert_in_range(s->page[(s->pos0 + s->n_row - 1) / PAGE], 0, N_PAGE - 1);
        }
    }
    assert_true(n_refused > 500);
    free(wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_goes_in_comes_out),
                                       cmocka_unit_test(chains_bring_pages_for_their_links),
                                       cmocka_unit_test(quit_is_short),
                                       cmocka_unit_test(garbled_plans_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
