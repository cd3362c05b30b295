/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface on a small dummy model with a tokenizer. */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "llm/engine.h"

enum { MAX_NEW = 24 };

typedef struct {
    int32_t   token[8][64];
    float     logprob[8][64];
    int       n[8];
    fm_str    text[8];
    fm_finish finish[8];
    fm_event  last; /* of answer 0 */
    int       greedy_tops; /* tokens that were their own best alternative */
} answers;

static fm_engine *engine;

static void open_with_context(const char *n_token)
{
    fm_options *o = NULL;
    assert_int_equal(fm_options_create(&o), FM_OK);
    fm_options_set(o, "model-path", "r1-mini");
    fm_options_set(o, "tokenizer-path", FM_TEST_DATA "/tokenizer");
    fm_options_set(o, "max-total-tokens", "4096");
    fm_options_set(o, "context-length", n_token);
    fm_options_set(o, "json-model-override-args",
                   "{\"num_hidden_layers\":2,\"hidden_size\":128,\"intermediate_size\":256,"
                   "\"moe_intermediate_size\":64,\"n_routed_experts\":16,\"vocab_size\":4096}");
    if (fm_engine_open(&engine, o) != FM_OK) fail_msg("%s", fm_why());
    fm_options_destroy(o);
}

static cpu_set_t before_open;

static int open_engine(void **state)
{
    (void)state;
    sched_getaffinity(0, sizeof before_open, &before_open);
    open_with_context("256");
    return 0;
}

static int close_engine(void **state)
{
    (void)state;
    fm_engine_close(engine);
    return 0;
}

static fm_prompt greedy(const char *text)
{
    fm_prompt p = {.text = text, .text_len = strlen(text), .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.max_new_tokens = MAX_NEW;
    p.sampling.ignore_eos     = 1;
    return p;
}

static fm_prompt drawn(const char *text, uint64_t seed)
{
    fm_prompt p            = greedy(text);
    p.sampling.temperature = 0.9f;
    p.sampling.top_p       = 0.95f;
    p.sampling.has_seed    = 1;
    p.sampling.seed        = seed;
    return p;
}

/* Runs everything submitted; keeps the answers of `id`. */
static void run(answers *a, uint64_t id)
{
    fm_event ev;
    memset(a, 0, sizeof *a);
    do {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) {
            if (ev.id != id) continue;
            const int i = ev.index;
            if (ev.token >= 0) {
                a->token[i][a->n[i]]     = ev.token;
                a->logprob[i][a->n[i]++] = ev.logprob;
                a->greedy_tops += ev.n_top > 0 && ev.top[0].id == ev.token;
            }
            fm_str_add(&a->text[i], ev.text, ev.text_len);
            a->finish[i] = ev.finish;
            if (i == 0) a->last = ev;
        }
    } while (fm_engine_busy(engine));
}

static void free_answers(answers *a)
{
    for (int i = 0; i < 8; i++) fm_str_fini(&a->text[i]);
}

static uint64_t submit(const fm_prompt *p)
{
    uint64_t id = 0;
    if (fm_engine_submit(engine, p, &id) != FM_OK) fail_msg("%s", fm_why());
    return id;
}

static void counts_and_ends_by_length(void **state)
{
    (void)state;
    const fm_prompt p = greedy("The sea is deep");
    answers         a;
    run(&a, submit(&p));
    assert_int_equal(a.n[0], MAX_NEW);
    assert_int_equal(a.finish[0], FM_FINISH_LENGTH);
    assert_int_equal(a.last.n_output, MAX_NEW);
    assert_true(a.last.n_prompt > 1);
    assert_true(a.text[0].len > 0);
    free_answers(&a);
}

