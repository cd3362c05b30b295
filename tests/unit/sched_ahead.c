/* SPDX-License-Identifier: Apache-2.0 */
/* A step planned while the one before is in flight, case by case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/sched/sched.h"

enum { TEXT_MAX = 100, N_REQUEST = 4, EOS = 1, WORD = 7, PROMPT = 6 };

static fm_kv     *kv;
static fm_sched  *s;
static fm_request request[N_REQUEST];
static int32_t    text[N_REQUEST][TEXT_MAX];

static int open_with(void **state, int n_page)
{
    const fm_sched_options o = {.max_running = N_REQUEST, .chunk = 16, .max_prefill = 100,
                                .max_context = TEXT_MAX, .page_size = 4, .n_page = n_page,
                                .conservativeness = 0, .eos = {EOS}, .n_eos = 1};
    const fm_kv_options k = {.n_page = n_page, .page_size = 4, .max_lease = N_REQUEST,
                             .max_context = TEXT_MAX, .share = 1};
    (void)state;
    return fm_kv_create(&kv, &k) != FM_OK || fm_sched_create(&s, &o, kv) != FM_OK;
}

static int open_wide(void **state)
{
    return open_with(state, 100);
}

static int shut(void **state)
{
    (void)state;
    fm_sched_destroy(s);
    fm_kv_audit(kv);
    fm_kv_destroy(kv);
    return 0;
}

/* Prompts of six tokens, all different. */
static fm_request *submit(int i, int max_new)
{
    fm_request *r = &request[i];
    *r = (fm_request){.id = (uint64_t)i, .token = text[i], .n_prompt = PROMPT,
                      .sampling = {.max_new_tokens = max_new}};
    for (int k = 0; k < PROMPT; k++) text[i][k] = 10 * (i + 1) + k;
    assert_int_equal(fm_sched_submit(s, r), FM_OK);
    return r;
}

static const fm_batch *launch(void)
{
    const fm_batch *b = fm_sched_plan(s);
    if (b) fm_sched_launched(s);
    return b;
}

static void commit(int32_t a, int32_t b)
{
    fm_sched_commit(s, (int32_t[]){a, b});
}

static void rows_start_from_choices(void **state)
{
    (void)state;
    fm_request *r = submit(0, 5), *q = submit(1, 5);
    assert_int_equal(launch()->n_out, 2);
    assert_int_equal(fm_request_n_output(r), 1);
    assert_int_equal(fm_request_n_known(r), 0);

    const fm_batch *b = launch();
    assert_int_equal(b->n_row, 2);
    assert_int_equal(b->token[0], FM_CHOICE(0));
    assert_int_equal(b->token[1], FM_CHOICE(1));
    assert_int_equal(b->pos[0], PROMPT);
    commit(WORD, WORD + 1);
    assert_int_equal(r->token[PROMPT], WORD);
    assert_int_equal(q->token[PROMPT], WORD + 1);
    assert_int_equal(fm_request_n_known(q), 1);
    commit(WORD + 2, WORD + 3);
    assert_int_equal(fm_sched_plan(s)->token[1], WORD + 3); /* known again */
}

static void an_end_by_length_is_known_ahead(void **state)
{
    (void)state;
    fm_request *r = submit(0, 1), *q = submit(1, 2);
    launch();
    const fm_batch *b = launch();
    assert_int_equal(b->n_row, 1); /* r gets no row too many */
    assert_ptr_equal(fm_sched_out(s, b, 0)->r, q);
    assert_int_equal(b->token[0], FM_CHOICE(1));
    assert_int_equal(r->finish, FM_FINISH_NONE);
    commit(EOS, WORD);
    assert_int_equal(r->finish, FM_FINISH_STOP); /* by its token after all */
    assert_null(fm_sched_plan(s));               /* and q ends with the step in flight */
    assert_int_equal(q->state, FM_REQ_RUNNING);
    commit(WORD, 0);
    assert_int_equal(q->finish, FM_FINISH_LENGTH);
    assert_int_equal(q->n_token, PROMPT + 2);
}

static void a_row_too_many_is_nobodys(void **state)
{
    (void)state;
    fm_request *r = submit(0, 9), *q = submit(1, 9);
    launch();
    const fm_batch *b = launch();
    commit(EOS, WORD);
    assert_int_equal(r->state, FM_REQ_DONE);
    assert_int_equal(r->n_token, PROMPT + 1);
    assert_int_equal(r->n_pending, 0);
    assert_ptr_equal(fm_sched_pop_done(s), r);
    assert_null(fm_sched_out(s, b, 0)->r);
    assert_ptr_equal(fm_sched_out(s, b, 1)->r, q);
    memset(r, 0xff, sizeof *r); /* it is the caller's again */
    commit(WORD, WORD);
    assert_int_equal(fm_request_n_output(q), 2);
}

