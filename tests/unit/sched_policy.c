/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's rules, case by case, on hand-made requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/sched/sched.h"

enum { TEXT_MAX = 600, N_REQUEST = 160, EOS = 1, WORD = 7 };

static fm_kv     *kv;
static fm_sched  *s;
static fm_request request[N_REQUEST];
static int32_t    text[N_REQUEST][TEXT_MAX];

static const fm_sched_options plain = {
    .max_running = 8, .chunk = 16, .max_prefill = 1000, .max_context = 500, .page_size = 4,
    .n_page = 200, .policy = FM_POLICY_FCFS, .conservativeness = 1, .eos = {EOS}, .n_eos = 1,
};

static void open_sharing(const fm_sched_options *o, int share)
{
    const fm_kv_options k = {.n_page = o->n_page, .page_size = o->page_size,
                             .max_lease = o->max_running, .max_context = o->max_context,
                             .share = share};
    assert_int_equal(fm_kv_create(&kv, &k), FM_OK);
    assert_int_equal(fm_sched_create(&s, o, kv), FM_OK);
}

static void open_with(const fm_sched_options *o)
{
    open_sharing(o, 1);
}

static void shut(void)
{
    fm_sched_destroy(s);
    fm_kv_audit(kv);
    fm_kv_destroy(kv);
}

/* A prompt of n tokens that begin at `first` and count up. */
static fm_request *ask(int i, int n, int32_t first, int max_new)
{
    fm_request *r = &request[i];
    *r = (fm_request){.id = (uint64_t)i, .token = text[i], .n_prompt = n,
                      .sampling = {.max_new_tokens = max_new}};
    for (int k = 0; k < n; k++) text[i][k] = first + k;
    return r;
}

static fm_request *submit(fm_request *r)
{
    assert_int_equal(fm_sched_submit(s, r), FM_OK);
    return r;
}

/* One step in which every out row says `token`; the rows it had, 0 at the end. */
static int step(int32_t token)
{
    int32_t         all[N_REQUEST];
    const fm_batch *b = fm_sched_plan(s);
    if (!b) return 0;
    for (int i = 0; i < b->n_out; i++) all[i] = token;
    fm_sched_commit(s, all);
    return b->n_row;
}

static void refuses_with_a_sentence(void **state)
{
    (void)state;
    fm_sched_options small = plain;
    small.n_page           = 10;
    open_with(&small);

    assert_int_equal(fm_sched_submit(s, ask(0, 0, 0, 5)), FM_E_ARG);
    assert_string_equal(fm_why(), "the prompt is empty");
    assert_int_equal(fm_sched_submit(s, ask(0, 501, 0, 5)), FM_E_ARG);
    assert_string_equal(fm_why(), "the prompt has 501 tokens; the context holds 500, "
                                  "one of them for the answer");
    assert_int_equal(fm_sched_submit(s, ask(0, 41, 0, 0)), FM_E_ARG);
    assert_string_equal(fm_why(), "the prompt has 41 tokens; the cache holds 40");
    assert_int_equal(fm_sched_submit(s, ask(0, 10, 0, -1)), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "max_new_tokens is -1"));

    assert_int_equal(fm_sched_submit(s, ask(0, 39, 0, 100)), FM_OK);
    assert_int_equal(request[0].sampling.max_new_tokens, 1); /* cut to the pool */
    shut();
}

static void refuses_wrong_options(void **state)
{
    (void)state;
    fm_sched_options bad[8];
    for (int i = 0; i < 8; i++) bad[i] = plain;
    bad[0].max_running      = 0;
    bad[1].max_prefill      = 0;
    bad[2].max_context      = -4;
    bad[3].page_size        = 65;
    bad[4].n_eos            = 9;
    bad[5].conservativeness = -1;
    bad[6].n_page           = 199; /* not what the cache has */
    bad[7].max_running      = 9;   /* nor that many leases */
    open_with(&plain);
    for (int i = 0; i < 8; i++) {
        fm_sched *none = NULL;
        assert_int_equal(fm_sched_create(&none, &bad[i], kv), FM_E_ARG);
        assert_null(none);
        assert_int_equal(strncmp(fm_why(), "scheduler: ", 11), 0);
        if (i < 6) assert_int_equal(fm_sched_max_rows(&bad[i]), 0);
    }
    fm_sched_destroy(NULL);
    shut();
}

