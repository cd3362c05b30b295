/* SPDX-License-Identifier: Apache-2.0 */
/* Tool calls: the formats, what is no call, and that cutting the stream
 * anywhere gives the same calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/text/tool_calls.h"

#define BEGINS "<｜tool▁calls▁begin｜>"
#define BEGIN "<｜tool▁call▁begin｜>"
#define SEP "<｜tool▁sep｜>"
#define END "<｜tool▁call▁end｜>"
#define ENDS "<｜tool▁calls▁end｜>"
#define V3(name, args) BEGIN "function" SEP name "\n```json\n" args "\n```" END

#define K_BEGINS "<|tool_calls_section_begin|>"
#define K(id, args) "<|tool_call_begin|>" id "<|tool_call_argument_begin|>" args "<|tool_call_end|>"
#define K_ENDS "<|tool_calls_section_end|>"

/* What came out, as "text|name#id(arguments)…": neighbouring pieces of a kind
 * run together, as they must for every cut. */
typedef struct {
    fm_str        all;
    fm_tool_piece last;
} log_of;

static void note(void *ctx, fm_tool_piece kind, int index, const char *id, const char *text,
                 size_t len)
{
    log_of *l = ctx;
    if (kind == FM_TOOL_TEXT && l->last != FM_TOOL_TEXT) fm_str_puts(&l->all, "|");
    if (kind == FM_TOOL_NAME) fm_str_printf(&l->all, "[%d#%s ", index, id);
    if (kind == FM_TOOL_ARGUMENTS && l->last != FM_TOOL_ARGUMENTS) fm_str_puts(&l->all, ":");
    fm_str_add(&l->all, text, len);
    l->last = kind;
}

static int all_but_ghost(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "ghost") != 0;
}

static void parse(fm_tool_style style, const char *text, size_t len, uint64_t seed, size_t max,
                  log_of *l)
{
    fm_tool_calls t;
    size_t        at = 0;
    fm_tool_calls_init(&t, style, note, l);
    t.known = all_but_ghost;
    for (uint64_t i = 0; at < len; i++) {
        size_t n = max ? fm_rng_u32(seed, i) % (max + 1) : len;
        if (n > len - at) n = len - at;
        fm_tool_calls_push(&t, text + at, n);
        at += n;
    }
    fm_tool_calls_end(&t);
    fm_tool_calls_fini(&t);
}

static void check(fm_tool_style style, const char *text, const char *want)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        log_of l = {.last = FM_TOOL_TEXT};
        parse(style, text, strlen(text), seed, seed % 40, &l);
        assert_string_equal(l.all.text ? l.all.text : "", want);
        fm_str_fini(&l.all);
    }
}

static void test_v3(void **state)
{
    (void)state;
    check(FM_TOOLS_V3, "no call at all", "no call at all");
    check(FM_TOOLS_V3, BEGINS V3("f", "{\"a\": 1}") ENDS, "[0# f:{\"a\": 1}");
    check(FM_TOOLS_V3,
          "Let me see. \n" BEGINS V3("f", "{}") "\n" V3("g_2", "{\"s\": \"x ` y\"}") ENDS,
          "Let me see.[0# f:{}[1# g_2:{\"s\": \"x ` y\"}");
    check(FM_TOOLS_V3, V3("f", "{}"), "[0# f:{}"); /* the outer mark left out */
    check(FM_TOOLS_V3, BEGINS V3("f", "{\n \"a\": [1,\n 2]\n}") ENDS " and more",
          "[0# f:{\n \"a\": [1,\n 2]\n}| and more");
    check(FM_TOOLS_V3, BEGINS V3("f", "{}") ENDS "\n", "[0# f:{}");
}

static void test_v31(void **state)
{
    (void)state;
    check(FM_TOOLS_V31, "ok" BEGINS BEGIN "f" SEP "{\"a\": 1}" END BEGIN "g" SEP "{}" END ENDS,
          "ok[0# f:{\"a\": 1}[1# g:{}");
    check(FM_TOOLS_V31, BEGINS BEGIN " f " SEP " {} \n" END ENDS, "[0# f:{}");
    check(FM_TOOLS_V31, BEGINS BEGIN "f" SEP "```" END ENDS, "[0# f:```");
}

