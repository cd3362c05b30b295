/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of every dialect as asks: what is read, what is refused, and that
 * no JSON whatever does harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/serve/read/ask.h"
#include "llm/serve/loop/workers.h"

static fm_tokenizer *tokenizer;
static fm__facts     facts;
static fm__reader    reader = {.facts = &facts};

static int open_tokenizer(void **state)
{
    (void)state;
    if (fm_tokenizer_open(&tokenizer, FM_TEST_DATA "/tokenizer") != FM_OK) fail_msg("%s", fm_why());
    facts = (fm__facts){.tokenizer  = tokenizer,
                        .chat_style = FM_CHAT_R1,
                        .reasoning  = FM_REASONING_OPEN,
                        .has_tools  = 1,
                        .tool_style = FM_TOOLS_V3,
                        .defaults   = fm_sampling_default(),
                        .vocab      = 4128,
                        .context    = 1000,
                        .model      = "served"};
    const int32_t eos = 1;
    if (fm_grammars_create(&facts.grammars, tokenizer, facts.vocab, &eos, 1) != FM_OK) fail_msg("%s", fm_why());
    return fm_tokenizer_scratch_create(&reader.scratch, tokenizer);
}

static int close_tokenizer(void **state)
{
    (void)state;
    fm_grammars_destroy(facts.grammars);
    fm_tokenizer_scratch_destroy(reader.scratch);
    fm_tokenizer_close(tokenizer);
    return 0;
}

static fm_status read_text(fm__read_fn *read, const char *text, fm__ask **out)
{
    json_t *v = NULL;
    assert_int_equal(fm_json_parse(&v, text, strlen(text), "test"), FM_OK);
    *out               = fm__ask_create();
    const fm_status rc = read(*out, v, &reader);
    json_decref(v);
    return rc;
}

static fm__ask *good(fm__read_fn *read, const char *text)
{
    fm__ask *a = NULL;
    if (read_text(read, text, &a) != FM_OK) fail_msg("%s: %s", text, fm_why());
    return a;
}

static void bad(fm__read_fn *read, const char *text, const char *word)
{
    fm__ask *a = NULL;
    if (read_text(read, text, &a) == FM_OK) fail_msg("accepted: %s", text);
    if (!strstr(fm_why(), word)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), word);
    fm__ask_release(a);
}

#define HI "\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]"
/* A conversation that ends with a tool's result; more may follow. */
#define RESULT                                                                                     \
    "\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", "         \
    "\"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\"}}]}, "                        \
    "{\"role\": \"tool\", \"content\": \"r\", \"tool_call_id\": \"1\"}"
#define PREFIX(text) "{\"role\": \"assistant\", \"content\": \"" text "\", \"prefix\": true}"
#define TOOLS "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]"

static void test_chat(void **state)
{
    (void)state;
    fm__ask *a =
        good(fm__read_chat,
             "{" HI ", \"temperature\": 0.5, \"top_p\": 0.9, \"top_k\": 7, \"min_p\": 0.1, "
                    "\"seed\": -3, \"stop\": "
             "[\"x\", \"\"], \"max_tokens\": 5, \"max_completion_tokens\": 6, \"n\": 3, "
             "\"stream\": true, "
             "\"logit_bias\": {\"7\": -2}, \"priority\": 4, \"user\": {}, \"model\": \"mine\"}");
    const fm__params *p = fm__ask_params(a, 0);
    assert_true(p->sampling.temperature == 0.5f && p->sampling.top_p == 0.9f &&
                p->sampling.min_p == 0.1f);
    assert_int_equal(p->sampling.top_k, 7);
    assert_true(p->sampling.has_seed && p->sampling.seed == (uint64_t)-3);
    assert_int_equal(p->n_stop, 1); /* an empty one never matches */
    assert_int_equal(p->sampling.max_new_tokens, 6);
    assert_true(p->sampling.n_bias == 1 && p->sampling.bias[0].id == 7 &&
                p->sampling.bias[0].bias == -2);
    assert_true(a->n == 3 && a->stream && a->priority == 4 && a->reasoning == FM_REASONING_OPEN &&
                !a->tools);
    assert_string_equal(a->model, "mine");
    fm__ask_release(a);

    a = good(fm__read_chat,
             "{" HI
             ", \"temperature\": null, \"stop\": null, \"stream_options\": null, \"n\": null}");
    assert_int_equal(fm__ask_params(a, 0)->sampling.max_new_tokens, 1000); /* up to the context */
    assert_true(fm__ask_params(a, 0)->sampling.temperature == 1);
    fm__ask_release(a);
}

