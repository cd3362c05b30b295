/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that is gone on with after any number of its tokens ends as the one that was
 * never interrupted: the same tokens, the same text, the same reason to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "llm/engine.h"

enum { MAX_ANSWERS = 3, N_OUTPUT = 48 };

typedef struct {
    int32_t   token[N_OUTPUT];
    int       n;
    fm_str    text;
    fm_finish finish;
    int       matched_stop;
} answer;

static fm_engine *engine;

static int open_tiny(void **state)
{
    (void)state;
    fm_options *o = NULL;
    assert_int_equal(fm_options_create(&o), FM_OK);
    assert_int_equal(fm_options_set(o, "model-path", FM_TEST_DATA "/../../models/fathom-tiny"),
                     FM_OK);
    assert_int_equal(fm_options_set(o, "max-total-tokens", "4096"), FM_OK);
    assert_int_equal(fm_options_set(o, "deterministic", "1"), FM_OK);
    if (fm_engine_open(&engine, o) != FM_OK) fail_msg("%s", fm_why());
    fm_options_destroy(o);
    return 0;
}

static int close_tiny(void **state)
{
    (void)state;
    fm_engine_close(engine);
    return 0;
}

static void collect(answer *a)
{
    fm_event ev;
    while (fm_engine_busy(engine)) {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) {
            answer *to = &a[ev.index];
            if (ev.token >= 0) {
                to->token[to->n++] = ev.token;
                assert_int_equal(ev.n_output, to->n);
            }
            fm_str_add(&to->text, ev.text, ev.text_len);
            if (ev.finish == FM_FINISH_NONE) continue;
            to->finish       = ev.finish;
            to->matched_stop = ev.matched_stop;
        }
    }
    while (fm_engine_poll(engine, &ev)) { /* one that ended without a step */
        answer *to = &a[ev.index];
        if (ev.token >= 0) to->token[to->n++] = ev.token;
        fm_str_add(&to->text, ev.text, ev.text_len);
        if (ev.finish != FM_FINISH_NONE) {
            to->finish       = ev.finish;
            to->matched_stop = ev.matched_stop;
        }
    }
}

static void fini(answer *a, int n)
{
    for (int i = 0; i < n; i++) fm_str_fini(&a[i].text);
}

static void check_same(const answer *got, const answer *want, int cut)
{
    if (got->n != want->n) fail_msg("cut %d: %d tokens, want %d", cut, got->n, want->n);
    assert_memory_equal(got->token, want->token, (size_t)want->n * sizeof *want->token);
    assert_int_equal(got->text.len, want->text.len);
    if (want->text.len) assert_memory_equal(got->text.text, want->text.text, want->text.len);
    assert_int_equal(got->finish, want->finish);
    assert_int_equal(got->matched_stop, want->matched_stop);
}

/* Every answer is cut somewhere else. */
static void check_resumed(const fm_prompt *p)
{
    const int n                 = p->n ? p->n : 1;
    answer    want[MAX_ANSWERS] = {{{0}, 0, {0}, 0, 0}};
    assert_int_equal(fm_engine_submit(engine, p, NULL), FM_OK);
    collect(want);
    for (int cut = 0; cut <= N_OUTPUT; cut += cut < 4 ? 1 : 7) {
        answer   got[MAX_ANSWERS] = {{{0}, 0, {0}, 0, 0}};
        fm_begun begun[MAX_ANSWERS];
        for (int i = 0; i < n; i++) {
            const int at = cut + 5 * i < want[i].n ? cut + 5 * i : want[i].n;
            begun[i]     = (fm_begun){want[i].token, at};
        }
        fm_engine_flush_cache(engine);
        assert_int_equal(fm_engine_resume(engine, p, begun, NULL), FM_OK);
        collect(got);
        for (int i = 0; i < n; i++) check_same(&got[i], &want[i], cut);
        fini(got, n);
    }
    fini(want, n);
}

static fm_prompt story(void)
{
    static const char text[] = "Once upon a time there was";
    fm_prompt p = {.text = text, .text_len = sizeof text - 1, .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.max_new_tokens = N_OUTPUT;
    return p;
}

static void greedy(void **state)
{
    (void)state;
    const fm_prompt p = story();
    check_resumed(&p);
}

static void seeded_and_penalised(void **state)
{
    (void)state;
    fm_prompt p                  = story();
    p.n                          = MAX_ANSWERS;
    p.sampling.temperature       = 1.1f;
    p.sampling.has_seed          = 1;
    p.sampling.seed              = 42;
    p.sampling.frequency_penalty = 0.4f;
    p.sampling.min_new_tokens    = 20;
    check_resumed(&p);
}

static void stop_strings(void **state)
{
    (void)state;
    static const char *const stops[] = {"zzzz", "e w", "he", "\n"};
    for (int i = 0; i < 4; i++) {
        fm_prompt p            = story();
        p.stop                 = stops;
        p.n_stop               = i + 1;
        p.keep_stop            = i % 2;
        p.sampling.temperature = 0.9f;
        p.sampling.has_seed    = 1;
        check_resumed(&p);
    }
}

static void grammar(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":3,\"maxItems\":5}";
    fm_prompt p = story();
    assert_int_equal(
        fm_engine_grammar(&p.grammar, engine, FM_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1),
        FM_OK);
    p.sampling.temperature = 1;
    p.sampling.has_seed    = 1;
    p.sampling.seed        = 3;
    check_resumed(&p);
    fm_grammar_release(p.grammar);
}

/* Together with other requests, in a queue that is full. */
static void among_others(void **state)
{
    (void)state;
    fm_prompt p    = story();
    answer    want = {{0}, 0, {0}, 0, 0}, got = {{0}, 0, {0}, 0, 0};
    uint64_t  id = 0;
    fm_event  ev;
    assert_int_equal(fm_engine_submit(engine, &p, NULL), FM_OK);
    collect(&want);
    fm_prompt other            = p;
    other.sampling.temperature = 1;
    for (int i = 0; i < 40; i++) assert_int_equal(fm_engine_submit(engine, &other, NULL), FM_OK);
    const fm_begun begun = {want.token, 10};
    assert_int_equal(fm_engine_resume(engine, &p, &begun, &id), FM_OK);
    while (fm_engine_busy(engine)) {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) {
            if (ev.id != id) continue;
            if (ev.token >= 0) got.token[got.n++] = ev.token;
            fm_str_add(&got.text, ev.text, ev.text_len);
            got.finish       = ev.finish;
            got.matched_stop = ev.matched_stop;
        }
    }
    check_same(&got, &want, 10);
    fini(&got, 1);
    fini(&want, 1);
}

static void wrong_tokens_are_refused(void **state)
{
    (void)state;
    const fm_prompt p                  = story();
    int32_t         list[N_OUTPUT + 1] = {0};
    fm_begun        begun              = {list, N_OUTPUT + 1};
    assert_int_equal(fm_engine_resume(engine, &p, &begun, NULL), FM_E_ARG);
    list[2] = 1 << 30;
    begun.n = 3;
    assert_int_equal(fm_engine_resume(engine, &p, &begun, NULL), FM_E_ARG);
    assert_false(fm_engine_busy(engine));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy),       cmocka_unit_test(seeded_and_penalised),
        cmocka_unit_test(stop_strings), cmocka_unit_test(grammar),
        cmocka_unit_test(among_others), cmocka_unit_test(wrong_tokens_are_refused),
    };
    return cmocka_run_group_tests(tests, open_tiny, close_tiny);
}