static void test_kimi(void **state)
{
    (void)state;
    check(FM_TOOLS_KIMI,
          "hi" K_BEGINS K("functions.f:0", "{\"a\":\"<|\"}") K("functions.a.b:7", "{}") K_ENDS,
          "hi[0#functions.f:0 f:{\"a\":\"<|\"}[1#functions.a.b:7 a.b:{}");
}

static void test_unfinished(void **state)
{
    (void)state;
    check(FM_TOOLS_V3, BEGINS BEGIN "function" SEP "f\n```json\n{\"a\": \"long",
          "[0# f:{\"a\": \"long");
    check(FM_TOOLS_V3, BEGINS BEGIN "function" SEP "f\n``", "");
    check(FM_TOOLS_V3, "Let me see." BEGINS BEGIN "function" SEP "get_wea", "Let me see.");
    check(FM_TOOLS_V3, BEGINS BEGIN "func", "");
    check(FM_TOOLS_V3, BEGINS V3("f", "{}") "\n<｜tool▁call▁be", "[0# f:{}");
    check(FM_TOOLS_V31, BEGINS BEGIN "get_wea", "");
    check(FM_TOOLS_V31, BEGINS BEGIN "f" SEP "{\"a\": 1}<｜tool▁call▁e", "[0# f:{\"a\": 1}");
    check(FM_TOOLS_KIMI, "hi" K_BEGINS "<|tool_call_begin|>functions.get", "hi");
    check(FM_TOOLS_V3, "x <｜tool▁calls", "x <｜tool▁calls");
    check(FM_TOOLS_V3, "x \n\n", "x \n\n");
    check(FM_TOOLS_V3, BEGINS, "");
}

static void test_what_is_no_call_stays_text(void **state)
{
    (void)state;
    check(FM_TOOLS_V3, BEGINS BEGIN "function" SEP "f {}" END, BEGIN "function" SEP "f {}" END);
    check(FM_TOOLS_V3, BEGINS BEGIN "function" SEP "f\nplain" END,
          BEGIN "function" SEP "f\nplain" END);
    check(FM_TOOLS_V31, BEGINS BEGIN SEP "{}" END, BEGIN SEP "{}" END);
    check(FM_TOOLS_V31, BEGINS BEGIN "two words" SEP "{}" END, BEGIN "two words" SEP "{}" END);
    check(FM_TOOLS_V31, BEGINS "surprise" BEGIN "f" SEP "{}" END, "surprise[0# f:{}");
}

static void test_unknown_function_is_left_out(void **state)
{
    (void)state;
    check(FM_TOOLS_V31, "a" BEGINS BEGIN "ghost" SEP "{\"x\":1}" END BEGIN "f" SEP "{}" END ENDS,
          "a[0# f:{}");
}

static void test_endless_head_is_given_up(void **state)
{
    (void)state;
    fm_str text = {0}, want = {0};
    fm_str_puts(&text, BEGINS BEGIN);
    for (int i = 0; i < 700; i++) fm_str_puts(&text, "x");
    fm_str_puts(&text, SEP "{}" END);
    fm_str_puts(&want, text.text + strlen(BEGINS));
    check(FM_TOOLS_V31, text.text, want.text);
    fm_str_fini(&text);
    fm_str_fini(&want);
}

