/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from a table: defaults, environment, and what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/knobs.h"

typedef struct {
    int64_t page_size, plain;
    double  ratio;
    int     quiet;
    char   *path, *none;
} options;

static const fm_knob table[] = {
    FM_KNOB(options, INT, page_size, "page-size", "16", 1, 64, "N", "tokens per page"),
    FM_KNOB(options, INT, plain, "plain", NULL, -10, 10, "N", "no default"),
    FM_KNOB(options, REAL, ratio, "ratio", "0.5", 0, 1, "X", "a share"),
    FM_KNOB(options, FLAG, quiet, "quiet", NULL, 0, 0, NULL, "say less"),
    FM_KNOB(options, WORD, path, "path", "here", 0, 0, "FILE", "where"),
    FM_KNOB(options, WORD, none, "none", NULL, 0, 0, "FILE", "no default"),
};
enum { N = sizeof table / sizeof *table };

static void set_ok(options *o, const char *name, const char *value)
{
    const fm_knob *k = fm_knob_find(table, N, name);
    assert_non_null(k);
    if (fm_knob_set(k, o, value) != FM_OK) fail_msg("refused: %s", fm_why());
}

static void set_refused(options *o, const char *name, const char *value)
{
    char           flag[64] = "--";
    const options  before   = *o;
    const fm_knob *k        = fm_knob_find(table, N, name);
    assert_non_null(k);
    assert_int_equal(fm_knob_set(k, o, value), FM_E_ARG);
    strcat(flag, name);
    if (!strstr(fm_why(), flag)) fail_msg("\"%s\" does not name %s", fm_why(), flag);
    assert_memory_equal(o, &before, sizeof before);
}

static void defaults(void **state)
{
    (void)state;
    options o = {0};
    assert_int_equal(fm_knobs_init(table, N, &o), FM_OK);
    assert_int_equal(o.page_size, 16);
    assert_int_equal(o.plain, 0);
    assert_true(o.ratio == 0.5);
    assert_int_equal(o.quiet, 0);
    assert_string_equal(o.path, "here");
    assert_null(o.none);
    fm_knobs_fini(table, N, &o);
    assert_null(o.path);
}

static void values(void **state)
{
    (void)state;
    options o = {0};
    assert_int_equal(fm_knobs_init(table, N, &o), FM_OK);
    set_ok(&o, "page-size", "64");
    set_ok(&o, "plain", "-10");
    set_ok(&o, "ratio", "1e-3");
    set_ok(&o, "quiet", NULL);
    assert_int_equal(o.page_size, 64);
    assert_int_equal(o.plain, -10);
    assert_true(o.ratio == 1e-3 && o.quiet == 1);
    set_ok(&o, "quiet", "false");
    assert_int_equal(o.quiet, 0);
    set_ok(&o, "quiet", "1");
    assert_int_equal(o.quiet, 1);
    set_ok(&o, "path", "");
    assert_string_equal(o.path, "");
    fm_knobs_fini(table, N, &o);
}

static void refusals(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"page-size", "0"},   {"page-size", "65"},  {"page-size", ""},
        {"page-size", "3x"},  {"page-size", "1.5"}, {"page-size", "99999999999999999999"},
        {"page-size", NULL},  {"ratio", "1.01"},    {"ratio", "nan"},
        {"ratio", "-0.1"},    {"ratio", "half"},    {"ratio", ""},
        {"quiet", "perhaps"}, {"quiet", ""},        {"path", NULL},
    };
    options o = {0};
    assert_int_equal(fm_knobs_init(table, N, &o), FM_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) set_refused(&o, bad[i][0], bad[i][1]);
    fm_knobs_fini(table, N, &o);
}

static void environment_wins_over_defaults(void **state)
{
    (void)state;
    options o = {0};
    setenv("FM_PAGE_SIZE", "8", 1);
    setenv("FM_PATH", "there", 1);
    setenv("FM_RATIO", "", 1); /* empty: as if it were not there */
    assert_int_equal(fm_knobs_init(table, N, &o), FM_OK);
    assert_int_equal(o.page_size, 8);
    assert_string_equal(o.path, "there");
    assert_true(o.ratio == 0.5);
    fm_knobs_fini(table, N, &o);

    setenv("FM_PAGE_SIZE", "many", 1);
    assert_int_equal(fm_knobs_init(table, N, &o), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "FM_PAGE_SIZE"));
    fm_knobs_fini(table, N, &o);
    unsetenv("FM_PAGE_SIZE");
    unsetenv("FM_PATH");
    unsetenv("FM_RATIO");
}

static void unknown_names(void **state)
{
    (void)state;
    assert_null(fm_knob_find(table, N, "page"));
    assert_null(fm_knob_find(table, N, ""));
    assert_ptr_equal(fm_knob_find(table, N, "ratio"), &table[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults), cmocka_unit_test(values),
        cmocka_unit_test(refusals), cmocka_unit_test(environment_wins_over_defaults),
        cmocka_unit_test(unknown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
