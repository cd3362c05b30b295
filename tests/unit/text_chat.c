/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt of every chat layout, written out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "llm/text/chat.h"
#include "llm/text/tokenizer_internal.h"
#include "text_tiny.h"

#define BOS "<｜begin▁of▁sentence｜>"
#define EOS "<｜end▁of▁sentence｜>"
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void check(const fm_chat *chat, fm_chat_style style, const char *want)
{
    fm_str out = {0};
    if (fm_chat_render(chat, style, NULL, &out) != FM_OK) fail_msg("%s", fm_why());
    assert_string_equal(out.text, want);
    fm_str_fini(&out);
}

static const fm_chat_message talk[] = {
    {.role = "system", .content = "Be brief."},
    {.role = "user", .content = "Hi"},
    {.role = "assistant", .content = "<think>hm</think>Hello"},
    {.role = "developer", .content = "Be kind."},
    {.role = "user", .content = " 2+2? "},
};
static const fm_chat talk_chat = {.message = talk, .n_message = COUNT(talk), .add_generation = 1};

static const fm_chat_call calls[] = {
    {.name = "add", .arguments = "{\"a\": 1}", .id = "call_7"},
    {.name = "sub", .arguments = "{}", .id = "call_8"},
};
static const fm_chat_call more_calls[] = {{.name = "mul", .arguments = "[2]", .id = "call_9"}};
static const fm_chat_message errand[] = {
    {.role = "user", .content = "Go"},
    {.role = "assistant", .call = calls, .n_call = 2, .reasoning = "plan"},
    {.role = "tool", .content = "one", .tool_call_id = "call_7"},
    {.role = "tool", .content = "two", .tool_call_id = "call_8"},
    {.role = "assistant", .content = "Next.", .call = more_calls, .n_call = 1},
    {.role = "tool", .content = "three", .tool_call_id = "call_9"},
    {.role = "assistant", .content = "Done."},
    {.role = "user", .content = "Thanks"},
};
static const fm_chat errand_chat = {
    .message = errand, .n_message = COUNT(errand), .add_generation = 1};
static const fm_chat waiting_chat = {.message = errand, .n_message = 4, .add_generation = 1};

static const fm_chat_tool tools[] = {
    {.name        = "add",
     .description = "Adds.",
     .parameters  = "{\"type\": \"object\"}",
     .json        = "{\"name\": \"add\"}"},
    {.name = "sub", .parameters = "{}", .json = "{\"name\": \"sub\"}"},
};

static const fm_chat equipped_chat = {
    .message = talk, .n_message = 2, .tool = tools, .n_tool = 2, .add_generation = 1};

static const fm_chat_message begun[] = {{.role = "user", .content = "Poem"},
                                        {.role = "assistant", .content = "Roses", .prefix = 1}};
static const fm_chat begun_chat = {.message = begun, .n_message = 2, .add_generation = 1};

static void v2(void **state)
{
    (void)state;
    check(&talk_chat, FM_CHAT_V2,
          BOS "Be brief.\n\nUser: Hi\n\nAssistant: <think>hm</think>Hello" EOS
              "Be kind.\n\nUser:  2+2? \n\nAssistant:");
    check(&begun_chat, FM_CHAT_V2, BOS "User: Poem\n\nAssistant: Roses");
}

static void v3_and_r1(void **state)
{
    (void)state;
    check(&talk_chat, FM_CHAT_V3,
          BOS "Be brief.\n\nBe kind.<｜User｜>Hi<｜Assistant｜>Hello" EOS
              "<｜User｜> 2+2? <｜Assistant｜>");
    check(&talk_chat, FM_CHAT_R1,
          BOS "Be brief.\n\nBe kind.<｜User｜>Hi<｜Assistant｜>Hello" EOS
              "<｜User｜> 2+2? <｜Assistant｜><think>\n");
    const fm_chat closed = {.message = talk, .n_message = 3};
    check(&closed, FM_CHAT_R1, BOS "Be brief.<｜User｜>Hi<｜Assistant｜>Hello" EOS);
    check(&begun_chat, FM_CHAT_V3, BOS "<｜User｜>Poem<｜Assistant｜>Roses");
    check(&begun_chat, FM_CHAT_R1, BOS "<｜User｜>Poem<｜Assistant｜><think>\nRoses");
}