static void a_seed_is_kept_in_any_company(void **state)
{
    (void)state;
    const fm_prompt p = drawn("One fish", 7), q = drawn("Two fish, red fish", 8);
    answers         alone, company, other;
    run(&alone, submit(&p));
    submit(&q);
    submit(&q);
    const uint64_t id = submit(&p);
    run(&company, id);
    assert_memory_equal(alone.token[0], company.token[0], sizeof alone.token[0]);
    const fm_prompt r = drawn("One fish", 9);
    run(&other, submit(&r));
    assert_memory_not_equal(alone.token[0], other.token[0], sizeof alone.token[0]);
    free_answers(&alone), free_answers(&company), free_answers(&other);
}

static void n_answers_differ_and_come_back(void **state)
{
    (void)state;
    fm_prompt p = drawn("Choose", 3);
    answers   a, b;
    p.n = 4;
    run(&a, submit(&p));
    run(&b, submit(&p));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(a.n[i], MAX_NEW);
        assert_memory_equal(a.token[i], b.token[i], sizeof a.token[i]);
        for (int j = 0; j < i; j++) assert_memory_not_equal(a.token[i], a.token[j], sizeof a.token[i]);
    }
    free_answers(&a), free_answers(&b);
}

static void n_answers_compute_their_prompt_once(void **state)
{
    (void)state;
    enum { N = 200 };
    int32_t   token[N];
    fm_prompt p = drawn("", 3);
    fm_event  ev;
    int       n_ended = 0;
    for (int i = 0; i < N; i++) token[i] = (51 * i + 700) % 4096;
    p.text                    = NULL;
    p.token                   = token;
    p.n_token                 = N;
    p.n                       = 4;
    p.sampling.max_new_tokens = 2;
    const int64_t before      = fm_engine_get_info(engine).sched.n_prefill_row;
    submit(&p);
    while (fm_engine_busy(engine)) {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) {
            if (ev.finish == FM_FINISH_NONE) continue;
            n_ended++;
            assert_true(ev.index == 0 ? ev.n_cached == 0 : ev.n_cached > N / 2);
        }
    }
    assert_int_equal(n_ended, 4);
    assert_true(fm_engine_get_info(engine).sched.n_prefill_row - before < 2 * N);
}

static size_t mapped_bytes(void)
{
    unsigned long n_page = 0;
    FILE         *f      = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &n_page), 1);
    fclose(f);
    return n_page * (size_t)sysconf(_SC_PAGESIZE);
}

/* As if memory ended `bytes` from here. */
static fm_status submit_within(size_t bytes, const fm_prompt *p)
{
    struct rlimit all, few;
    assert_int_equal(getrlimit(RLIMIT_AS, &all), 0);
    few          = all;
    few.rlim_cur = mapped_bytes() + bytes;
    assert_int_equal(setrlimit(RLIMIT_AS, &few), 0);
    const fm_status rc = fm_engine_submit(engine, p, NULL);
    assert_int_equal(setrlimit(RLIMIT_AS, &all), 0);
    return rc;
}

/* More answers than memory has room for: none of them is begun. */
static void n_answers_come_all_or_none(void **state)
{
    (void)state;
    enum { CONTEXT = 160000, N = 32 };
    fm_engine *usual = engine;
    fm_prompt  p     = drawn("Choose", 3);
    answers    a;
    open_with_context("160000");
    p.n                       = N;
    p.sampling.max_new_tokens = CONTEXT; /* each has room for a whole context */
    assert_int_equal(submit_within(CONTEXT * sizeof(int32_t) * 3 / 2, &p), FM_E_OOM);
    assert_false(fm_engine_busy(engine));
    p.n                       = 2;
    p.sampling.max_new_tokens = MAX_NEW;
    run(&a, submit(&p));
    for (int i = 0; i < 2; i++) assert_int_equal(a.n[i], MAX_NEW);
    free_answers(&a);
    fm_engine_close(engine);
    engine = usual;
}

