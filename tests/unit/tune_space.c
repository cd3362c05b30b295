/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter spaces: what is read, what is refused, scales, conditions, constraints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tune/expr.h"
#include "tune/space.h"
#include "tune/words.h"

static void ok(fm_status rc)
{
    if (rc != FM_OK) fail_msg("%s", fm_why());
}

static fm_space make(const char *const *text)
{
    fm_space s = {0};
    for (; *text; text++) ok(fm_space_add(&s, *text));
    return s;
}

static void kinds_are_read(void **state)
{
    (void)state;
    fm_space s = make((const char *const[]){"threads=1..64", "batch = 8..1024:log", "x=0.5..2",
                                            "map={core,socket}", "page={8,16,32}",
                                            "n=16..64:step=16", "drafts=1..8 if map=core", NULL});
    assert_int_equal(s.n, 7);
    assert_int_equal(s.param[0].kind, FM_PARAM_INT);
    assert_int_equal(s.param[1].is_log, 1);
    assert_int_equal(s.param[2].kind, FM_PARAM_REAL);
    assert_int_equal(s.param[3].ordered, 0);
    assert_int_equal(s.param[4].ordered, 1);
    assert_int_equal(fm_param_n_value(&s.param[5]), 4);
    assert_int_equal(s.param[6].parent, 3);
    assert_true(isinf(fm_space_size(&s)));
    fm_space_fini(&s);
}

static void broken_ones_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "x",
        "x=",
        "x=1",
        "x=1..",
        "x=2..1",
        "=1..2",
        "x={}",
        "x={a,}",
        "x={a",
        "x=1..2 ",
        "x=0..8:log",
        "x=1..8:step=0",
        "x=1..2:ln",
        "x=a..b",
        "x=1..2 if m=a",
        "x=1..nan",
        "x={a,b} else",
        "x=1..2..3",
        "x=1..99999999999999999999",
        "x=-99999999999999999999..1:log",
        "x=1..8:step=0.5",
        "x=1..8:step=1e-300",
        "x=-1e308..1e308",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fm_space        s  = {0};
        const fm_status rc = fm_space_add(&s, bad[i]);
        if (!strcmp(bad[i], "x=1..2 "))
            assert_int_equal(rc, FM_OK); /* a blank is none */
        else if (rc != FM_E_ARG)
            fail_msg("\"%s\" was taken", bad[i]);
        fm_space_fini(&s);
    }
    fm_space s = make((const char *const[]){"x=1..2", NULL});
    assert_int_equal(fm_space_add(&s, "x=1..2"), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "twice"));
    fm_space_fini(&s);
}

/* Every value of a countable parameter comes back from its place on the scale. */
static void places_and_values_agree(void **state)
{
    (void)state;
    fm_space s = make((const char *const[]){"a=1..64", "b=8..1024:log", "c={x,y,z}",
                                            "d=0..90:step=7", "e={1,2,4}", "f=5..5", NULL});
    for (int i = 0; i < s.n; i++)
        for (int64_t k = 0; k < fm_param_n_value(&s.param[i]); k++) {
            const double v = fm_param_nth(&s.param[i], k);
            const double u = fm_param_unit(&s.param[i], v);
            assert_true(u >= 0 && u <= 1);
            assert_true(fabs(fm_param_value(&s.param[i], u) - v) < 1e-9);
        }
    fm_space_fini(&s);
}

/* Ranges so narrow that nine digits, or the logarithm, do not tell their ends apart. */
static void narrow_ranges_keep_their_values(void **state)
{
    (void)state;
    fm_space s    = make((const char *const[]){"a=0.12345678912..0.12345678913",
                                               "b=1e300..1.0000000000000002e300:log", NULL});
    fm_str   text = {0};
    for (int i = 0; i < s.n; i++)
        for (int k = 0; k <= 4; k++) {
            fm_point p    = {{0}};
            double   back = 0;
            p.v[i]        = fm_param_value(&s.param[i], k / 4.0);
            fm_str_clear(&text);
            fm_point_text(&s, &p, i, &text);
            ok(fm_param_read(&s.param[i], text.text, &back));
            const double u = fm_param_unit(&s.param[i], back);
            assert_true(u >= 0 && u <= 1);
        }
    fm_str_fini(&text);
    fm_space_fini(&s);
}

static void conditions_decide_what_exists(void **state)
{
    (void)state;
    fm_space s = make((const char *const[]){"spec={off,ngram,mtp}", "drafts=1..8 if spec=ngram|mtp",
                                            "window=2..12 if spec=ngram", NULL});
    fm_mt    random;
    fm_mt_seed_python(&random, 3);
    int seen[3] = {0};
    for (int k = 0; k < 300; k++) {
        fm_point p;
        ok(fm_point_random(&s, &random, &p));
        const int spec = (int)p.v[0];
        seen[spec]++;
        assert_int_equal(isnan(p.v[1]), spec == 0);
        assert_int_equal(isnan(p.v[2]), spec != 1);
    }
    for (int i = 0; i < 3; i++) assert_true(seen[i] > 50);
    fm_space_fini(&s);
}