static void counts_the_most_rows(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    assert_int_equal(fm_sched_max_rows(&o), 16 + 8);
    o.max_prefill = 10;
    assert_int_equal(fm_sched_max_rows(&o), 10 + 8);
    o.chunk = -1;
    assert_int_equal(fm_sched_max_rows(&o), 500 + 8);
    o.max_prefill = 1000;
    assert_int_equal(fm_sched_max_rows(&o), 1000 + 8);
}

static void mixes_decodes_and_chunks(void **state)
{
    (void)state;
    open_with(&plain);
    submit(ask(0, 5, 100, 50));
    assert_int_equal(step(WORD), 5);
    submit(ask(1, 40, 200, 50));

    const fm_batch *b = fm_sched_plan(s);
    assert_int_equal(b->n_row, 17);
    assert_int_equal(b->n_span, 2);
    assert_int_equal(b->span[0].form, FM_FORM_GENERATED);
    assert_int_equal(b->span[0].pos0, 5);
    assert_int_equal(b->token[0], WORD);
    assert_int_equal(b->span[1].form, FM_FORM_PROMPT);
    assert_int_equal(b->span[1].n_row, 16);
    assert_int_equal(b->n_out, 1); /* the prompt is not through yet */
    assert_ptr_equal(fm_sched_out(s, b, 0)->r, &request[0]);
    fm_sched_commit(s, &(int32_t){WORD});

    assert_int_equal(step(WORD), 17);
    b = fm_sched_plan(s); /* the rest of the prompt: 8 rows */
    assert_int_equal(b->n_row, 9);
    assert_int_equal(b->n_out, 2);
    assert_int_equal(b->out[1], 8);
    assert_ptr_equal(fm_sched_out(s, b, 1)->r, &request[1]);
    fm_sched_commit(s, (int32_t[]){WORD, WORD});
    assert_int_equal(step(WORD), 2);

    const fm_sched_stats st = fm_sched_get_stats(s);
    assert_int_equal(st.n_step, 5);
    assert_int_equal(st.n_row, 5 + 17 + 17 + 9 + 2);
    assert_int_equal(st.n_prefill_row, 45);
    assert_int_equal(st.n_decode_row, 5);
    assert_int_equal(st.sum_running, 1 + 2 * 4);
    shut();
}

static void uncut_prompts_go_whole(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.chunk            = 0;
    o.max_prefill      = 50;
    open_with(&o);
    submit(ask(0, 120, 0, 5));   /* longer than a step's share: goes alone */
    submit(ask(1, 30, 1000, 5));
    submit(ask(2, 15, 2000, 5));
    submit(ask(3, 10, 3000, 5)); /* 55 would be too many */
    assert_int_equal(step(WORD), 120);
    assert_int_equal(step(WORD), 1 + 45);
    assert_int_equal(step(WORD), 3 + 10);
    shut();
}

