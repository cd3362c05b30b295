/* SPDX-License-Identifier: Apache-2.0 */
/* Speculation is seen nowhere but in the time it takes: requests of every kind (greedy and drawn,
 * penalties, log-probabilities, grammars, stop strings, ids and lengths, several answers) get the
 * same events, byte for byte, with fathom-tiny and drafts of every kind; so do follow-ups
 * whose prompts end in the middle of what was drafted, out of the radix cache.
 *
 * With FM_ISA one text of all is asked, at a level of instructions below the machine's own. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "llm/engine.h"
#include "llm/engine/engine_internal.h"
#include "level.h"

enum { N_ANSWER = 2 };

typedef enum { GREEDY, DRAWN, PENALISED, SCHEMA, REGEX, STOPPED, BY_ID, SHORT, LIKELY, SEVERAL, N_KIND } kind;

static const char *const text[] = {
    "What is 12 plus 30?",
    "Count the letters r in strawberry.",
    "Sort these numbers: 5, 3, 9, 1.",
    "Tell me a story about a cat.",
    "Spell the word banana.",
};
enum { N_TEXT = sizeof text / sizeof *text, N_ASKED = N_TEXT * N_KIND };

static int n_text = N_TEXT;

typedef struct {
    fm_engine  *e;
    fm_grammar *schema, *regex;
    fm_str      said[N_ASKED][N_ANSWER];
} session;

static const char schema[] = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":12},"
                             "\"age\":{\"type\":\"integer\"},\"tags\":{\"type\":\"array\",\"items\":{\"enum\":[\"red\","
                             "\"green\"]},\"maxItems\":3}},\"required\":[\"name\",\"age\",\"tags\"],"
                             "\"additionalProperties\":false}";
static const char regex[]  = "([a-z]+ ){2,6}(yes|no), [0-9]{3}";

static void open_session(session *s, const char *const *set)
{
    fm_options *o = NULL;
    memset(s, 0, sizeof *s);
    assert_int_equal(fm_options_create(&o), FM_OK);
    assert_int_equal(fm_options_set(o, "model-path", FM_TEST_TINY), FM_OK);
    assert_int_equal(fm_options_set(o, "max-running-requests", "12"), FM_OK);
    assert_int_equal(fm_options_set(o, "context-length", "256"), FM_OK);
    assert_int_equal(fm_options_set(o, "max-total-tokens", "3072"), FM_OK);
    assert_int_equal(fm_options_set(o, "deterministic", "1"), FM_OK);
    for (; *set; set += 2)
        if (fm_options_set(o, set[0], set[1]) != FM_OK) fail_msg("%s", fm_why());
    if (fm_engine_open(&s->e, o) != FM_OK) fail_msg("%s", fm_why());
    fm_options_destroy(o);
    if (fm_engine_grammar(&s->schema, s->e, FM_GRAMMAR_JSON_SCHEMA, schema, strlen(schema)) != FM_OK ||
        fm_engine_grammar(&s->regex, s->e, FM_GRAMMAR_REGEX, regex, strlen(regex)) != FM_OK)
        fail_msg("%s", fm_why());
}

static void close_session(session *s)
{
    for (int i = 0; i < N_ASKED; i++)
        for (int k = 0; k < N_ANSWER; k++) fm_str_fini(&s->said[i][k]);
    fm_grammar_release(s->schema);
    fm_grammar_release(s->regex);
    fm_engine_close(s->e);
}

static void specialise(const session *s, fm_prompt *p, kind k)
{
    static const char *const stop[] = {"er", " is", "an", "et"};
    fm_sampling             *how    = &p->sampling;
    if (k != DRAWN && k != REGEX && k != SEVERAL) how->temperature = 0;
    switch (k) {
    case PENALISED: how->frequency_penalty = 0.4f, how->presence_penalty = 0.2f; break;
    case SCHEMA: p->grammar = s->schema; break;
    case REGEX: p->grammar = s->regex; break;
    case STOPPED: p->stop = stop, p->n_stop = 4; break;
    case BY_ID: how->stop_id[how->n_stop_id++] = 20, how->min_new_tokens = 9; break;
    case SHORT: how->max_new_tokens = 6; break;
    case LIKELY: how->top_logprobs = 3, how->logprobs = 1; break;
    case SEVERAL: p->n = N_ANSWER; break;
    case GREEDY:
    case DRAWN:
    case N_KIND: break;
    }
}

static void submit(const session *s, int i)
{
    char full[200];
    snprintf(full, sizeof full, "<｜begin▁of▁sentence｜><｜User｜>%s<｜Assistant｜><think>\n",
             text[i / N_KIND]);
    fm_prompt p               = {.text = full, .text_len = strlen(full), .sampling = fm_sampling_default()};
    p.sampling.max_new_tokens = 40;
    p.sampling.has_seed       = 1;
    p.sampling.seed           = 7 + (uint64_t)i;
    specialise(s, &p, (kind)(i % N_KIND));
    if (fm_engine_submit(s->e, &p, NULL) != FM_OK) fail_msg("%s", fm_why());
}

static void write_down(session *s, const fm_event *ev)
{
    fm_str *to = &s->said[(ev->id - 1) % (uint64_t)(n_text * N_KIND)][ev->index];
    fm_str_printf(to, "[%d %a", ev->token, (double)ev->logprob);
    for (int i = 0; i < ev->n_top; i++)
        fm_str_printf(to, " %d:%a", ev->top[i].id, (double)ev->top[i].logprob);
    fm_str_printf(to, "] \"%.*s\" %d", (int)ev->text_len, ev->text, ev->n_output);
    if (ev->finish != FM_FINISH_NONE)
        fm_str_printf(to, " %s %d %d", fm_finish_name(ev->finish), ev->matched_id, ev->matched_stop);
    fm_str_printf(to, "\n");
}

static void answer_all(session *s)
{
    fm_event ev;
    for (int i = 0; i < n_text * N_KIND || fm_engine_busy(s->e);) {
        if (i < n_text * N_KIND) submit(s, i++);
        if (fm_engine_step(s->e) != FM_OK) fail_msg("%s", fm_why());
        while (fm_engine_poll(s->e, &ev)) write_down(s, &ev);
    }
}

static void compare(const session *got, const session *want, const char *name)
{
    for (int i = 0; i < n_text * N_KIND; i++)
        for (int k = 0; k < (i % N_KIND == SEVERAL ? N_ANSWER : 1); k++)
            if (strcmp(got->said[i][k].text, want->said[i][k].text))
                fail_msg("%s: request %d of kind %d said\n%s\ninstead of\n%s", name, i, i % N_KIND,
                         got->said[i][k].text, want->said[i][k].text);
}

static const struct {
    const char *name;
    const char *set[11];
    double      at_least; /* accept length */
} ways[] = {
    {"MTP", {"speculative-algorithm", "NEXTN", "disable-speculative-adaptive", "1", NULL}, 1.5},
    {"seven links", {"speculative-algorithm", "EAGLE", "disable-speculative-adaptive", "1",
      "speculative-num-steps", "7", "page-size", "3", NULL}, 1.5},
    {"n-grams", {"speculative-algorithm", "NGRAM", "disable-speculative-adaptive", "1",
      "speculative-ngram-min-match-window-size", "1", NULL}, 1.02},
    {"both, crowded", {"speculative-algorithm", "NEXTN,NGRAM", "max-total-tokens", "320", "page-size",
      "4", "schedule-conservativeness", "0", "chunked-prefill-size", "9", NULL}, 1},
    {"as many as pay", {"speculative-algorithm", "auto", NULL}, 1},
};