static void logits_that_are_not_finite_end_one_request(void **state)
{
    (void)state;
    fm_request *r = submit(0, 9), *q = submit(1, 9);
    launch();
    const fm_batch *b = launch(); /* started from a choice that turns out to be none */
    commit(FM_NO_TOKEN, WORD);
    assert_int_equal(r->state, FM_REQ_DONE);
    assert_int_equal(r->finish, FM_FINISH_ERROR);
    assert_int_equal(fm_request_n_output(r), 0);
    assert_null(fm_sched_out(s, b, 0)->r);
    commit(WORD, FM_NO_TOKEN);
    assert_int_equal(q->finish, FM_FINISH_ERROR);
    assert_int_equal(fm_request_n_output(q), 1); /* what it had stays */
    assert_int_equal(fm_sched_get_stats(s).n_output, 1);
}

static void ends_from_outside_at_the_next_commit(void **state)
{
    (void)state;
    fm_request *r = submit(0, 9);
    launch();
    launch();
    commit(WORD, 0);
    fm_sched_finish(s, r, FM_FINISH_STOP); /* a stop string was seen */
    assert_int_equal(r->state, FM_REQ_RUNNING);
    assert_null(fm_sched_plan(s));
    commit(WORD, 0);
    assert_int_equal(r->state, FM_REQ_DONE);
    assert_int_equal(r->finish, FM_FINISH_STOP);
    assert_int_equal(fm_request_n_output(r), 1);
}

static void nobody_is_preempted_ahead(void **state)
{
    assert_int_equal(open_with(state, 5), 0);
    fm_request *r = submit(0, 6);
    launch();
    commit(WORD, 0);
    submit(1, 6);
    assert_int_equal(launch()->n_row, 1 + PROMPT); /* two pages each */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(launch()->n_row, 2); /* the second of these takes the fifth */
        commit(WORD, WORD);
    }
    assert_null(fm_sched_plan(s));
    assert_int_equal(fm_sched_get_stats(s).n_preemption, 0);
    commit(EOS, WORD);
    assert_int_equal(r->state, FM_REQ_DONE);
    assert_int_equal(fm_sched_plan(s)->n_row, 1);
    assert_int_equal(fm_sched_get_stats(s).n_preemption, 0);
    shut(state);
}

/* A prefix is offered when its step is launched: who comes next rests on it. */
static void a_prefix_is_shared_while_it_is_computed(void **state)
{
    (void)state;
    submit(0, 3);
    launch();
    fm_request *r = &request[1];
    *r            = request[0];
    r->id         = 1;
    r->token      = memcpy(text[1], text[0], sizeof text[0]);
    assert_int_equal(fm_sched_submit(s, r), FM_OK);
    const fm_batch *b = launch();
    assert_int_equal(r->n_cached, 4);
    assert_int_equal(b->n_row, 1 + 2);
}

static void what_failed_begins_anew(void **state)
{
    (void)state;
    fm_request *r = submit(0, 9), *q = submit(1, 9);
    launch();
    commit(WORD, WORD);
    launch();
    launch();
    fm_sched_cancel(s, q);
    fm_sched_give_up(s);
    assert_int_equal(q->state, FM_REQ_DONE);
    assert_int_equal(r->state, FM_REQ_WAITING);
    assert_int_equal(r->n_token, PROMPT + 1);
    assert_int_equal(fm_kv_free_pages(kv), 100); /* nothing cached is trusted */
    const fm_batch *b = fm_sched_plan(s);
    assert_int_equal(b->n_row, PROMPT + 1);
    assert_int_equal(b->token[PROMPT], WORD);
}

int main(void)
{
#define WIDE(test) cmocka_unit_test_setup_teardown(test, open_wide, shut)
    const struct CMUnitTest tests[] = {
        WIDE(rows_start_from_choices),
        WIDE(an_end_by_length_is_known_ahead),
        WIDE(a_row_too_many_is_nobodys),
        WIDE(logits_that_are_not_finite_end_one_request),
        WIDE(ends_from_outside_at_the_next_commit),
        cmocka_unit_test(nobody_is_preempted_ahead),
        WIDE(a_prefix_is_shared_while_it_is_computed),
        WIDE(what_failed_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