static void ends_as_asked(void **state)
{
    (void)state;
    open_with(&plain);
    fm_request *eos     = submit(ask(0, 4, 0, 9));
    fm_request *ignores = ask(1, 4, 100, 3);
    ignores->sampling.ignore_eos = 1;
    submit(ignores);
    fm_request *patient = ask(2, 4, 200, 9);
    patient->sampling.min_new_tokens = 2;
    submit(patient);
    fm_request *stopped = ask(3, 3, 300, 9);
    stopped->sampling.stop_id[0] = 42;
    stopped->sampling.n_stop_id  = 1;
    submit(stopped);

    step(EOS);
    assert_int_equal(eos->finish, FM_FINISH_STOP);
    assert_int_equal(eos->matched_stop, EOS);
    assert_int_equal(fm_request_n_output(eos), 1);
    assert_int_equal(stopped->matched_stop, EOS);
    step(EOS);
    assert_int_equal(patient->finish, FM_FINISH_NONE);
    step(EOS);
    assert_int_equal(patient->finish, FM_FINISH_STOP);
    assert_int_equal(fm_request_n_output(patient), 3);
    assert_int_equal(ignores->finish, FM_FINISH_LENGTH);
    assert_int_equal(ignores->matched_stop, -1);

    submit(ask(3, 3, 300, 9))->sampling.stop_id[0] = 42;
    stopped->sampling.n_stop_id = 1;
    step(42);
    assert_int_equal(stopped->finish, FM_FINISH_STOP);
    assert_int_equal(stopped->matched_stop, 42);

    assert_ptr_equal(fm_sched_pop_done(s), eos); /* in the order they ended */
    shut();
}

static void no_output_wanted(void **state)
{
    (void)state;
    open_with(&plain);
    fm_request     *r = submit(ask(0, 20, 0, 0));
    const fm_batch *b = fm_sched_plan(s);
    assert_int_equal(b->n_out, 0);
    fm_sched_commit(s, NULL);
    assert_int_equal(r->finish, FM_FINISH_NONE);
    assert_int_equal(step(WORD), 4);
    assert_int_equal(r->finish, FM_FINISH_LENGTH);
    assert_int_equal(fm_request_n_output(r), 0);
    assert_int_equal(fm_kv_match(kv, r->token, 20), 20); /* but the prompt is cached */
    shut();
}

static void ends_from_outside(void **state)
{
    (void)state;
    open_with(&plain);
    fm_request *runs = submit(ask(0, 4, 0, 9));
    step(WORD);
    fm_request *waits = submit(ask(1, 4, 50, 9));
    fm_sched_cancel(s, waits);
    assert_int_equal(waits->state, FM_REQ_DONE);
    assert_int_equal(waits->finish, FM_FINISH_ABORT);

    fm_sched_plan(s);
    fm_sched_finish(s, runs, FM_FINISH_STOP); /* its rows are under way */
    assert_int_equal(runs->state, FM_REQ_RUNNING);
    fm_sched_commit(s, &(int32_t){WORD});
    assert_int_equal(runs->state, FM_REQ_DONE);
    assert_int_equal(runs->finish, FM_FINISH_STOP);
    assert_int_equal(fm_request_n_output(runs), 1);
    fm_sched_cancel(s, runs); /* too late */
    assert_int_equal(runs->finish, FM_FINISH_STOP);

    assert_ptr_equal(fm_sched_pop_done(s), waits);
    assert_ptr_equal(fm_sched_pop_done(s), runs);
    assert_null(fm_sched_pop_done(s));
    assert_null(fm_sched_plan(s));
    shut();
}

static void higher_priority_first(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.max_running      = 1;
    open_with(&o);
    static const int priority[] = {0, 5, -1, 5};
    for (int i = 0; i < 4; i++) {
        ask(i, 4, 100 * i, 1)->priority = priority[i];
        submit(&request[i]);
    }
    while (step(WORD)) continue;
    static const int order[] = {1, 3, 0, 2};
    for (int i = 0; i < 4; i++) assert_ptr_equal(fm_sched_pop_done(s), &request[order[i]]);
    shut();
}

