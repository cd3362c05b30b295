/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds with decimals and multipleOf: which numbers may be written, against
 * integer arithmetic in thousandths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "grammar_support.h"

static void examples(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"type\":\"number\",\"minimum\":0.1}",
         {"0.1", "0.10", "0.11", "1", "0.2", "12.5"},
         {"0", "0.0", "0.09", "0.0999", "-1", "-0.1"}},
        {"{\"type\":\"number\",\"exclusiveMinimum\":0.5,\"exclusiveMaximum\":99.5}",
         {"0.51", "0.500001", "1", "99.4", "99.499999", "99", "50.25"},
         {"0.5", "0.50", "0.4", "99.5", "99.50", "99.6", "100", "0"}},
        {"{\"type\":\"number\",\"exclusiveMinimum\":-273.15}",
         {"-273.1", "-273", "-273.149", "0", "12", "-0.5"},
         {"-273.15", "-273.150", "-273.2", "-274"}},
        {"{\"type\":\"number\",\"minimum\":3,\"exclusiveMinimum\":3}", {"3.1", "4"}, {"3", "3.0"}},
        {"{\"type\":\"number\",\"minimum\":-1.5,\"maximum\":-1.25}",
         {"-1.5", "-1.25", "-1.3", "-1.250"},
         {"-1.2", "-1.51", "-1", "1.3", "-2"}},
        {"{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":1}",
         {"1", "0.5", "0.000001", "1.0"},
         {"0", "0.0", "-0", "1.01"}},
        {"{\"type\":\"number\",\"exclusiveMaximum\":0}", {"-0.1", "-5"}, {"0", "-0", "-0.0", "1"}},
        {"{\"type\":\"number\",\"minimum\":1e-7,\"maximum\":2e-7}",
         {"0.0000001", "0.00000015", "0.0000002"},
         {"0", "0.00000021", "0.00000009", "0.1"}},
        {"{\"type\":\"integer\",\"minimum\":-2.5,\"maximum\":2.5}", {"-2", "0", "2"}, {"-3", "3"}},
        {"{\"type\":\"integer\",\"exclusiveMaximum\":0,\"minimum\":-3}",
         {"-1", "-3"},
         {"0", "-4", "1", "-0"}},
        {"{\"type\":\"integer\",\"multipleOf\":7}",
         {"0", "7", "-14", "49", "7000000000"},
         {"1", "8", "07", "-13"}},
        {"{\"type\":\"integer\",\"multipleOf\":2,\"minimum\":-10,\"maximum\":100}",
         {"-10", "0", "42", "100"},
         {"1", "-12", "102", "99"}},
        {"{\"type\":\"integer\",\"multipleOf\":1.5}", {"0", "3", "-6"}, {"1", "2", "4", "1.5"}},
        {"{\"type\":\"number\",\"multipleOf\":0.01}",
         {"0", "0.01", "-12.34", "5.5", "7"},
         {"0.001", "0.015", "1e2", "01"}},
        {"{\"type\":\"number\",\"multipleOf\":0.25,\"minimum\":0,\"maximum\":10}",
         {"0", "0.25", "9.75", "10", "0.5", "3.00"},
         {"0.1", "10.25", "-0.25", "0.3"}},
        {"{\"type\":\"number\",\"multipleOf\":2.5}", {"0", "2.5", "5", "-7.5"}, {"1", "2", "2.4"}},
        {"{\"multipleOf\":5}", {"5", "0", "10"}, {"\"5\"", "3"}},
        {"{\"type\":\"integer\",\"multipleOf\":1000}", {"0", "5000", "123000"}, {"500", "1001"}},
        {"{\"type\":\"integer\",\"multipleOf\":3600}",
         {"0", "3600", "-7200", "36000", "864000"},
         {"360", "1000", "3500", "00", "-0"}},
        {"{\"type\":\"integer\",\"multipleOf\":86400,\"minimum\":0}",
         {"0", "86400", "604800", "2592000"},
         {"864", "8640", "100000"}},
        {"{\"type\":\"integer\",\"multipleOf\":5000,\"maximum\":20000}",
         {"0", "5000", "15000", "-5000"},
         {"500", "25000", "1000"}},
        {"{\"type\":\"number\",\"multipleOf\":10000}", {"0", "10000", "250000"}, {"1000", "10000.5"}},
        {"{\"type\":\"integer\",\"multipleOf\":4096}",
         {"0", "4096", "8192", "65536"},
         {"4095", "4097", "1024", "81920000"}},
        {"{\"type\":\"integer\",\"multipleOf\":4096,\"minimum\":4096,\"maximum\":1048576}",
         {"4096", "1048576", "131072"},
         {"0", "2048", "1048575", "1052672"}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void says_what_it_cannot_follow(void **state)
{
    (void)state;
    static const refusal all[] = {
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"multipleOf\":0}", "multipleOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"multipleOf\":-2}", "multipleOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"multipleOf\":\"2\"}", "multipleOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"multipleOf\":1234567}", "multipleOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"number\",\"multipleOf\":3.14159}", "multipleOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"multipleOf\":1e300}", "multipleOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"number\",\"minimum\":2,\"exclusiveMaximum\":2}",
         "no number is between"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"type\":\"integer\",\"multipleOf\":10,\"minimum\":11,\"maximum\":19}", "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"number\",\"minimum\":\"1\"}", "minimum"},
    };
    check_refusals(all, sizeof all / sizeof *all);
}

