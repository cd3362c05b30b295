/* SPDX-License-Identifier: Apache-2.0 */
/* Words that drafts are looked for among follow what is generated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/op/cpu/likely.h"

enum { WORDS = 3060, PANELS = 96, PANEL = 32 };

static fm_likely begin(fm_slab *s)
{
    fm_likely l = {0};
    *s          = (fm_slab){0};
    fm_likely_carve(&l, WORDS, s);
    *s = (fm_slab){.base = aligned_alloc(64, (s->used + 63) / 64 * 64), .size = s->used};
    fm_likely_carve(&l, WORDS, s);
    fm_likely_init(&l);
    return l;
}

static int has(const fm_likely *l, int panel)
{
    for (int i = 0; i < l->n; i++)
        if (l->panel[i] == panel) return 1;
    return 0;
}

static void is_ascending(const fm_likely *l)
{
    for (int i = 1; i < l->n; i++) assert_true(l->panel[i] > l->panel[i - 1]);
    assert_true(l->n > 0 && l->panel[l->n - 1] < PANELS);
}

/* n tokens of panels first, first + 3, ..., of which there are eight. */
static void say(fm_likely *l, int first, int n)
{
    for (int i = 0; i < n; i++) {
        fm_likely_count(l, (first + 3 * (int)(fm_rng_u32(1, (uint64_t)i) % 8)) * PANEL + i % PANEL);
        fm_likely_choose(l);
    }
}

static void all_are_likely_at_first(void **state)
{
    fm_slab   s;
    fm_likely l = begin(&s);
    (void)state;
    assert_int_equal(l.n, PANELS);
    say(&l, 5, 300);
    assert_int_equal(l.n, PANELS);
    is_ascending(&l);
    free(s.base);
}

static void those_of_the_text_are(void **state)
{
    fm_slab   s;
    fm_likely l = begin(&s);
    (void)state;
    say(&l, 5, 3000);
    fm_likely_count(&l, 90 * PANEL);
    assert_int_equal(l.n, 8);
    for (int i = 0; i < 8; i++) assert_true(has(&l, 5 + 3 * i));
    is_ascending(&l);
    free(s.base);
}

/* Another text has other words, and what is forgotten is looked at no more. */
static void another_text_is_noticed(void **state)
{
    fm_slab   s;
    fm_likely l = begin(&s);
    (void)state;
    say(&l, 5, 20000);
    say(&l, 70, 9000);
    for (int i = 0; i < 8; i++) assert_true(has(&l, 70 + 3 * i));
    say(&l, 70, 60000);
    assert_int_equal(l.n, 8);
    free(s.base);
}

static void where_all_are_used_all_stay(void **state)
{
    fm_slab   s;
    fm_likely l = begin(&s);
    (void)state;
    for (int i = 0; i < 50000; i++) {
        fm_likely_count(&l, (int)(fm_rng_u32(2, (uint64_t)i) % WORDS));
        fm_likely_choose(&l);
    }
    assert_true(l.n > PANELS - 4); /* the last has fewer words */
    is_ascending(&l);
    free(s.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_likely_at_first),
        cmocka_unit_test(those_of_the_text_are),
        cmocka_unit_test(another_text_is_noticed),
        cmocka_unit_test(where_all_are_used_all_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