static void test_reasoning_follows_the_template(void **state)
{
    (void)state;
    static const struct {
        const char       *body;
        fm_chat_style     style;
        fm_reasoning_mode mode;
    } in[] = {
        {"{" HI "}", FM_CHAT_R1, FM_REASONING_OPEN},
        {"{" HI ", \"separate_reasoning\": false}", FM_CHAT_R1, FM_REASONING_OFF},
        {"{" HI "}", FM_CHAT_V31, FM_REASONING_OFF},
        {"{" HI ", \"chat_template_kwargs\": {\"thinking\": true}}", FM_CHAT_V31,
         FM_REASONING_OPEN},
        {"{" HI ", \"chat_template_kwargs\": {\"thinking\": false}}", FM_CHAT_V31,
         FM_REASONING_OFF},
        {"{" HI ", \"reasoning_effort\": \"high\"}", FM_CHAT_V31, FM_REASONING_OPEN},
        {"{" HI ", \"reasoning_effort\": \"none\"}", FM_CHAT_V31, FM_REASONING_OFF},
        {"{" HI ", " TOOLS ", \"tool_choice\": \"required\"}", FM_CHAT_R1, FM_REASONING_OFF},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"a</think>b\", \"prefix\": "
         "true}]}",
         FM_CHAT_R1, FM_REASONING_OFF},
        {"{" HI ", \"reasoning_effort\": \"none\"}", FM_CHAT_R1, FM_REASONING_OPEN},
        {"{" RESULT "]}", FM_CHAT_R1, FM_REASONING_IF_TAGGED},
        {"{" RESULT "], \"chat_template_kwargs\": {\"thinking\": false}}", FM_CHAT_R1,
         FM_REASONING_OFF},
        {"{" RESULT ", " PREFIX("a") "]}", FM_CHAT_R1, FM_REASONING_IF_TAGGED},
        {"{" RESULT ", " PREFIX("<think>a") "]}", FM_CHAT_R1, FM_REASONING_OPEN},
        {"{\"messages\": [" PREFIX("a</think>b") "], \"reasoning_effort\": \"none\"}",
         FM_CHAT_R1, FM_REASONING_OFF},
        {"{" RESULT ", " PREFIX("a") "], \"reasoning_effort\": \"high\"}", FM_CHAT_V31,
         FM_REASONING_IF_TAGGED},
        {"{\"messages\": [{\"role\": \"system\", \"content\": \"be\"}], "
         "\"reasoning_effort\": \"high\"}",
         FM_CHAT_V31, FM_REASONING_IF_TAGGED},
    };
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        facts.chat_style         = in[i].style;
        facts.reasons_on_request = in[i].style == FM_CHAT_V31;
        fm__ask *a               = good(fm__read_chat, in[i].body);
        if (a->reasoning != in[i].mode) fail_msg("%s: %d", in[i].body, (int)a->reasoning);
        fm__ask_release(a);
    }
    facts.chat_style         = FM_CHAT_R1;
    facts.reasons_on_request = 0;
}

static void test_tools(void **state)
{
    (void)state;
    fm__ask *a = good(fm__read_chat, "{" HI ", " TOOLS "}");
    assert_true(a->tools && a->n_tool == 1 && !a->forced.len && a->params->keep_special);
    fm__ask_release(a);
    a = good(fm__read_chat, "{" HI ", " TOOLS ", \"tool_choice\": \"none\"}");
    assert_true(!a->tools && !a->params->keep_special);
    fm__ask_release(a);
    a = good(fm__read_chat,
             "{" HI ", " TOOLS
             ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"f\"}}}");
    assert_non_null(strstr(a->forced.text, "function<｜tool▁sep｜>f\n```json\n"));
    const size_t n = strlen(a->prompt[0].text.text);
    assert_string_equal(a->prompt[0].text.text + n - a->forced.len, a->forced.text);
    fm__ask_release(a);
    bad(fm__read_chat, "{" HI ", " TOOLS ", \"tool_choice\": \"maybe\"}", "tool_choice");
    bad(fm__read_chat, "{" HI ", \"tools\": [{\"function\": {\"name\": \"get weather\"}}]}",
        "tools[0].function.name: \"get weather\"");
    bad(fm__read_chat,
        "{" HI ", " TOOLS
        ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"g\"}}}",
        "\"g\"");
}