/* Random soups of marks and letters: any cut gives what one push gives. */
static void test_cuts_do_not_matter(void **state)
{
    (void)state;
    static const char *const part[] = {BEGINS, BEGIN,      SEP,     END,  ENDS,        "function",
                                       "f",    "g",        "ghost", "\n", "```json\n", "\n```",
                                       "{}",   "{\"a\": ", "1}",    " ",  "<",         "<｜",
                                       "tool", "｜>",      "x",     "```"};
    enum { N_PART = sizeof part / sizeof part[0] };
    for (uint64_t seed = 0; seed < 1500; seed++) {
        const fm_tool_style style = seed % 2 ? FM_TOOLS_V31 : FM_TOOLS_V3;
        fm_str              text  = {0};
        log_of              whole = {.last = FM_TOOL_TEXT};
        for (uint64_t i = 0, n = 1 + fm_rng_u32(seed, 0) % 24; i < n; i++)
            fm_str_puts(&text, part[fm_rng_u32(seed, i + 1) % N_PART]);
        parse(style, text.text, text.len, 0, 0, &whole);
        for (uint64_t k = 1; k < 8; k++) {
            log_of cut = {.last = FM_TOOL_TEXT};
            parse(style, text.text, text.len, seed * 100 + k, k * 2, &cut);
            if (strcmp(whole.all.text ? whole.all.text : "", cut.all.text ? cut.all.text : ""))
                fail_msg("seed %d: %s\nwhole %s\ncut   %s", (int)seed, text.text, whole.all.text,
                         cut.all.text);
            fm_str_fini(&cut.all);
        }
        fm_str_fini(&whole.all);
        fm_str_fini(&text);
    }
}

/* The opening that forces a call, then what the model writes after it. */
static void test_forced_opening(void **state)
{
    (void)state;
    static const struct {
        fm_tool_style style;
        const char   *rest, *want;
    } named[] = {
        {FM_TOOLS_V3, "{\"a\": 2}\n```" END ENDS, "[0# f:{\"a\": 2}"},
        {FM_TOOLS_V31, "{\"a\": 2}" END ENDS, "[0# f:{\"a\": 2}"},
        {FM_TOOLS_KIMI, "{\"a\": 2}<|tool_call_end|>" K_ENDS, "[0#functions.f:0 f:{\"a\": 2}"}};
    for (size_t i = 0; i < 3; i++) {
        fm_str text = {0};
        fm_tool_calls_opening(named[i].style, "f", &text);
        fm_str_puts(&text, named[i].rest);
        check(named[i].style, text.text, named[i].want);
        fm_str_fini(&text);
    }
    fm_str any = {0};
    fm_tool_calls_opening(FM_TOOLS_V3, NULL, &any);
    fm_str_puts(&any, "g\n```json\n{}\n```" END);
    check(FM_TOOLS_V3, any.text, "[0# g:{}");
    fm_str_fini(&any);
}

/* A name that may be declared is read back from a call in every style. */
static void test_names_that_can_be_called(void **state)
{
    (void)state;
    static char longest[257], longer[258];
    static const struct {
        const char *name;
        int         can;
    } in[] = {{longest, 1}, {"f", 1},    {"get_weather-2", 1}, {"a.b:c", 1}, {"größe", 1},
              {longer, 0},  {"a b", 0},  {"a\nb", 0},          {"a<b", 0},   {"`a`", 0},
              {"", 0}};
    memset(longest, 'x', sizeof longest - 1);
    memset(longer, 'x', sizeof longer - 1);
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        const char *name = in[i].name;
        assert_int_equal(fm_tool_calls_can_name(name), in[i].can);
        for (int style = FM_TOOLS_V3; in[i].can && style <= FM_TOOLS_KIMI; style++) {
            fm_str text = {0}, want = {0};
            log_of l    = {.last = FM_TOOL_TEXT};
            fm_tool_calls_opening(style, name, &text);
            parse(style, text.text, text.len, 0, 0, &l);
            fm_str_printf(&want, style == FM_TOOLS_KIMI ? "[0#functions.%s:0 %s" : "[0#%.0s %s",
                          name, name);
            assert_string_equal(l.all.text, want.text);
            fm_str_fini(&text);
            fm_str_fini(&want);
            fm_str_fini(&l.all);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v3),
        cmocka_unit_test(test_v31),
        cmocka_unit_test(test_kimi),
        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_what_is_no_call_stays_text),
        cmocka_unit_test(test_unknown_function_is_left_out),
        cmocka_unit_test(test_endless_head_is_given_up),
        cmocka_unit_test(test_cuts_do_not_matter),
        cmocka_unit_test(test_forced_opening),
        cmocka_unit_test(test_names_that_can_be_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