/* Two texts are known; of three that wait, the one that continues more goes first. */
static void run_one_by_one(fm_policy policy, int n_extra, const int *order)
{
    fm_sched_options o = plain;
    o.max_running      = 1;
    o.policy           = policy;
    open_with(&o);
    submit(ask(0, 60, 0, 1));
    while (step(WORD)) continue;
    assert_ptr_equal(fm_sched_pop_done(s), &request[0]);

    submit(ask(1, 20, 3000, 1));
    submit(ask(2, 20, 0, 1));
    submit(ask(3, 40, 0, 1));
    for (int i = 0; i < n_extra; i++) submit(ask(4 + i, 4, 5000 + 10 * i, 1));
    while (step(WORD)) continue;
    for (int i = 0; i < 3; i++) assert_ptr_equal(fm_sched_pop_done(s), &request[order[i]]);
    shut();
}

static void longest_prefix_first(void **state)
{
    (void)state;
    run_one_by_one(FM_POLICY_FCFS, 0, (int[]){1, 2, 3});
    run_one_by_one(FM_POLICY_LPM, 0, (int[]){3, 2, 1});
    run_one_by_one(FM_POLICY_LPM, 125, (int[]){3, 2, 1}); /* 128 wait */
    run_one_by_one(FM_POLICY_LPM, 126, (int[]){1, 3, 2}); /* 129: fcfs until there are fewer */
}

static void waits_for_a_prefix_being_computed(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.chunk            = 100;
    for (int i = 0; i < 4; i++) {
        const int shares = i / 2;
        o.policy         = i % 2 ? FM_POLICY_LPM : FM_POLICY_FCFS;
        open_sharing(&o, shares);
        fm_request *first = submit(ask(0, 48, 0, 9)), *same = submit(ask(1, 44, 0, 9));
        fm_request *other = submit(ask(2, 8, 3000, 9));
        step(WORD);
        assert_int_equal(first->state, FM_REQ_RUNNING);
        assert_int_equal(same->state, shares ? FM_REQ_WAITING : FM_REQ_RUNNING);
        assert_int_equal(other->state, FM_REQ_RUNNING);
        step(WORD);
        assert_int_equal(same->state, FM_REQ_RUNNING);
        assert_int_equal(same->n_cached, shares ? 40 : 0);
        if (shares) assert_int_equal(same->lease.page[9], first->lease.page[9]);
        shut();
    }
}

static void a_burst_computes_its_prompt_once(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    for (o.chunk = 16; o.chunk <= 256; o.chunk *= 2) {
        open_with(&o);
        for (int i = 0; i < 8; i++) submit(ask(i, 200, 0, 5));
        while (step(WORD)) continue;
        for (int i = 0; i < 8; i++) assert_true(request[i].n_cached >= (i ? 160 : 0));
        assert_true(fm_sched_get_stats(s).n_prefill_row <= 200 + 7 * 40);
        shut();
    }
}

/* Who waits for a prefix is overtaken, but finds a place when it is there. */
static void who_waits_for_a_prefix_keeps_a_place(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.chunk            = 100;
    o.max_running      = 3;
    open_with(&o);
    submit(ask(0, 48, 0, 9));
    fm_request *same = submit(ask(1, 48, 0, 9)), *other = submit(ask(2, 8, 3000, 9));
    fm_request *last = submit(ask(3, 8, 4000, 9));
    step(WORD);
    assert_int_equal(same->state, FM_REQ_WAITING);
    assert_int_equal(other->state, FM_REQ_RUNNING);
    assert_int_equal(last->state, FM_REQ_WAITING);
    step(WORD);
    assert_int_equal(same->state, FM_REQ_RUNNING);
    assert_int_equal(last->state, FM_REQ_WAITING);
    shut();
}

/* Nobody is computing the prefix any more once the one who was has ended. */
static void does_not_wait_for_one_that_ended(void **state)
{
    (void)state;
    open_with(&plain);
    fm_request *first = submit(ask(0, 200, 0, 9)), *same = submit(ask(1, 200, 0, 9));
    step(WORD);
    assert_int_equal(same->state, FM_REQ_WAITING);
    fm_sched_cancel(s, first);
    step(WORD);
    assert_int_equal(same->state, FM_REQ_RUNNING);
    assert_int_equal(same->n_cached, 16);
    shut();
}