/* A number of thousandths as JSON, with as many digits behind the point as it needs or `digits`. */
static void write_thousandths(char *out, size_t size, int x, int digits)
{
    const int a = abs(x);
    int       n = snprintf(out, size, "%s%d.%03d", x < 0 ? "-" : "", a / 1000, a % 1000);
    for (int keep = 3; keep > digits && out[n - 1] == '0'; keep--) out[--n] = 0;
    if (out[n - 1] == '.') out[n - 1] = 0;
}

typedef struct {
    int lo, hi, lo_open, hi_open, unit; /* thousandths; unit 0: none */
} interval;

static void write_schema(char *out, size_t size, interval v)
{
    char lo[24], hi[24], unit[24], multiple[48] = "";
    write_thousandths(lo, sizeof lo, v.lo, 0);
    write_thousandths(hi, sizeof hi, v.hi, 0);
    write_thousandths(unit, sizeof unit, v.unit, 0);
    if (v.unit) snprintf(multiple, sizeof multiple, ",\"multipleOf\":%s", unit);
    snprintf(out, size, "{\"type\":\"number\",\"%s\":%s,\"%s\":%s%s}",
             v.lo_open ? "exclusiveMinimum" : "minimum", lo,
             v.hi_open ? "exclusiveMaximum" : "maximum", hi, multiple);
}

static int belongs(interval v, int x)
{
    if (v.lo_open ? x <= v.lo : x < v.lo) return 0;
    if (v.hi_open ? x >= v.hi : x > v.hi) return 0;
    return !v.unit || x % v.unit == 0;
}

static void check_interval(interval v)
{
    char        schema[200], text[24];
    fm_grammar *g = NULL;
    write_schema(schema, sizeof schema, v);
    if (fm_grammars_get(&g, grammars, FM_GRAMMAR_JSON_SCHEMA, schema, strlen(schema), 0) != FM_OK) {
        for (int x = v.lo; x <= v.hi; x++)
            if (belongs(v, x)) fail_msg("%s: %s", schema, fm_why());
        return;
    }
    for (int x = v.lo - 1500; x <= v.hi + 1500; x += x % 7 ? 1 : 3) {
        write_thousandths(text, sizeof text, x, 0);
        if (!strcmp(text, "0") && v.lo < 0) continue; /* -0 aside, tested above */
        if ((reads(g, text) == 2) != belongs(v, x)) fail_msg("%s: %s", schema, text);
    }
    fm_grammar_release(g);
}

static void random_intervals_have_exactly_their_numbers(void **state)
{
    (void)state;
    static const int units[] = {0, 0, 10, 250, 1000, 500, 5, 2500};
    uint64_t         at      = 0;
    for (int i = 0; i < 60; i++) {
        const int lo   = (int)(fm_rng_u32(5, at++) % 6000) - 3000;
        const int span = (int)(fm_rng_u32(5, at++) % (i % 2 ? 30 : 2500));
        const int ends = (int)(fm_rng_u32(5, at++) & 3);
        interval  v    = {.lo      = lo,
                          .hi      = lo + span,
                          .lo_open = ends & 1,
                          .hi_open = ends >> 1,
                          .unit    = units[fm_rng_u32(5, at++) % 8]};
        check_interval(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples),
        cmocka_unit_test(says_what_it_cannot_follow),
        cmocka_unit_test(random_intervals_have_exactly_their_numbers),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