/* A forced call follows the reasoning: it closes what is open and nothing else. */
static void test_forced_call_closes_reasoning(void **state)
{
    (void)state;
    static const struct {
        const char *messages, *before; /* the opening of the call */
    } in[] = {
        {HI, "<think>\n\n</think>\n\n"},
        {RESULT "]", "<｜tool▁outputs▁end｜>"},
        {"\"messages\": [" PREFIX("a</think>b") "]", "a</think>b"},
        {RESULT ", " PREFIX("<think>a") "]", "<think>a\n</think>\n\n"},
    };
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        fm_str body = {0}, end = {0};
        fm_str_printf(&body, "{%s, " TOOLS ", \"tool_choice\": \"required\"}", in[i].messages);
        fm__ask *a = good(fm__read_chat, body.text);
        fm_str_printf(&end, "%s%s", in[i].before, a->forced.text);
        assert_true(a->prompt[0].text.len > end.len);
        assert_string_equal(a->prompt[0].text.text + a->prompt[0].text.len - end.len, end.text);
        assert_int_equal(a->reasoning, FM_REASONING_OFF);
        fm__ask_release(a);
        fm_str_fini(&body);
        fm_str_fini(&end);
    }
}

/* Anthropic's words give the same prompt as OpenAI's. */
static void test_messages(void **state)
{
    (void)state;
    static const struct {
        const char *anthropic, *openai;
    } pair[] = {
        {"{\"max_tokens\": 5, \"system\": [{\"type\": \"text\", \"text\": \"be\"}], " HI "}",
         "{\"max_tokens\": 5, \"messages\": [{\"role\": \"system\", \"content\": \"be\"}, "
         "{\"role\": \"user\", \"content\": \"hi\"}]}"},
        {"{\"max_tokens\": 5, \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": "
         "\"assistant\", \"content\": "
         "[{\"type\": \"tool_use\", \"id\": \"1\", \"name\": \"f\", \"input\": {\"a\": 1}}]}, "
         "{\"role\": \"user\", \"content\": "
         "[{\"type\": \"tool_result\", \"tool_use_id\": \"1\", \"content\": \"r\"}]}]}",
         "{\"max_tokens\": 5, \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": "
         "\"assistant\", \"content\": \"\", "
         "\"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\": "
         "1}}}]}, {\"role\": \"tool\", "
         "\"content\": \"r\", \"tool_call_id\": \"1\"}]}"},
        {"{\"max_tokens\": 5, " HI ", \"tools\": [{\"name\": \"f\", \"input_schema\": {\"type\": "
                                   "\"object\"}}], \"tool_choice\": {\"type\": \"any\"}}",
         "{\"max_tokens\": 5, " HI ", \"tools\": [{\"type\": \"function\", \"function\": "
                                   "{\"name\": \"f\", \"parameters\": {\"type\": "
         "\"object\"}}}], \"tool_choice\": \"required\"}"},
    };
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
        fm__ask *a = good(fm__read_messages, pair[i].anthropic),
                *b = good(fm__read_chat, pair[i].openai);
        assert_string_equal(a->prompt[0].text.text, b->prompt[0].text.text);
        fm__ask_release(a);
        fm__ask_release(b);
    }
    bad(fm__read_messages, "{\"messages\": 3}", "messages");
    bad(fm__read_messages,
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]}", "image");
}

