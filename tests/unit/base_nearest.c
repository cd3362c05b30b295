/* SPDX-License-Identifier: Apache-2.0 */
/* Which name a misspelt one is near to, and that not every word has one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/nearest.h"

static const char *nearest(const char *word)
{
    static const char *const names[] = {"page-size", "max-total-tokens", "tp", "tp-size", "dp"};

    fm_nearest n = {.word = word};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) fm_nearest_offer(&n, names[i]);
    return n.name;
}

static void a_letter_and_one_more_for_every_four(void **state)
{
    (void)state;
    assert_string_equal(nearest("pagesize"), "page-size");
    assert_string_equal(nearest("pge-sze"), "page-size");
    assert_string_equal(nearest("max-totel-tokns"), "max-total-tokens");
    assert_string_equal(nearest("tpsize"), "tp-size");
}

static void the_first_of_equals(void **state)
{
    (void)state;
    assert_string_equal(nearest("xp"), "tp");
}

static void none(void **state)
{
    (void)state;
    assert_null(nearest("page"));
    assert_null(nearest("abc"));
    assert_null(nearest("max-total-tokens-and-many-more-letters-than-any-name-in-a-table-has-got"));
    assert_null(nearest(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_and_one_more_for_every_four),
        cmocka_unit_test(the_first_of_equals),
        cmocka_unit_test(none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