static void drafts_are_not_seen(void **state)
{
    static session want, got;
    (void)state;
    open_session(&want, (const char *const[]){NULL});
    answer_all(&want);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        open_session(&got, ways[k].set);
        answer_all(&got);
        compare(&got, &want, ways[k].name);
        const fm_sched_stats n = fm_engine_get_info(got.e).sched;
        if (fm_sched_accept_length(n.n_decode_row, n.n_accepted) < ways[k].at_least)
            fail_msg("%s: accept length %.2f", ways[k].name,
                     fm_sched_accept_length(n.n_decode_row, n.n_accepted));
        close_session(&got);
    }
    close_session(&want);
}

/* Opens a session with MTP drafts and asks everything `rounds` times; the accept length of all, and
 * the prompt rows of the last round. */
static double accept_length(const char *option, int rounds, int64_t *n_prompt_row)
{
    static session s;
    open_session(&s, (const char *const[]){"speculative-algorithm", "NEXTN", "disable-speculative-adaptive", "1",
                                           "page-size", "1", option, "1", NULL});
    for (int i = 0; i < rounds; i++) {
        *n_prompt_row = fm_engine_get_info(s.e).sched.n_prefill_row;
        answer_all(&s);
    }
    const fm_sched_stats n = fm_engine_get_info(s.e).sched;
    *n_prompt_row          = n.n_prefill_row - *n_prompt_row;
    close_session(&s);
    return fm_sched_accept_length(n.n_decode_row, n.n_accepted);
}