static void test_completion_and_generate(void **state)
{
    (void)state;
    fm__ask *a =
        good(fm__read_completion, "{\"prompt\": [[1, 2, 3], [4]], \"n\": 2, \"echo\": true}");
    assert_true(a->n_prompt == 2 && a->n == 2 && a->echo && a->prompt[0].token.n == 3);
    assert_int_equal(fm__ask_params(a, 1)->sampling.max_new_tokens, 16);
    fm__ask_release(a);
    a = good(fm__read_generate, "{\"text\": [\"a\", \"b\"], \"sampling_params\": "
                                "[{\"max_new_tokens\": 3}, {}], \"rid\": [\"x\", \"y\"]}");
    assert_true(a->n_params == 2 && a->is_list &&
                fm__ask_params(a, 1)->sampling.max_new_tokens == 128);
    assert_string_equal(a->prompt[1].rid, "y");
    fm__ask_release(a);
    a = good(fm__read_generate,
             "{\"text\": [\"a\", \"b\", \"c\"], \"return_logprob\": [false, true, null], "
             "\"top_logprobs_num\": [1, 2, 3], \"logprob_start_len\": [0, 1, -1]}");
    for (int i = 0; i < 3; i++) {
        const fm_sampling *s = &fm__ask_params(a, i)->sampling;
        assert_true(s->logprobs == (i == 1) && s->top_logprobs == (i == 1 ? 2 : 0));
        assert_int_equal(a->prompt[i].logprob_from, i == 1 ? 1 : -1);
        assert_int_equal(s->max_new_tokens, 128);
    }
    fm__ask_release(a);
#define TWO "{\"text\": [\"a\", \"b\"], "
    bad(fm__read_generate, TWO "\"return_logprob\": [true]}", "return_logprob has 1 entries for 2");
    bad(fm__read_generate, TWO "\"return_logprob\": [true, 1]}", "return_logprob");
    bad(fm__read_generate, TWO "\"return_logprob\": 1}", "return_logprob");
    bad(fm__read_generate, TWO "\"top_logprobs_num\": [1, 2, 3]}", "top_logprobs_num has 3");
    bad(fm__read_generate, TWO "\"top_logprobs_num\": [1, \"2\"]}", "top_logprobs_num");
    bad(fm__read_generate, TWO "\"top_logprobs_num\": [1, 21]}", "top_logprobs_num");
    bad(fm__read_generate, TWO "\"logprob_start_len\": [0]}", "logprob_start_len has 1");
    bad(fm__read_generate, TWO "\"rid\": [\"x\"]}", "rid has 1");
    bad(fm__read_generate, TWO "\"rid\": [\"x\", 5]}", "rid[1]");
    bad(fm__read_completion, "{}", "prompt is missing");
    bad(fm__read_completion, "{\"prompt\": []}", "empty");
    bad(fm__read_completion, "{\"prompt\": \"a\", \"suffix\": \"b\"}", "suffix");
    bad(fm__read_completion, "{\"prompt\": [1, -2]}", "prompt[1]");
    bad(fm__read_completion, "{\"prompt\": \"a\", \"max_tokens\": 1000}", "context");
    bad(fm__read_completion, "{\"prompt\": \"a\", \"max_tokens\": 3, \"min_tokens\": 4}",
        "min_tokens is 4");
    bad(fm__read_generate, "{\"text\": [\"a\"], \"sampling_params\": []}", "sampling_params");
    bad(fm__read_generate, "{\"text\": \"a\", \"sampling_params\": {\"max_tokens\": 5}}",
        "sampling_params.max_tokens: there is no such parameter");
    bad(fm__read_generate, "{\"text\": \"a\", \"sampling_params\": {\"temprature\": 0}}",
        "is temperature meant");
    bad(fm__read_generate, "{\"text\": [\"a\", 5]}", "text");
    bad(fm__read_generate, "{\"input_ids\": [[1], 5]}", "input_ids");
}

static void test_wrong_kinds(void **state)
{
    (void)state;
    bad(fm__read_chat, "{" HI ", \"chat_template_kwargs\": 5}", "chat_template_kwargs: expected");
    bad(fm__read_chat, "{" HI ", \"reasoning_effort\": 5}", "reasoning_effort: expected a string");
    bad(fm__read_messages, "{" HI ", \"thinking\": true}", "thinking: expected an object");
    fm__ask_release(good(fm__read_chat, "{" HI ", \"chat_template_kwargs\": null, "
                                        "\"reasoning_effort\": null}"));

    json_t *body  = json_pack("{s:[[i],i]}", "tokens", 5, 7);
    fm_str  reply = {0};
    assert_int_equal(fm__detokenize(&reply, body, &reader), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "tokens[1]: expected a list"));
    fm_str_fini(&reply);
    json_decref(body);
}