static void a_stop_string_cuts_the_text(void **state)
{
    (void)state;
    fm_prompt p = greedy("Stop somewhere");
    answers   whole, cut, kept;
    run(&whole, submit(&p));
    assert_true(whole.text[0].len > 12);
    char stop[4] = {0};
    memcpy(stop, whole.text[0].text + 8, 3); /* begins and ends inside tokens */
    const char  *list[] = {"never to be seen", stop};
    const size_t at     = (size_t)(strstr(whole.text[0].text, stop) - whole.text[0].text);
    p.stop              = list;
    p.n_stop            = 2;
    run(&cut, submit(&p));
    assert_int_equal(cut.finish[0], FM_FINISH_STOP);
    assert_int_equal(cut.last.matched_stop, 1);
    assert_int_equal(cut.text[0].len, at);
    assert_true(cut.n[0] < whole.n[0]);
    p.keep_stop = 1;
    run(&kept, submit(&p));
    assert_int_equal(kept.text[0].len, at + 3);
    free_answers(&whole), free_answers(&cut), free_answers(&kept);
}

static void a_stop_id_ends_it_and_leaves_no_text(void **state)
{
    (void)state;
    fm_prompt p = greedy("Stop at an id");
    answers   whole, cut;
    run(&whole, submit(&p));
    p.sampling.ignore_eos = 0;
    p.sampling.stop_id[p.sampling.n_stop_id++] = whole.token[0][5];
    run(&cut, submit(&p));
    assert_int_equal(cut.finish[0], FM_FINISH_STOP);
    assert_int_equal(cut.last.matched_id, whole.token[0][5]);
    assert_true(cut.n[0] <= 6);
    assert_int_equal(cut.last.text_len, 0);
    free_answers(&whole), free_answers(&cut);
}

static void logprobs_come_with_alternatives(void **state)
{
    (void)state;
    fm_prompt p = greedy("Probably");
    answers   a;
    p.sampling.logprobs     = 1;
    p.sampling.top_logprobs = 3;
    run(&a, submit(&p));
    assert_int_equal(a.greedy_tops, MAX_NEW);
    for (int i = 0; i < MAX_NEW; i++) assert_true(a.logprob[0][i] < 0 && a.logprob[0][i] > -20);
    free_answers(&a);
}

static void cancelling_frees_everything(void **state)
{
    (void)state;
    const fm_prompt p  = greedy("Never mind");
    const uint64_t  id = submit(&p), waiting = submit(&p);
    fm_event        ev;
    int             aborted = 0;
    assert_int_equal(fm_engine_step(engine), FM_OK);
    fm_engine_cancel(engine, id);
    fm_engine_cancel(engine, waiting);
    fm_engine_cancel(engine, 123456); /* an id that no request has */
    while (fm_engine_poll(engine, &ev)) aborted += ev.finish == FM_FINISH_ABORT;
    assert_int_equal(aborted, 2);
    assert_false(fm_engine_busy(engine));
}

static void refused(const fm_prompt *p, const char *words)
{
    assert_int_equal(fm_engine_submit(engine, p, NULL), FM_E_ARG);
    if (!strstr(fm_why(), words)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), words);
    assert_false(fm_engine_busy(engine));
}

static void what_cannot_run_is_refused(void **state)
{
    (void)state;
    int32_t   token[300] = {0};
    fm_prompt p          = greedy("");
    p.text               = NULL;
    p.token              = token;
    refused(&p, "empty");
    p.n_token = 300;
    refused(&p, "256");
    p.n_token = 3;
    token[2]  = 4096;
    refused(&p, "outside the vocabulary");
    token[2]               = 1;
    p.sampling.temperature = -1;
    refused(&p, "temperature");
    p.sampling.temperature    = 0;
    p.sampling.max_new_tokens = -1;
    refused(&p, "max_new_tokens");
    p.sampling.max_new_tokens = 4;
    p.n_token                 = -4;
    refused(&p, "-4 tokens");
    p.n_token = 3;
    p.token   = NULL;
    refused(&p, "no list");
    p.token = token;
    p.n     = -1;
    refused(&p, "n is -1");
    p.n = INT32_MAX;
    refused(&p, "n is 2147483647");
    p.n      = 1;
    p.n_stop = -1;
    refused(&p, "n_stop is -1");
    p.n_stop = 2;
    refused(&p, "stop string 0 is NULL");
    p.stop = (const char *const[]){"a", NULL};
    refused(&p, "stop string 1 is NULL");
    fm_prompt bad = greedy("\xff\xfe");
    assert_int_equal(fm_engine_submit(engine, &bad, NULL), FM_E_FORMAT);
}