/* The second time all prompts are found in the radix cache, with what drafts need of them. */
static void cached_prompts_are_drafted_for_as_well(void **state)
{
    int64_t n_fresh, n_cached;
    (void)state;
    const double fresh  = accept_length("disable-radix-cache", 1, &n_fresh);
    const double cached = accept_length("deterministic", 2, &n_cached);
    assert_true(n_cached < n_fresh / 4);
    if (cached < fresh - 0.03) fail_msg("accept length %.3f behind cached prompts, %.3f without", cached, fresh);
}

/* Asks for text 1 while text 0 is being answered or, if not beside, alone; states of what decodes are
 * not kept until its prompt was read.  How many drafts were verified for it and accepted. */
static void drafts_of_one(int beside, int *n_draft, int *n_accepted)
{
    static session s;
    fm_event       ev;
    open_session(&s, (const char *const[]){"speculative-algorithm", "NEXTN", "disable-speculative-adaptive", "1",
                                           NULL});
    fm_sched *sched = s.e->micro[0].partition[0].sched;
    fm_sched_keep_states(sched, 0);
    if (beside) submit(&s, 0);
    for (int i = 0; i < 5; i++) assert_int_equal(fm_engine_step(s.e), FM_OK);
    submit(&s, N_KIND);
    assert_int_equal(fm_engine_step(s.e), FM_OK);
    fm_sched_keep_states(sched, 1);
    while (fm_engine_busy(s.e)) {
        assert_int_equal(fm_engine_step(s.e), FM_OK);
        while (fm_engine_poll(s.e, &ev))
            if (ev.id == 1 + (uint64_t)beside) *n_draft = ev.n_draft, *n_accepted = ev.n_accepted;
    }
    close_session(&s);
}

/* A pass fills the MTP layer's cache for its prompt rows alone while answers beside them rest. */
static void prompts_beside_resting_answers_are_drafted_for(void **state)
{
    int alone[2] = {0}, beside[2] = {0};
    (void)state;
    drafts_of_one(0, &alone[0], &alone[1]);
    drafts_of_one(1, &beside[0], &beside[1]);
    assert_true(alone[1] > 5);
    assert_int_equal(beside[0], alone[0]);
    assert_int_equal(beside[1], alone[1]);
}

/* --- follow-ups ------------------------------------------------------------ */

enum { MAX_IDS = 200, N_MORE = 6, N_NEW = 40 };

/* Ids of a text's prompt, and of the answer behind them. */
typedef struct {
    int32_t id[MAX_IDS];
    int     n;
} talk;

static void begin_talk(talk *t, const session *s, const char *question)
{
    fm_tokenizer_scratch *scratch = NULL;
    fm_ids                ids     = {0};
    const fm_tokenizer   *z       = fm_engine_tokenizer(s->e);
    char                  full[200];
    const int             n = snprintf(full, sizeof full,
                                       "<｜begin▁of▁sentence｜><｜User｜>%s<｜Assistant｜><think>\n", question);
    assert_int_equal(fm_tokenizer_scratch_create(&scratch, z), FM_OK);
    assert_int_equal(fm_encode(z, scratch, full, (size_t)n, 0, &ids), FM_OK);
    assert_true(ids.n + N_NEW < MAX_IDS);
    memcpy(t->id, ids.id, ids.n * sizeof *ids.id);
    t->n = (int)ids.n;
    fm_ids_fini(&ids);
    fm_tokenizer_scratch_destroy(scratch);
}