#define V3_CALL(name, args)                                                                        \
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" name "\n```json\n" args "\n```<｜tool▁call▁end｜>"
/* clang-format off */
#define V3_WAITING                                                                                 \
    BOS "<｜User｜>Go<｜Assistant｜><｜tool▁calls▁begin｜>" V3_CALL("add", "{\"a\": 1}") "\n"       \
    V3_CALL("sub", "{}") "<｜tool▁calls▁end｜>" EOS                                                \
    "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>one<｜tool▁output▁end｜>\n"                     \
    "<｜tool▁output▁begin｜>two<｜tool▁output▁end｜><｜tool▁outputs▁end｜>"
/* clang-format on */

static void v3_tools(void **state)
{
    (void)state;
    check(&waiting_chat, FM_CHAT_V3, V3_WAITING);
    check(&waiting_chat, FM_CHAT_R1, V3_WAITING);
    check(&errand_chat, FM_CHAT_V3,
          V3_WAITING "Next.<｜tool▁calls▁begin｜>" V3_CALL("mul", "[2]") "<｜tool▁calls▁end｜>" EOS
                     "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>three<｜tool▁output▁end｜>"
                     "<｜tool▁outputs▁end｜>Done." EOS "<｜User｜>Thanks<｜Assistant｜>");

    fm_str out = {0};
    assert_int_equal(fm_chat_render(&equipped_chat, FM_CHAT_V3, NULL, &out), FM_OK);
    assert_ptr_equal(strstr(out.text, BOS "Be brief.\n\n## Tools\n"), out.text);
    assert_non_null(strstr(out.text, "\n{\"name\": \"add\"}\n{\"name\": \"sub\"}"
                                     "<｜User｜>Hi<｜Assistant｜>"));
    assert_non_null(strstr(out.text, "<｜tool▁calls▁begin｜>" V3_CALL("NAME", "ARGUMENTS")
                                     "<｜tool▁calls▁end｜>"));
    fm_str_fini(&out);
}

static void v31(void **state)
{
    (void)state;
#define V31_TALK                                                                                   \
    BOS "Be brief.\n\nBe kind.<｜User｜>Hi<｜Assistant｜></think>Hello" EOS                          \
        "<｜User｜> 2+2? <｜Assistant｜>"
    fm_chat chat = talk_chat;
    check(&chat, FM_CHAT_V31, V31_TALK "</think>");
    chat.thinking = 1;
    check(&chat, FM_CHAT_V31, V31_TALK "<think>");

    chat = begun_chat;
    check(&chat, FM_CHAT_V31, BOS "<｜User｜>Poem<｜Assistant｜></think>Roses");
    chat.thinking = 1;
    check(&chat, FM_CHAT_V31, BOS "<｜User｜>Poem<｜Assistant｜><think>Roses");
}

static void v31_keeps_what_follows_the_first_thought(void **state)
{
    (void)state;
    const fm_chat_message m[] = {{.role = "user", .content = "x"},
                                 {.role = "assistant", .content = "a</think>b</think>c"}};
    const fm_chat         chat = {.message = m, .n_message = 2};
    check(&chat, FM_CHAT_V31, BOS "<｜User｜>x<｜Assistant｜></think>b</think>c" EOS);
    check(&chat, FM_CHAT_V3, BOS "<｜User｜>x<｜Assistant｜>c" EOS);
}

