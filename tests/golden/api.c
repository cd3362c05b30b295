/* SPDX-License-Identifier: Apache-2.0 */
/* The public header as a program uses it: what is NULL, what fails and how, text
 * and tokens, facts, callbacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "fathom/fathom.h"

static fm_engine *engine;
static double     last_progress = -1;
static int        n_progress;

static void on_progress(void *ctx, const char *what, double done)
{
    assert_ptr_equal(ctx, &n_progress);
    assert_non_null(what);
    assert_true(done >= 0 && done <= 1);
    last_progress = done;
    n_progress++;
}

static int open_tiny(void **state)
{
    (void)state;
    fm_options *o = NULL;
    fm_on_progress(on_progress, &n_progress);
    assert_int_equal(fm_options_create(&o), FM_OK);
    assert_int_equal(fm_options_set(o, "model-path", FM_TEST_DATA "/../../models/fathom-tiny"),
                     FM_OK);
    assert_int_equal(fm_options_set(o, "max-total-tokens", "4096"), FM_OK);
    if (fm_engine_open(&engine, o) != FM_OK) fail_msg("%s", fm_why());
    fm_options_destroy(o);
    fm_on_progress(NULL, NULL);
    return 0;
}

static int close_tiny(void **state)
{
    (void)state;
    fm_engine_close(engine);
    return 0;
}

static void failures_leave_null(void **state)
{
    (void)state;
    fm_options *o = NULL;
    fm_engine  *e = (fm_engine *)&o;
    fm_grammar *g = (fm_grammar *)&o;
    assert_int_equal(fm_options_create(&o), FM_OK);
    assert_int_equal(fm_engine_open(&e, o), FM_E_ARG);
    assert_null(e);
    assert_non_null(strstr(fm_why(), "model-path"));
    assert_int_equal(fm_options_set(o, "model-path", "/nowhere"), FM_OK);
    e = (fm_engine *)&o;
    assert_int_not_equal(fm_engine_open(&e, o), FM_OK);
    assert_null(e);
    assert_int_equal(fm_engine_grammar(&g, engine, FM_GRAMMAR_REGEX, "(", 1), FM_E_FORMAT);
    assert_null(g);
    fm_options_destroy(o);
}

static void null_arguments_are_named(void **state)
{
    (void)state;
    fm_options    *o  = NULL;
    fm_grammar    *g  = NULL;
    fm_engine     *e  = NULL;
    fm_prompt      p  = {.text = "x", .text_len = 1, .sampling = fm_sampling_default()};
    fm_event       ev = {0};
    fm_message     m  = {"user", "x"};
    fm_model_facts f;
    size_t         n  = 0;
    int32_t        id = 0;
    assert_int_equal(fm_options_create(NULL), FM_E_ARG);
    assert_int_equal(fm_options_create(&o), FM_OK);
    assert_int_equal(fm_options_set(NULL, "seed", "1"), FM_E_ARG);
    assert_int_equal(fm_options_set(o, NULL, "1"), FM_E_ARG);
    assert_int_equal(fm_options_set(o, "model-path", NULL), FM_E_ARG);
    assert_int_equal(fm_engine_open(NULL, o), FM_E_ARG);
    assert_int_equal(fm_engine_open(&e, NULL), FM_E_ARG);
    fm_options_destroy(o);
    fm_options_destroy(NULL);
    fm_engine_close(NULL);
    assert_int_equal(fm_engine_submit(NULL, &p, NULL), FM_E_ARG);
    assert_int_equal(fm_engine_submit(engine, NULL, NULL), FM_E_ARG);
    assert_int_equal(fm_engine_step(NULL), FM_E_ARG);
    assert_int_equal(fm_engine_follow(NULL), FM_E_ARG);
    assert_int_equal(fm_engine_busy(NULL), 0);
    assert_int_equal(fm_engine_is_leader(NULL), 0);
    assert_int_equal(fm_engine_poll(NULL, &ev), 0);
    assert_int_equal(fm_engine_poll(engine, NULL), 0);
    fm_engine_cancel(NULL, 1);
    assert_int_equal(fm_engine_grammar(NULL, engine, FM_GRAMMAR_REGEX, "a", 1), FM_E_ARG);
    assert_int_equal(fm_engine_grammar(&g, NULL, FM_GRAMMAR_REGEX, "a", 1), FM_E_ARG);
    assert_int_equal(fm_engine_grammar(&g, engine, FM_GRAMMAR_REGEX, NULL, 1), FM_E_ARG);
    assert_int_equal(fm_engine_grammar(&g, engine, (fm_grammar_kind)9, "a", 1), FM_E_ARG);
    fm_grammar_retain(NULL);
    fm_grammar_release(NULL);
    assert_int_equal(fm_engine_facts(NULL, &f), FM_E_ARG);
    assert_int_equal(fm_engine_facts(engine, NULL), FM_E_ARG);
    assert_int_equal(fm_engine_tokenize(NULL, "x", 1, 0, &id, 1, &n), FM_E_ARG);
    assert_int_equal(fm_engine_tokenize(engine, NULL, 1, 0, &id, 1, &n), FM_E_ARG);
    assert_int_equal(fm_engine_tokenize(engine, "x", 1, 0, &id, 1, NULL), FM_E_ARG);
    assert_int_equal(fm_engine_detokenize(engine, NULL, 1, 0, NULL, 0, &n), FM_E_ARG);
    assert_int_equal(fm_engine_detokenize(NULL, &id, 1, 0, NULL, 0, &n), FM_E_ARG);
    assert_int_equal(fm_engine_chat_prompt(NULL, &m, 1, 0, NULL, 0, &n, NULL), FM_E_ARG);
    assert_int_equal(fm_engine_chat_prompt(engine, NULL, 1, 0, NULL, 0, &n, NULL), FM_E_ARG);
    assert_int_equal(fm_engine_chat_prompt(engine, &m, 0, 0, NULL, 0, &n, NULL), FM_E_ARG);
}

static void facts_and_version(void **state)
{
    (void)state;
    fm_model_facts f;
    assert_string_equal(fm_version(), FM_VERSION);
    assert_int_equal(fm_engine_facts(engine, &f), FM_OK);
    assert_int_equal(f.has_tokenizer, 1);
    assert_non_null(strstr(f.architecture, "Deepseek"));
    assert_true(f.vocab > 0 && f.n_layer > 0 && f.context > 0 && f.max_running > 0);
    assert_true(f.kv_tokens > 0 && f.kv_tokens <= 4096);
    assert_true(f.weight_bytes > 1 << 20);
    assert_true(f.chat_style[0] != 0 && f.eos >= 0);
}

static void text_becomes_tokens_and_back(void **state)
{
    (void)state;
    static const char text[] = "Hello, w\xc3\xb6rld! 12 + 30 = 42";
    int32_t           id[64];
    char              back[128];
    size_t            n = 0, n_back = 0, n_bos = 0;
    assert_int_equal(fm_engine_tokenize(engine, text, strlen(text), 0, NULL, 0, &n), FM_OK);
    assert_true(n > 1 && n < 64);
    assert_int_equal(fm_engine_tokenize(engine, text, strlen(text), 0, id, n - 1, &n), FM_E_FULL);
    assert_int_equal(fm_engine_tokenize(engine, text, strlen(text), 0, id, 64, &n), FM_OK);
    assert_int_equal(fm_engine_detokenize(engine, id, n, 0, back, sizeof back, &n_back), FM_OK);
    assert_int_equal(n_back, strlen(text));
    assert_memory_equal(back, text, n_back);
    assert_int_equal(fm_engine_detokenize(engine, id, n, 0, back, 3, &n_back), FM_E_FULL);
    assert_int_equal(
        fm_engine_tokenize(engine, text, strlen(text), FM_TOKENIZE_BOS, NULL, 0, &n_bos), FM_OK);
    assert_true(n_bos == n || n_bos == n + 1);
    assert_int_equal(fm_engine_tokenize(engine, "\xff", 1, 0, id, 64, &n), FM_E_FORMAT);
    assert_int_equal(fm_engine_detokenize(engine, NULL, 0, 0, back, sizeof back, &n_back), FM_OK);
    assert_int_equal(n_back, 0);
}

static void a_conversation_becomes_a_prompt(void **state)
{
    (void)state;
    static const fm_message talk[] = {
        {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello"}, {"user", "Name?"}};
    static const fm_message odd[] = {{"nobody", "x"}};
    char                    text[1024];
    size_t                  n           = 0;
    int                     is_thinking = -1;
    assert_int_equal(
        fm_engine_chat_prompt(engine, talk, 4, 0, text, sizeof text - 1, &n, &is_thinking), FM_OK);
    text[n] = 0;
    assert_non_null(strstr(text, "Be brief."));
    assert_non_null(strstr(text, "Name?"));
    assert_true(strstr(text, "Hello") < strstr(text, "Name?"));
    assert_true(is_thinking == 0 || is_thinking == 1);
    assert_int_equal(fm_engine_chat_prompt(engine, odd, 1, 0, text, sizeof text, &n, NULL),
                     FM_E_ARG);
}

static void answers_follow_a_grammar(void **state)
{
    (void)state;
    static const char ebnf[] = "root ::= (\"a\" | \"b\"){5}";
    fm_grammar       *g      = NULL;
    fm_prompt         p      = {.text = "x", .text_len = 1, .sampling = fm_sampling_default()};
    fm_event          ev;
    char              text[64] = "";
    assert_int_equal(fm_engine_grammar(&g, engine, FM_GRAMMAR_EBNF, ebnf, strlen(ebnf)), FM_OK);
    p.grammar = g;
    assert_int_equal(fm_engine_submit(engine, &p, NULL), FM_OK);
    fm_grammar_release(g);
    while (fm_engine_busy(engine)) {
        assert_int_equal(fm_engine_step(engine), FM_OK);
        while (fm_engine_poll(engine, &ev)) strncat(text, ev.text, ev.text_len);
    }
    assert_int_equal(strlen(text), 5);
    assert_int_equal(strspn(text, "ab"), 5);
}

static void loading_was_reported(void **state)
{
    (void)state;
    assert_true(n_progress > 0);
    assert_true(last_progress == 1);
}

typedef struct {
    int  level, n;
    char room[16], line[64];
} heard;

static void on_log(void *ctx, int level, const char *room, const char *line)
{
    heard *h = ctx;
    h->level = level;
    h->n++;
    strncpy(h->room, room, sizeof h->room - 1);
    strncpy(h->line, line, sizeof h->line - 1);
}

static void log_lines_go_to_the_program(void **state)
{
    (void)state;
    heard h = {0};
    fm_on_log(on_log, &h);
    FM_WARN("test", "x=%d", 5);
    FM_DEBUG_LOG("test", "too quiet");
    fm_on_log(NULL, NULL);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.level, 1);
    assert_string_equal(h.room, "test");
    assert_string_equal(h.line, "x=5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_leave_null),
        cmocka_unit_test(null_arguments_are_named),
        cmocka_unit_test(facts_and_version),
        cmocka_unit_test(text_becomes_tokens_and_back),
        cmocka_unit_test(a_conversation_becomes_a_prompt),
        cmocka_unit_test(answers_follow_a_grammar),
        cmocka_unit_test(loading_was_reported),
        cmocka_unit_test(log_lines_go_to_the_program),
    };
    return cmocka_run_group_tests(tests, open_tiny, close_tiny);
}