/* A text that continues nothing, in a stream of others that do. */
static void lpm_lets_nobody_starve(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.max_running      = 1;
    o.policy           = FM_POLICY_LPM;
    open_with(&o);
    submit(ask(0, 40, 0, 1));
    while (step(WORD)) continue;

    fm_request *odd = submit(ask(1, 8, 3000, 1));
    int         n   = 2;
    submit(ask(n++, 40, 0, 1));
    for (; odd->state == FM_REQ_WAITING; step(WORD)) {
        assert_true(n < N_REQUEST);
        submit(ask(n++, 40, 0, 1)); /* before the one that runs ends */
    }
    assert_true(n > 20); /* it was overtaken before */
    shut();
}

/* Who was writing already goes on before others begin, whatever is cached. */
static void lpm_resumes_before_it_begins(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.policy           = FM_POLICY_LPM;
    o.n_page           = 8;
    o.conservativeness = 0;
    open_with(&o);
    fm_request *early = submit(ask(0, 6, 0, 20));
    step(WORD);
    step(WORD);
    fm_request *late = submit(ask(1, 6, 100, 14));
    while (!late->n_preempted) assert_true(step(WORD) > 0);
    fm_kv_flush(kv);
    fm_request *fresh = submit(ask(2, 20, 0, 1)); /* begins as `early` does */
    while (early->state != FM_REQ_DONE) assert_true(step(WORD) > 0);
    assert_true(fm_kv_match(kv, fresh->token, 19) > 0);
    step(WORD);
    assert_int_equal(late->state, FM_REQ_RUNNING);
    assert_int_equal(fresh->state, FM_REQ_WAITING);
    shut();
}

static void admits_no_more_than_fits(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 30; /* 120 tokens */
    open_with(&o);
    for (int i = 0; i < 4; i++) {
        ask(i, 8, 100 * i, 32)->sampling.ignore_eos = 1;
        submit(&request[i]);
    }
    step(WORD);
    step(WORD);
    assert_int_equal(fm_sched_get_stats(s).n_running, 3); /* 3 * 40 tokens are known to fit */
    while (step(WORD)) continue;
    assert_int_equal(fm_sched_get_stats(s).n_preemption, 0);
    assert_int_equal(fm_kv_free_pages(kv) + fm_kv_evictable_pages(kv), 30);
    shut();
}

/* Known lengths: pages that come back in time are counted on. */
static void looks_ahead_to_releases(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 33;
    open_with(&o);
    static const int n_new[] = {4, 60, 52};
    for (int i = 0; i < 3; i++) { /* 36 + 64 + 56 tokens: 39 pages, but never at once */
        ask(i, i ? 4 : 32, 100 * i, n_new[i])->sampling.ignore_eos = 1;
        submit(&request[i]);
    }
    for (int i = 0; i < 3; i++) step(WORD);
    assert_int_equal(fm_sched_get_stats(s).n_running, 3);
    while (step(WORD)) continue;
    assert_int_equal(fm_sched_get_stats(s).n_preemption, 0);
    shut();
}

static void pages_it_would_reuse_are_not_spare(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 10;
    open_with(&o);
    submit(ask(0, 20, 0, 1)); /* leaves 5 idle pages */
    while (step(WORD)) continue;
    ask(1, 4, 1000, 12)->sampling.ignore_eos = 1;
    submit(&request[1]);
    step(WORD);
    ask(2, 24, 0, 12)->sampling.ignore_eos = 1;
    submit(&request[2]); /* 9 pages, 5 of them idle, and 4 for the other */
    step(WORD);
    assert_int_equal(request[2].state, FM_REQ_WAITING);
    while (step(WORD)) continue;
    assert_int_equal(fm_sched_get_stats(s).n_preemption, 0);
    shut();
}

/* A running request evicts pages that no request in the queue uses, although those of a queued one
 * were computed earlier. */