#define V31_CALL(name, args) "<｜tool▁call▁begin｜>" name "<｜tool▁sep｜>" args "<｜tool▁call▁end｜>"
/* clang-format off */
#define V31_WAITING                                                                                \
    BOS "<｜User｜>Go<｜Assistant｜></think><｜tool▁calls▁begin｜>" V31_CALL("add", "{\"a\": 1}")    \
    V31_CALL("sub", "{}") "<｜tool▁calls▁end｜>" EOS                                               \
    "<｜tool▁output▁begin｜>one<｜tool▁output▁end｜><｜tool▁output▁begin｜>two<｜tool▁output▁end｜>"
/* clang-format on */

static void v31_tools(void **state)
{
    (void)state;
    check(&waiting_chat, FM_CHAT_V31, V31_WAITING);
    check(&errand_chat, FM_CHAT_V31,
          V31_WAITING "Next.<｜tool▁calls▁begin｜>" V31_CALL("mul", "[2]") "<｜tool▁calls▁end｜>" EOS
                      "<｜tool▁output▁begin｜>three<｜tool▁output▁end｜>Done." EOS
                      "<｜User｜>Thanks<｜Assistant｜></think>");

    check(&equipped_chat, FM_CHAT_V31,
          BOS "Be brief.\n\n## Tools\nYou have access to the following tools:\n"
              "\n### add\nDescription: Adds.\n\nParameters: {\"type\": \"object\"}\n"
              "\n### sub\n\nParameters: {}\n"
              "\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n"
              "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>tool_call_arguments"
              "<｜tool▁call▁end｜>{{additional_tool_calls}}<｜tool▁calls▁end｜>\n\nWhere:\n\n"
              "- `tool_call_name` must be an exact match to one of the available tools\n"
              "- `tool_call_arguments` must be valid JSON that strictly follows the tool's "
              "Parameters Schema\n"
              "- For multiple tool calls, chain them directly without separators or spaces\n"
              "<｜User｜>Hi<｜Assistant｜></think>");
}

/* clang-format off */
#define KIMI_SYSTEM         "<|im_system|>system<|im_middle|>"
#define KIMI_DEFAULT                                                                               \
    KIMI_SYSTEM "You are Kimi, an AI assistant created by Moonshot AI.<|im_end|>"
#define KIMI_USER(c)        "<|im_user|>user<|im_middle|>" c "<|im_end|>"
#define KIMI_OPEN           "<|im_assistant|>assistant<|im_middle|>"
#define KIMI_CALLS(calls)   "<|tool_calls_section_begin|>" calls "<|tool_calls_section_end|>"
#define KIMI_CALL(id, args)                                                                        \
    "<|tool_call_begin|>" id "<|tool_call_argument_begin|>" args "<|tool_call_end|>"
#define KIMI_RESULT(id, c)  "<|im_system|>tool<|im_middle|>## Return of " id "\n" c "<|im_end|>"

static void kimi(void **state)
{
    (void)state;
    check(&talk_chat, FM_CHAT_KIMI,
          KIMI_SYSTEM "Be brief.<|im_end|>"
          KIMI_USER("Hi")
          KIMI_OPEN "<think>hm</think>Hello<|im_end|>"
          KIMI_SYSTEM "Be kind.<|im_end|>"
          KIMI_USER(" 2+2? ")
          KIMI_OPEN);
    check(&begun_chat, FM_CHAT_KIMI, KIMI_DEFAULT KIMI_USER("Poem") KIMI_OPEN "Roses");
}

static void kimi_tools(void **state)
{
    (void)state;
    fm_chat chat = errand_chat;
    chat.tool    = tools;
    chat.n_tool  = 2;
    check(&chat, FM_CHAT_KIMI,
          "<|im_system|>tool_declare<|im_middle|>"
          "[{\"name\": \"add\"}, {\"name\": \"sub\"}]<|im_end|>"
          KIMI_DEFAULT
          KIMI_USER("Go")
          KIMI_OPEN KIMI_CALLS(KIMI_CALL("functions.add:0", "{\"a\": 1}")
                               KIMI_CALL("functions.sub:1", "{}")) "<|im_end|>"
          KIMI_RESULT("functions.add:0", "one")
          KIMI_RESULT("functions.sub:1", "two")
          KIMI_OPEN "Next." KIMI_CALLS(KIMI_CALL("functions.mul:2", "[2]")) "<|im_end|>"
          KIMI_RESULT("functions.mul:2", "three")
          KIMI_OPEN "Done.<|im_end|>"
          KIMI_USER("Thanks")
          KIMI_OPEN);
}