/* Generates behind t, writes down what came and how much of the prompt was cached. */
static int32_t answer(talk *t, const session *s, fm_str *said, uint64_t seed)
{
    fm_prompt p = {.token = t->id, .n_token = t->n, .sampling = fm_sampling_default()};
    fm_event  ev;
    int32_t   cached          = 0;
    p.sampling.max_new_tokens = N_NEW;
    p.sampling.ignore_eos     = 1;
    p.sampling.logprobs       = 1;
    p.sampling.has_seed       = 1;
    p.sampling.seed           = seed;
    if (seed % 2) p.sampling.temperature = 0;
    if (fm_engine_submit(s->e, &p, NULL) != FM_OK) fail_msg("%s", fm_why());
    while (fm_engine_busy(s->e)) {
        if (fm_engine_step(s->e) != FM_OK) fail_msg("%s", fm_why());
        while (fm_engine_poll(s->e, &ev)) {
            t->id[t->n++] = ev.token;
            fm_str_printf(said, "%d %a\n", ev.token, (double)ev.logprob);
            cached = ev.n_cached;
        }
    }
    fm_str_printf(said, "%d cached\n", cached);
    return cached;
}

/* The answer up to its token `cut`, then words of another text: the cached prefix ends there. */
static void cut_and_ask(const talk *first, const session *s, int n_prompt, int cut, fm_str *said)
{
    talk next = *first;
    next.n    = n_prompt + cut;
    for (int i = 0; i < N_MORE; i++) next.id[next.n++] = first->id[i];
    const int32_t cached = answer(&next, s, said, (uint64_t)cut);
    if (cached <= n_prompt)
        fail_msg("%d of %d tokens were cached: none of the answer's", (int)cached, n_prompt + cut);
}

static void follow_up(const char *const *set, fm_str *said, int64_t *n_accepted)
{
    static session s;
    open_session(&s, set);
    for (int i = 0; i < n_text && i < 2; i++) {
        talk first;
        begin_talk(&first, &s, text[i]);
        const int n_prompt = first.n;
        (void)answer(&first, &s, said, (uint64_t)i);
        for (int cut = 17; cut < N_NEW - 5; cut += 6) cut_and_ask(&first, &s, n_prompt, cut, said);
    }
    *n_accepted = fm_engine_get_info(s.e).sched.n_accepted;
    close_session(&s);
}

/* What was generated is shared, too, whether it was decoded or verified: pages of both kinds are
 * reused up to the same token and hold the same bits. */
static void follow_ups_reuse_drafted_text(void **state)
{
    static const char *const by[][2] = {{"NEXTN", "3"}, {"NEXTN", "7"}, {"NEXTN,NGRAM", "4"}};
    (void)state;
    for (const char *const *page = (const char *const[]){"1", "4", NULL}; *page; page++) {
        fm_str  want = {0};
        int64_t n_accepted;
        follow_up((const char *const[]){"deterministic", "0", "page-size", *page, NULL}, &want,
                  &n_accepted);
        for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
            fm_str got = {0};
            follow_up((const char *const[]){"deterministic", "0", "page-size", *page,
                                            "speculative-algorithm", by[k][0],
                                            "speculative-num-steps", by[k][1],
                                            "disable-speculative-adaptive", "1", NULL},
                      &got, &n_accepted);
            if (strcmp(got.text, want.text))
                fail_msg("%s, pages of %s: said\n%s\ninstead of\n%s", by[k][0], *page, got.text,
                         want.text);
            assert_true(n_accepted > 0);
            fm_str_fini(&got);
        }
        fm_str_fini(&want);
    }
}

int main(void)
{
    if (runs_in_vain("golden/drafts")) return SKIPPED;
    if (getenv("FM_ISA")) n_text = 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(drafts_are_not_seen),
                                       cmocka_unit_test(follow_ups_reuse_drafted_text),
                                       cmocka_unit_test(cached_prompts_are_drafted_for_as_well),
                                       cmocka_unit_test(prompts_beside_resting_answers_are_drafted_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