static void constraints_hold_for_every_draw(void **state)
{
    (void)state;
    fm_space s = make((const char *const[]){"tp={1,2,4,8}", "pp={1,2,4}", "m={core,socket}",
                                            "t=1..4 if m=core", NULL});
    ok(fm_space_constrain(&s, "tp*pp <= 8 && (m == core || tp > 1)"));
    ok(fm_space_constrain(&s, "t >= 2")); /* holds where t does not exist */
    static const char *const bad[] = {"tp <=", "tp ** 2", "(tp", "tp 3", "core + 1", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (fm_space_constrain(&s, bad[i]) != FM_E_ARG) fail_msg("\"%s\" was taken", bad[i]);
    assert_int_equal(fm_space_constrain(&s, "tp <= 4 && threds > 1"), FM_E_ARG);
    if (!strstr(fm_why(), "\"threds\"")) fail_msg("no word of the name: %s", fm_why());
    assert_int_equal(fm_space_constrain(&s, "m == sockets"), FM_E_ARG);
    if (!strstr(fm_why(), "\"sockets\"")) fail_msg("no word of the choice: %s", fm_why());
    fm_mt random;
    fm_mt_seed_python(&random, 4);
    int sockets = 0;
    for (int k = 0; k < 300; k++) {
        fm_point p;
        ok(fm_point_random(&s, &random, &p));
        const double tp = 1 << (int)p.v[0], pp = 1 << (int)p.v[1];
        assert_true(tp * pp <= 8);
        sockets += p.v[2] == 1;
        if (p.v[2] == 1)
            assert_true(tp > 1);
        else
            assert_true(p.v[3] >= 2);
    }
    assert_true(sockets > 50);
    ok(fm_space_constrain(&s, "tp > 8"));
    fm_point p;
    assert_int_equal(fm_point_random(&s, &random, &p), FM_E_FULL);
    fm_space_fini(&s);
}

static void arithmetic(void **state)
{
    (void)state;
    fm_space s = make((const char *const[]){"a=7..7", "page-size={16,32}", NULL});
    fm_point p = {{7, 0}};
    static const struct {
        const char *text;
        int         holds;
    } all[] = {{"a == 7", 1},
               {"a != 7", 0},
               {"a - 3 * 2 == 1", 1},
               {"(a - 3) * 2 == 8", 1},
               {"-a < 0", 1},
               {"a % 4 == 3", 1},
               {"a / 2 == 3.5", 1},
               {"a < 7 || a >= 7", 1},
               {"page-size*2 == 32", 1},
               {"a <= 6 && 1 == 1", 0},
               {"1", 1},
               {"0", 0}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int holds = -1;
        ok(fm_expr_holds(&holds, all[i].text, &s, &p));
        if (holds != all[i].holds) fail_msg("%s: %d", all[i].text, holds);
    }
    fm_space_fini(&s);
}

static void check_words(const fm_space *s, const fm_point *p, char *const *word, int n,
                        const char *want)
{
    char **out  = NULL;
    fm_str line = {0};
    ok(fm_words_fill(&out, s, p, word, n, 12, 3));
    fm_words_quote(&line, out);
    assert_string_equal(line.text, want);
    fm_words_free(out);
    fm_str_fini(&line);
}

static void words_are_filled(void **state)
{
    (void)state;
    fm_space s =
        make((const char *const[]){"n=1..9", "spec={off,on}", "drafts=1..8 if spec=on", NULL});
    char *const word[] = {
        "prog",     "-np",          "{n}",      "{spec?--fast}",   "{spec!--slow}",  "--drafts",
        "{drafts}", "--d={drafts}", "x{n}y{n}", "{\"json\": {n}}", "{trial}.{slot}", "it's"};
    fm_point on = {{4, 1, 2}}, off = {{4, 0, NAN}};
    check_words(&s, &on, word, 12,
                "prog -np 4 --fast --drafts 2 --d=2 x4y4 '{\"json\": 4}' 12.3 'it'\\''s'");
    check_words(&s, &off, word, 12, "prog -np 4 --slow x4y4 '{\"json\": 4}' 12.3 'it'\\''s'");
    ok(fm_words_check(&s, word, 12));
    assert_int_equal(fm_words_check(&s, word, 3), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "{spec}"));
    fm_space_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_read),
        cmocka_unit_test(broken_ones_are_refused),
        cmocka_unit_test(places_and_values_agree),
        cmocka_unit_test(narrow_ranges_keep_their_values),
        cmocka_unit_test(conditions_decide_what_exists),
        cmocka_unit_test(constraints_hold_for_every_draw),
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(words_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