static void kimi_names_and_own_ids(void **state)
{
    (void)state;
    static const fm_chat_call call = {.name = "f", .arguments = "{}", .id = "functions.f:7"};
    const fm_chat_message     m[]  = {
        {.role = "system", .content = "s"},
        {.role = "user", .content = "x", .name = "Ann"},
        {.role = "assistant", .call = &call, .n_call = 1},
        {.role = "tool", .content = "y", .tool_call_id = "functions.f:7"},
        {.role = "tool", .content = "z", .tool_call_id = "lost"},
    };
    const fm_chat chat = {.message = m, .n_message = COUNT(m)};
    check(&chat, FM_CHAT_KIMI,
          KIMI_SYSTEM "s<|im_end|>"
          "<|im_user|>Ann<|im_middle|>x<|im_end|>"
          KIMI_OPEN KIMI_CALLS(KIMI_CALL("functions.f:7", "{}")) "<|im_end|>"
          KIMI_RESULT("functions.f:7", "y")
          KIMI_RESULT("lost", "z"));
}
/* clang-format on */

/* A tokenizer with this template and one added token; either may be NULL. */
static fm_tokenizer *tokenizer_with(const char *template_text, const char *token)
{
    fm_str        json = {0}, added = {0};
    fm_tokenizer *t = NULL;
    if (token) fm_str_printf(&added, "[{\"id\":300,\"content\":\"%s\",\"special\":true}]", token);
    tiny_write(&json, (tiny){.added = added.text});
    if (fm_tokenizer_parse(&t, json.text, json.len, "tiny") != FM_OK) fail_msg("%s", fm_why());
    if (template_text) {
        t->chat_template = calloc(1, strlen(template_text) + 1);
        strcpy(t->chat_template, template_text);
    }
    fm_str_fini(&json);
    fm_str_fini(&added);
    return t;
}

static void the_style_shows_in_template_or_vocabulary(void **state)
{
    (void)state;
    static const struct { const char *text, *token; fm_chat_style want; } cases[] = {
        {"{{ 'Assistant: ' + message['content'] + eos_token }}", NULL, FM_CHAT_V2},
        {"{{'<｜Assistant｜>' + content}}{% if '</think>' in content %}", NULL, FM_CHAT_V3},
        {"{{'<｜Assistant｜><think>\\n'}}{% if '</think>' in content %}", NULL, FM_CHAT_R1},
        {"{% if not thinking %}{{'<｜Assistant｜></think>'}}{% endif %}", NULL, FM_CHAT_V31},
        {"<|im_user|>{{role_name}}<|im_middle|>", NULL, FM_CHAT_KIMI},
        {"{{ something else }}", "<｜Assistant｜>", FM_CHAT_V3},
        {NULL, "<｜Assistant｜>", FM_CHAT_V3},
        {NULL, "<|im_middle|>", FM_CHAT_KIMI},
        {NULL, NULL, FM_CHAT_V2},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        fm_tokenizer *t = tokenizer_with(cases[i].text, cases[i].token);
        assert_string_equal(fm_chat_style_name(fm_chat_style_of(t)),
                            fm_chat_style_name(cases[i].want));
        fm_tokenizer_close(t);
    }
}

static void check_with(const char *template_text, const char *token, const fm_chat *chat,
                       fm_chat_style style, const char *want)
{
    fm_tokenizer *t   = tokenizer_with(template_text, token);
    fm_str        out = {0};
    assert_int_equal(fm_chat_render(chat, style, t, &out), FM_OK);
    assert_string_equal(out.text, want);
    fm_str_fini(&out);
    fm_tokenizer_close(t);
}