static void what_a_waiting_request_has_cached_stays(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 14;
    o.max_running      = 1;
    open_with(&o);
    for (int i = 0; i < 2; i++) { /* each leaves 5 idle pages */
        submit(ask(i, 20, 1000 * i, 1));
        while (step(WORD)) continue;
    }
    ask(2, 4, 3000, 24)->sampling.ignore_eos = 1;
    submit(&request[2]); /* 7 pages, 4 are free */
    fm_request *waiting = submit(ask(3, 24, 0, 1));
    while (waiting->state == FM_REQ_WAITING) assert_true(step(WORD));
    assert_true(request[2].state == FM_REQ_DONE && fm_kv_get_stats(kv).evicted_pages >= 3);
    assert_int_equal(waiting->n_cached, 20);
    while (step(WORD)) continue;
    shut();
}

static void of_equals_the_latest_goes_back(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 15;
    o.conservativeness = 0;
    open_with(&o);
    fm_request *old = submit(ask(0, 4, 0, 40));
    for (int i = 0; i < 27; i++) step(WORD);
    fm_request *a = submit(ask(1, 4, 100, 8)), *b = submit(ask(2, 4, 200, 8));
    while (!fm_sched_get_stats(s).n_preemption) assert_true(step(WORD) > 0);
    assert_int_equal(old->n_preempted, 0);
    assert_int_equal(a->n_preempted, 0);
    assert_int_equal(b->n_preempted, 1);
    while (step(WORD)) continue;
    assert_int_equal(fm_request_n_output(b), 8);
    shut();
}

static void the_lowest_priority_goes_back(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 8;
    o.conservativeness = 0;
    open_with(&o);
    fm_request *early = submit(ask(0, 6, 0, 20));
    step(WORD);
    step(WORD);
    fm_request *urgent = ask(1, 6, 100, 14);
    urgent->priority   = 10;
    submit(urgent);
    while (!fm_sched_get_stats(s).n_preemption) assert_true(step(WORD) > 0);
    assert_true(fm_request_n_output(urgent) < fm_request_n_output(early));
    assert_int_equal(urgent->n_preempted, 0);
    assert_int_equal(early->n_preempted, 1);
    while (step(WORD)) continue;
    assert_int_equal(fm_request_n_output(early), 20);
    assert_int_equal(fm_request_n_output(urgent), 14);
    shut();
}

/* Guessed lengths that turn out too short: the one that lost least goes back,
 * and is computed again in two forms. */
static void preempts_and_recomputes(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 8; /* 32 tokens */
    o.conservativeness = 0; /* outputs of running requests are not counted at all */
    open_with(&o);
    fm_request *early = submit(ask(0, 6, 0, 20));
    step(WORD);
    step(WORD);
    fm_request *late = submit(ask(1, 6, 100, 14));
    while (!late->n_preempted) assert_true(step(WORD) > 0);

    assert_int_equal(late->state, FM_REQ_WAITING);
    assert_int_equal(late->has_lease, 0);
    assert_int_equal(late->n_computed, 0);
    const int32_t n_output = fm_request_n_output(late);
    assert_true(n_output > 1 && n_output < fm_request_n_output(early));
    fm_kv_flush(kv); /* so that its prompt is gone, too */

    while (early->state != FM_REQ_DONE) step(WORD);
    const fm_batch *b = fm_sched_plan(s);
    assert_int_equal(b->n_span, 2);
    assert_int_equal(b->span[0].form, FM_FORM_PROMPT);
    assert_int_equal(b->span[0].n_row, 6);
    assert_int_equal(b->span[1].form, FM_FORM_GENERATED);
    assert_int_equal(b->span[1].pos0, 6);
    assert_int_equal(b->span[1].n_row, n_output);
    assert_int_equal(b->n_out, 1);
    assert_int_equal(b->out[0], 5 + n_output);
    fm_sched_commit(s, &(int32_t){WORD});
    while (step(WORD)) continue;
    assert_int_equal(fm_request_n_output(late), 14);
    assert_int_equal(late->finish, FM_FINISH_LENGTH);
    shut();
}