static void long_answers_are_cut_to_the_context(void **state)
{
    (void)state;
    int32_t   token[250];
    fm_prompt p = greedy("");
    fm_event  ev;
    int       n = 0;
    for (int i = 0; i < 250; i++) token[i] = i + 20;
    p.text                    = NULL;
    p.token                   = token;
    p.n_token                 = 250;
    p.sampling.max_new_tokens = 1 << 30;
    submit(&p);
    do {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) n = ev.n_output;
    } while (fm_engine_busy(engine));
    assert_int_equal(n, 6);
    assert_int_equal(ev.finish, FM_FINISH_LENGTH);
}

static double log_softmax(const float *x, int n, int32_t id)
{
    double max = x[0], sum = 0;
    for (int i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++) sum += exp(x[i] - max);
    return x[id] - max - log(sum);
}

/* Row k of the text, computed as a prompt that ends there, says the same. */
static void prompt_logprobs_are_those_of_the_logits(void **state)
{
    (void)state;
    enum { N = 20 };
    const int V = fm_engine_config(engine)->vocab;
    float    *logits = malloc((size_t)V * sizeof *logits);
    int32_t   token[N];
    fm_prompt p = greedy("");
    fm_event  ev;
    int       n_seen = 0;
    for (int i = 0; i < N; i++) token[i] = 37 * i % V;
    p.text                    = NULL;
    p.token                   = token;
    p.n_token                 = N;
    p.sampling.max_new_tokens = 0;
    p.sampling.top_logprobs   = 1;
    p.prompt_logprobs         = 1;
    p.logprob_from            = 3;
    submit(&p);
    while (fm_engine_busy(engine)) {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) {
            assert_int_equal(ev.token, -1);
            if (ev.prompt_at < 0) continue; /* the end */
            assert_int_equal(ev.prompt_at, 4 + n_seen++);
            assert_int_equal(ev.n_top, 1);
            const fm_top_logprob best = ev.top[0];
            assert_int_equal(fm_engine_score(engine, token, ev.prompt_at, ev.prompt_at, logits), FM_OK);
            assert_float_equal(ev.logprob, log_softmax(logits, V, token[ev.prompt_at]), 1e-4);
            assert_float_equal(best.logprob, log_softmax(logits, V, best.id), 1e-4);
        }
    }
    assert_int_equal(n_seen, N - 4);
    free(logits);
}

static void a_step_leaves_the_calling_thread_free(void **state)
{
    (void)state;
    cpu_set_t       after;
    fm_event        ev;
    const fm_prompt p = greedy("Once upon a time");
    submit(&p);
    while (fm_engine_busy(engine)) {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) continue;
    }
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before_open, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_ends_by_length),
        cmocka_unit_test(a_seed_is_kept_in_any_company),
        cmocka_unit_test(n_answers_differ_and_come_back),
        cmocka_unit_test(n_answers_compute_their_prompt_once),
        cmocka_unit_test(n_answers_come_all_or_none),
        cmocka_unit_test(a_stop_string_cuts_the_text),
        cmocka_unit_test(a_stop_id_ends_it_and_leaves_no_text),
        cmocka_unit_test(logprobs_come_with_alternatives),
        cmocka_unit_test(cancelling_frees_everything),
        cmocka_unit_test(what_cannot_run_is_refused),
        cmocka_unit_test(long_answers_are_cut_to_the_context),
        cmocka_unit_test(prompt_logprobs_are_those_of_the_logits),
        cmocka_unit_test(a_step_leaves_the_calling_thread_free),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