static void bos_is_the_tokenizers_or_nothing(void **state)
{
    (void)state;
    check_with(NULL, BOS, &begun_chat, FM_CHAT_V3, BOS "<｜User｜>Poem<｜Assistant｜>Roses");
    check_with(NULL, NULL, &begun_chat, FM_CHAT_V3, "<｜User｜>Poem<｜Assistant｜>Roses");
}

static void kimi_variants_follow_the_template(void **state)
{
    (void)state;
    check_with("<|im_middle|>You are a helpful assistant", NULL, &begun_chat, FM_CHAT_KIMI,
               KIMI_SYSTEM "You are a helpful assistant<|im_end|>" KIMI_USER("Poem")
                   KIMI_OPEN "Roses");

    /* Reasoning is shown in the exchange that is going on, not in older ones. */
    const fm_chat_message m[] = {
        {.role = "system", .content = "s"},
        {.role = "user", .content = "a"},
        {.role = "assistant", .content = "b", .reasoning = "old"},
        {.role = "user", .content = "c"},
        {.role = "assistant", .call = more_calls, .n_call = 1, .reasoning = "new"},
        {.role = "tool", .content = "d", .tool_call_id = "call_9"},
    };
    const fm_chat chat = {.message = m, .n_message = COUNT(m), .add_generation = 1};
    /* clang-format off */
    check_with("<|im_middle|><think></think>", NULL, &chat, FM_CHAT_KIMI,
               KIMI_SYSTEM "s<|im_end|>"
               KIMI_USER("a")
               KIMI_OPEN "<think></think>b<|im_end|>"
               KIMI_USER("c")
               KIMI_OPEN "<think>new</think>"
               KIMI_CALLS(KIMI_CALL("functions.mul:0", "[2]")) "<|im_end|>"
               KIMI_RESULT("functions.mul:0", "d")
               KIMI_OPEN);
    /* clang-format on */
}

/* What is there of the answer, not who spoke last, says whether it begins inside reasoning. */
static void the_end_of_the_prompt_says_whether_reasoning_is_open(void **state)
{
    (void)state;
    enum { OFF = FM_REASONING_OFF, TAGGED = FM_REASONING_IF_TAGGED, OPEN = FM_REASONING_OPEN };
    static const fm_chat_message
        user   = {.role = "user", .content = "Does <think> open it?"},
        said   = {.role = "assistant", .content = "<think>"},
        result = {.role = "tool", .content = "<think>", .tool_call_id = "1"},
        system = {.role = "system", .content = "Be brief."};
    const struct {
        fm_chat_message before, last;
        const char     *prefix;
        int             thinking;
        int             v3, r1, v31, kimi; /* wanted */
    } cases[] = {
        {system, user, NULL, 0, TAGGED, OPEN, OFF, TAGGED},
        {system, user, NULL, 1, TAGGED, OPEN, OPEN, TAGGED},
        {user, said, NULL, 1, TAGGED, OPEN, TAGGED, TAGGED},
        {said, result, NULL, 1, TAGGED, TAGGED, TAGGED, TAGGED},
        {system, system, NULL, 1, TAGGED, OPEN, TAGGED, TAGGED},
        {system, user, "Well", 0, TAGGED, OPEN, OFF, TAGGED},
        {system, user, "Well", 1, TAGGED, OPEN, OPEN, TAGGED},
        {system, user, "hm</think>Well", 1, OFF, OFF, OFF, OFF},
        {system, user, "<think>hm", 0, OPEN, OPEN, OPEN, OPEN},
        {said, result, "Well", 1, TAGGED, TAGGED, TAGGED, TAGGED},
        {said, result, "<think>hm</think>", 1, OFF, OFF, OFF, OFF},
        {said, result, "<think>a</think><think>b", 1, OPEN, OPEN, OPEN, OPEN},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const fm_chat_message m[] = {
            cases[i].before,
            cases[i].last,
            {.role = "assistant", .content = cases[i].prefix, .prefix = 1},
        };
        const fm_chat chat = {.message        = m,
                              .n_message      = cases[i].prefix ? 3 : 2,
                              .thinking       = cases[i].thinking,
                              .add_generation = 1};
        const struct { fm_chat_style style; int want; } in[] = {
            {FM_CHAT_V3, cases[i].v3},
            {FM_CHAT_R1, cases[i].r1},
            {FM_CHAT_V31, cases[i].v31},
            {FM_CHAT_KIMI, cases[i].kimi},
        };
        for (int k = 0; k < COUNT(in); k++) {
            fm_reasoning_mode got = FM_REASONING_OFF;
            fm_str            out = {0};
            assert_int_equal(fm_chat_render_answer(&chat, in[k].style, NULL, &out, &got), FM_OK);
            if ((int)got != in[k].want)
                fail_msg("case %d, %s: %d", i, fm_chat_style_name(in[k].style), (int)got);
            fm_str_fini(&out);
        }
    }
}

