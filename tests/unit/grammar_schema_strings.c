/* SPDX-License-Identifier: Apache-2.0 */
/* Strings under several conditions at once: format, pattern, length, look-ahead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "grammar_support.h"

static void formats(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"type\":\"string\",\"format\":\"date\"}",
         {"\"2024-02-29\"", "\"2023-12-31\"", "\"2000-02-29\"", "\"0001-01-01\"", "\"9999-06-30\"",
          "\"1904-02-29\""},
         {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"0000-01-01\"",
          "\"2024-00-10\"", "\"2024-01-00\"", "\"24-01-01\"", "\"2024-1-1\"", "\"0000-02-29\"",
          "\"\""}},
        {"{\"type\":\"string\",\"format\":\"time\"}",
         {"\"23:59:59Z\"", "\"00:00:00+01:00\"", "\"12:30:15.25-11:30\"", "\"07:08:09.123456Z\""},
         {"\"24:00:00Z\"", "\"12:60:00Z\"", "\"12:00:60Z\"", "\"12:00:00\"", "\"12:00Z\"",
          "\"12:00:00.Z\"", "\"12:00:00+24:00\""}},
        {"{\"type\":\"string\",\"format\":\"date-time\"}",
         {"\"2024-02-29T12:00:00Z\"", "\"1999-12-31T23:59:59.999+05:30\""},
         {"\"2024-02-30T12:00:00Z\"", "\"2024-02-29 12:00:00Z\"", "\"2024-02-29T12:00:00\"",
          "\"2024-02-29\""}},
        {"{\"type\":\"string\",\"format\":\"duration\"}",
         {"\"P1D\"", "\"PT36H\"", "\"P1Y2M3DT4H5M6S\"", "\"P3W\"", "\"PT10S\"", "\"P2MT1M\""},
         {"\"P\"", "\"PT\"", "\"1D\"", "\"P1S\"", "\"P1DT\"", "\"PT1S2M\"", "\"P1W1D\""}},
        {"{\"type\":\"string\",\"format\":\"uuid\"}",
         {"\"123e4567-e89b-12d3-a456-426614174000\"", "\"FFFFFFFF-0000-0000-0000-000000000000\""},
         {"\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400\"",
          "\"123e4567-e89b-12d3-a456-42661417400g\""}},
        {"{\"type\":\"string\",\"format\":\"uuid4\"}",
         {"\"123e4567-e89b-42d3-a456-426614174000\""},
         {"\"123e4567-e89b-12d3-a456-426614174000\"", "\"123e4567-e89b-42d3-7456-426614174000\""}},
        {"{\"type\":\"string\",\"format\":\"email\"}",
         {"\"a@b.de\"", "\"first.last+tag@mail.example.org\"", "\"x_1@a-b.co\""},
         {"\"a@b\"", "\"@b.de\"", "\"a@.de\"", "\"a..b@c.de\"", "\".a@c.de\"", "\"a@-b.de\"",
          "\"a@b-.de\"", "\"a b@c.de\"", "\"a@b.d\"", "\"a@b@c.de\""}},
        {"{\"type\":\"string\",\"format\":\"ipv4\"}",
         {"\"0.0.0.0\"", "\"255.255.255.255\"", "\"192.168.1.10\""},
         {"\"256.1.1.1\"", "\"1.2.3\"", "\"01.2.3.4\"", "\"1.2.3.4.5\"", "\"1..2.3\""}},
        {"{\"type\":\"string\",\"format\":\"ipv6\"}",
         {"\"::\"", "\"::1\"", "\"1::\"", "\"2001:db8::ff00:42:8329\"", "\"1:2:3:4:5:6:7:8\"",
          "\"1:2:3:4:5:6:7::\"", "\"::2:3:4:5:6:7:8\"", "\"fe80::1:2\"", "\"1:2:3:4:5:6::8\""},
         {"\":\"", "\"1:2\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8:9\"", "\"12345::\"", "\":::\"",
          "\"1:2:3:4:5:6:7\"", "\"g::\"", "\"1:2:3:4:5:6:7::8\""}},
        {"{\"type\":\"string\",\"format\":\"uri\"}",
         {"\"http://a.de\"", "\"https://a.b-c.org:8080/x/y?q=1&r=%20#f\"", "\"mailto:x@y.de\"",
          "\"urn:isbn:0451450523\"", "\"http://127.0.0.1/\""},
         {"\"a.de\"", "\"http:\"", "\"//a.de\"", "\"http://a b\"", "\"http://a.de/%2\"",
          "\"1http://a\"", "\"\""}},
        {"{\"type\":\"string\",\"format\":\"hostname\"}",
         {"\"localhost\"", "\"a-1.example.org\""},
         {"\"-a\"", "\"a_b\"", "\"a..b\"", "\"\""}},
        {"{\"format\":\"date\"}", {"\"2024-02-29\""}, {"\"x\"", "5"}}, /* like pattern: a string */
        {"{\"type\":\"string\",\"format\":\"no-such-format\"}", {"\"anything\""}, {"5"}},
        {"{\"type\":\"integer\",\"format\":\"date\"}", {"5"}, {"\"2024-02-29\""}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void conditions_together(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+(-[a-z]+)*$\",\"minLength\":3,\"maxLength\":6}",
         {"\"abc\"", "\"a-b\"", "\"ab-cde\"", "\"abcdef\""},
         {"\"ab\"", "\"abcdefg\"", "\"a-\"", "\"abc-\"", "\"a--b\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"b\",\"maxLength\":2}",
         {"\"b\"", "\"ab\"", "\"b\\n\"", "\"\xe4\xb8\x96\x62\"", "\"b\\u00e9\""},
         {"\"a\"", "\"abc\"", "\"aab\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"^\xc3\xa9*$\",\"minLength\":2}", /* characters, not
                                                                                 bytes */
         {"\"\xc3\xa9\xc3\xa9\"", "\"\xc3\xa9\xc3\xa9\xc3\xa9\""},
         {"\"\xc3\xa9\"", "\"\""}},
        {"{\"type\":\"string\",\"format\":\"uri\",\"minLength\":1,\"maxLength\":2083}",
         {"\"http://a.de/x\""},
         {"\"\"", "\"x\""}},
        {"{\"type\":\"string\",\"format\":\"ipv4\",\"maxLength\":8}",
         {"\"1.2.3.4\"", "\"10.2.3.4\""},
         {"\"10.20.3.4\"", "\"x\""}},
        {"{\"type\":\"string\",\"format\":\"date\",\"pattern\":\"^2024\"}",
         {"\"2024-02-29\""},
         {"\"2023-01-01\"", "\"2024\"", "\"2024-02-30\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(?=.*[A-Z])(?=.*\\\\d)[A-Za-z\\\\d]{3,}$\"}",
         {"\"aA1\"", "\"1Ab\"", "\"A1A1\""},
         {"\"aaa\"", "\"AAA\"", "\"A1\"", "\"a1a\"", "\"aA1!\""}},
        /* Pydantic's Decimal */
        {"{\"type\":\"string\",\"pattern\":\"^(?!^[-+.]*$)[+-]?0*\\\\d*\\\\.?\\\\d*$\"}",
         {"\"1\"", "\"-0.5\"", "\"+12.\"", "\".5\"", "\"007\""},
         {"\"\"", "\"-\"", "\".\"", "\"+.\"", "\"1.2.3\"", "\"x\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(?!admin)[a-z]+$\"}",
         {"\"adm\"", "\"user\"", "\"xadmin\""},
         {"\"admin\"", "\"administrator\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(?!a)\"}", /* not by another spelling either */
         {"\"b\"", "\"ba\"", "\"\"", "\"\\n\""},
         {"\"a\"", "\"ab\"", "\"\\u0061b\""}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
    static const example plain[] = {
        {"(?!no)[a-z]{2,4}", {"yes", "on", "ano"}, {"no", "nope", "x"}},
        {"^(?=ab|cd)[a-d]+$", {"ab", "abc", "cdd"}, {"ac", "a"}},
    };
    check_examples(FM_GRAMMAR_REGEX, plain, sizeof plain / sizeof *plain);
}

static void says_what_it_cannot_follow(void **state)
{
    (void)state;
    static const refusal all[] = {
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^(?!a\"}", "closed"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^a(?!b)c$\"}", "groups"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^a{5}$\",\"maxLength\":4}",
         "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"minLength\":4,\"maxLength\":3}",
         "maxLength is below"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":5,\"minLength\":1}", "pattern"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"type\":\"string\",\"pattern\":\"^(a|b)*a(a|b){40}$\",\"minLength\":50}", "too large"},
        {FM_GRAMMAR_REGEX, "(?!a*)a", "no text"},
    };
    check_refusals(all, sizeof all / sizeof *all);
}

/* Every date from 1896 to 2104, day 0 to 32 of month 0 to 13. */
static void dates_are_those_of_the_calendar(void **state)
{
    (void)state;
    static const int days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0};
    fm_grammar      *g = get(FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"format\":\"date\"}");
    for (int year = 1896; year <= 2104; year += 4)
        for (int month = 0; month <= 13; month++)
            for (int day = 26; day <= 33; day++) {
                char      text[32];
                const int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
                const int last = days[month] + (month == 2 && leap);
                snprintf(text, sizeof text, "\"%04d-%02d-%02d\"", year, month, day % 33);
                const int want = day % 33 >= 1 && day % 33 <= last;
                if ((reads(g, text) == 2) != want) fail_msg("%s: %d", text, want);
            }
    fm_grammar_release(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(conditions_together),
        cmocka_unit_test(says_what_it_cannot_follow),
        cmocka_unit_test(dates_are_those_of_the_calendar),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