/* A value of any kind where another is expected. */
static json_t *any_value(uint64_t seed, uint64_t i, int depth)
{
    static const char *const word[] = {
        "",   "user", "assistant", "tool", "text", "function", "f",           "required",
        "hi", "a\nb", "none",      "auto", "any",  "tool_use", "tool_result", "system"};
    const uint32_t r = fm_rng_u32(seed, i);
    switch (r % (depth > 3 ? 6 : 8)) {
    case 0: return json_null();
    case 1: return json_boolean(r >> 8 & 1);
    case 2: return json_integer((int32_t)fm_rng_u32(seed, i + 1));
    case 3: return json_integer(r >> 8 & 15);
    case 4: return json_real((double)(int32_t)r / 1000);
    case 5: return json_string(word[(r >> 8) % (sizeof word / sizeof word[0])]);
    case 6: {
        json_t *list = json_array();
        for (uint32_t k = 0; k < (r >> 8) % 4; k++)
            json_array_append_new(list, any_value(seed, i * 7 + k + 1, depth + 1));
        return list;
    }
    default: {
        static const char *const key[] = {
            "role",          "content",    "type",        "text",  "function",   "name",
            "arguments",     "parameters", "id",          "input", "tool_calls", "thinking",
            "include_usage", "7",          "tool_use_id", "prefix"};
        json_t *o = json_object();
        for (uint32_t k = 0; k < (r >> 8) % 6; k++)
            json_object_set_new(o, key[fm_rng_u32(seed, i * 5 + k) % 16],
                                any_value(seed, i * 11 + k + 2, depth + 1));
        return o;
    }
    }
}

static void test_any_json(void **state)
{
    (void)state;
    static const char *const  field[] = {"messages",
                                         "prompt",
                                         "text",
                                         "input_ids",
                                         "sampling_params",
                                         "tools",
                                         "tool_choice",
                                         "stop",
                                         "logit_bias",
                                         "n",
                                         "stream",
                                         "stream_options",
                                         "temperature",
                                         "top_p",
                                         "top_k",
                                         "max_tokens",
                                         "max_new_tokens",
                                         "seed",
                                         "rid",
                                         "logprobs",
                                         "top_logprobs",
                                         "chat_template_kwargs",
                                         "suffix",
                                         "echo",
                                         "system",
                                         "stop_sequences",
                                         "thinking",
                                         "return_logprob",
                                         "model",
                                         "tokens"};
    static fm__read_fn *const read[]  = {fm__read_chat, fm__read_completion, fm__read_generate,
                                         fm__read_messages};
    static fm__text_fn *const text[]  = {fm__tokenize, fm__detokenize, fm__count_tokens,
                                         fm__parse_function_call};
    int                       n_good  = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        json_t *body = json_object();
        if (seed % 3)
            json_object_set_new(body, "messages",
                                json_pack("[{s:s,s:s}]", "role", "user", "content", "hi"));
        for (uint64_t i = 0, n = fm_rng_u32(seed, 1) % 6; i < n; i++)
            json_object_set_new(body, field[fm_rng_u32(seed, 100 + i) % 30],
                                any_value(seed, 1000 + i * 97, 0));
        if (seed % 5) {
            fm__ask *a = fm__ask_create();
            n_good += read[seed % 4](a, body, &reader) == FM_OK;
            fm__ask_release(a);
        } else {
            fm_str reply = {0};
            n_good += text[seed / 5 % 4](&reply, body, &reader) == FM_OK;
            fm_str_fini(&reply);
        }
        json_decref(body);
    }
    assert_in_range(n_good, 200, 19000); /* both kinds were met */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat),
        cmocka_unit_test(test_reasoning_follows_the_template),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_forced_call_closes_reasoning),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_completion_and_generate),
        cmocka_unit_test(test_wrong_kinds),
        cmocka_unit_test(test_any_json),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