static void a_message_that_makes_no_sense_is_named(void **state)
{
    (void)state;
    static const fm_chat_message user     = {.role = "user", .content = "x"};
    static const fm_chat_call    nameless = {.arguments = "{}"};
    static const struct { fm_chat_message m; fm_chat_style style; const char *why; } bad[] = {
        {{.role = "robot"}, FM_CHAT_V3, "messages[1]: unknown role \"robot\""},
        {{.content = "x"}, FM_CHAT_V3, "messages[1]: unknown role"},
        {{.role = "user", .call = calls, .n_call = 1}, FM_CHAT_V3, "messages[1]: only the assist"},
        {{.role = "user", .prefix = 1}, FM_CHAT_V3, "messages[1]: only a last answer"},
        {{.role = "tool"}, FM_CHAT_V2, "messages[1]: this model's chat layout has no tools"},
        {{.role = "tool"}, FM_CHAT_KIMI, "messages[1]: a tool's result needs a tool_call_id"},
        {{.role = "assistant", .call = &nameless, .n_call = 1}, FM_CHAT_V31, "messages[1]: tool c"},
    };
    for (int i = 0; i < COUNT(bad); i++) {
        const fm_chat_message m[]  = {user, bad[i].m};
        const fm_chat         chat = {.message = m, .n_message = 2};
        fm_str                out  = {0};
        assert_int_equal(fm_chat_render(&chat, bad[i].style, NULL, &out), FM_E_ARG);
        assert_non_null(strstr(fm_why(), bad[i].why));
        assert_int_equal(out.len, 0);
        fm_str_fini(&out);
    }
    const fm_chat none = {.n_message = 0};
    fm_str        out  = {0};
    assert_int_equal(fm_chat_render(&none, FM_CHAT_V3, NULL, &out), FM_E_ARG);
    assert_int_equal(fm_chat_render(&equipped_chat, FM_CHAT_V2, NULL, &out), FM_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v2),
        cmocka_unit_test(v3_and_r1),
        cmocka_unit_test(v3_tools),
        cmocka_unit_test(v31),
        cmocka_unit_test(v31_keeps_what_follows_the_first_thought),
        cmocka_unit_test(v31_tools),
        cmocka_unit_test(kimi),
        cmocka_unit_test(kimi_tools),
        cmocka_unit_test(kimi_names_and_own_ids),
        cmocka_unit_test(kimi_variants_follow_the_template),
        cmocka_unit_test(the_style_shows_in_template_or_vocabulary),
        cmocka_unit_test(bos_is_the_tokenizers_or_nothing),
        cmocka_unit_test(the_end_of_the_prompt_says_whether_reasoning_is_open),
        cmocka_unit_test(a_message_that_makes_no_sense_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