static void a_resumed_request_finds_its_prompt(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.n_page           = 10;
    o.conservativeness = 0;
    open_with(&o);
    submit(ask(0, 4, 0, 40));
    step(WORD);
    step(WORD);
    fm_request *late = submit(ask(1, 8, 100, 14));
    while (!late->n_preempted) assert_true(step(WORD) > 0);
    fm_sched_cancel(s, &request[0]);

    fm_kv_lease other; /* someone computes the same text as a prompt meanwhile */
    assert_int_equal(fm_kv_begin(kv, &other, late->token, late->n_token), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &other, late->n_token), FM_OK);
    fm_kv_publish(kv, &other, late->token, late->n_token);
    fm_kv_end(kv, &other);
    assert_true(fm_kv_match(kv, late->token, late->n_token) > 8);

    const fm_batch *b = fm_sched_plan(s); /* the prompt is found whole, outputs are computed */
    assert_int_equal(b->n_span, 1);
    assert_int_equal(b->span[0].form, FM_FORM_GENERATED);
    assert_int_equal(b->span[0].pos0, 8);
    assert_int_equal(late->n_cached, 0); /* as reported at its first admission */
    fm_sched_commit(s, &(int32_t){WORD});
    shut();
}

static void generated_pages_are_shared_unless_deterministic(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    for (o.deterministic = 0; o.deterministic < 2; o.deterministic++) {
        open_with(&o);
        fm_request *r = submit(ask(0, 6, 0, 7));
        while (step(WORD)) continue;
        assert_int_equal(r->n_token, 13); /* the last of them has no KV */
        assert_int_equal(fm_kv_match(kv, r->token, 13), o.deterministic ? 4 : 12);
        shut();
    }
}

static void a_plan_not_committed_is_planned_again(void **state)
{
    (void)state;
    open_with(&plain);
    fm_request *r = submit(ask(0, 20, 0, 3));
    fm_sched_plan(s);
    const fm_batch *b = fm_sched_plan(s);
    assert_int_equal(b->n_row, 16);
    assert_int_equal(b->span[0].pos0, 0);
    fm_sched_cancel(s, r);
    assert_int_equal(r->state, FM_REQ_RUNNING);
    fm_sched_give_up(s);
    assert_int_equal(r->state, FM_REQ_DONE);
    assert_ptr_equal(fm_sched_pop_done(s), r);
    assert_null(fm_sched_plan(s));
    assert_int_equal(fm_sched_get_stats(s).n_step, 0);
    shut();
}

/* Only who never ran goes elsewhere: the others would lose what they have. */
/* A request whose pages are being loaded is overtaken by others, but not for ever: then no request
 * behind it starts before it does. */
static void who_loads_is_passed_but_does_not_starve(void **state)
{
    (void)state;
    open_with(&plain);
    fm_request *loads = submit(ask(0, 20, 0, 1));
    loads->is_loading = 1;
    assert_null(fm_sched_plan(s)); /* nothing else waits */
    int n = 0;
    for (int i = 1; i < N_REQUEST; i++) {
        submit(ask(i, 8, 1000 * i, 1));
        if (!step(WORD)) break;
        n++;
    }
    assert_int_equal(n, 64);
    assert_int_equal(loads->state, FM_REQ_WAITING);
    loads->is_loading = 0;
    assert_true(step(WORD) > 0);
    assert_int_not_equal(loads->state, FM_REQ_WAITING);
    while (step(WORD)) continue;
    while (fm_sched_pop_done(s)) continue;
    shut();
}

static void who_waits_may_be_withdrawn(void **state)
{
    (void)state;
    fm_sched_options one = plain;
    one.max_running      = 1;
    open_with(&one);
    fm_request *runs = submit(ask(0, 8, 10, 5)), *waits = submit(ask(1, 8, 50, 5));
    fm_request *last = submit(ask(2, 8, 90, 5));
    assert_int_equal(fm_sched_check(s, last), FM_OK);
    step(WORD);
    assert_int_equal(runs->state, FM_REQ_RUNNING);
    assert_ptr_equal(fm_sched_withdraw(s), waits);
    assert_int_equal(fm_sched_get_stats(s).n_waiting, 1);
    submit(waits); /* behind `last` now */
    assert_ptr_equal(fm_sched_withdraw(s), last);
    assert_ptr_equal(fm_sched_withdraw(s), waits);
    assert_null(fm_sched_withdraw(s));
    while (step(WORD)) continue;
    assert_int_equal(runs->finish, FM_FINISH_LENGTH);
    assert_ptr_equal(fm_sched_pop_done(s), runs);
    assert_null(fm_sched_pop_done(s));
    shut();
}

/* Rows of the planned step whose states are kept; then the step is taken. */
static int n_kept_in_step(void)
{
    const fm_batch *b = fm_sched_plan(s);
    int             n = 0;
    for (int i = 0; i < b->n_span; i++) n += b->span[i].n_keep;
    (void)step(WORD);
    return n;
}

/* A prompt's pages serve later requests, for which drafts may pay again. */
static void prompts_keep_states_while_answers_rest(void **state)
{
    (void)state;
    fm_sched_options o = plain;
    o.max_draft        = 2;
    o.keeps_states     = 1;
    open_with(&o);
    fm_sched_keep_states(s, 0);
    submit(ask(0, 20, 100, 50));
    assert_int_equal(n_kept_in_step(), 1); /* a chunk */
    assert_int_equal(n_kept_in_step(), 1); /* the rest of the prompt */
    assert_int_equal(n_kept_in_step(), 0);
    submit(ask(1, 10, 300, 50));
    assert_int_equal(n_kept_in_step(), 1); /* the prompt's, not that of the decode row beside it */
    assert_int_equal(n_kept_in_step(), 0);
    fm_sched_keep_states(s, 1);
    assert_int_equal(n_kept_in_step(), 2);
    shut();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_with_a_sentence),
        cmocka_unit_test(refuses_wrong_options),
        cmocka_unit_test(counts_the_most_rows),
        cmocka_unit_test(mixes_decodes_and_chunks),
        cmocka_unit_test(uncut_prompts_go_whole),
        cmocka_unit_test(ends_as_asked),
        cmocka_unit_test(no_output_wanted),
        cmocka_unit_test(ends_from_outside),
        cmocka_unit_test(higher_priority_first),
        cmocka_unit_test(longest_prefix_first),
        cmocka_unit_test(waits_for_a_prefix_being_computed),
        cmocka_unit_test(a_burst_computes_its_prompt_once),
        cmocka_unit_test(who_waits_for_a_prefix_keeps_a_place),
        cmocka_unit_test(does_not_wait_for_one_that_ended),
        cmocka_unit_test(lpm_lets_nobody_starve),
        cmocka_unit_test(lpm_resumes_before_it_begins),
        cmocka_unit_test(admits_no_more_than_fits),
        cmocka_unit_test(looks_ahead_to_releases),
        cmocka_unit_test(pages_it_would_reuse_are_not_spare),
        cmocka_unit_test(what_a_waiting_request_has_cached_stays),
        cmocka_unit_test(of_equals_the_latest_goes_back),
        cmocka_unit_test(the_lowest_priority_goes_back),
        cmocka_unit_test(preempts_and_recomputes),
        cmocka_unit_test(a_resumed_request_finds_its_prompt),
        cmocka_unit_test(generated_pages_are_shared_unless_deterministic),
        cmocka_unit_test(a_plan_not_committed_is_planned_again),
        cmocka_unit_test(who_loads_is_passed_but_does_not_starve),
        cmocka_unit_test(who_waits_may_be_withdrawn),
        cmocka_unit_test(prompts_keep_states_while_answers_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
