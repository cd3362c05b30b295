/* SPDX-License-Identifier: Apache-2.0 */
/* Near-ties of experts and of groups may be decided either way, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/op/route_check.h"

enum { E = 12 };

static const fm_model_config plain = {
    .n_expert = E, .top_k = 3, .n_group = 1, .top_group = 1, .route = FM_ROUTE_GREEDY};
static const fm_model_config grouped = {
    .n_expert = E, .top_k = 3, .n_group = 4, .top_group = 2, .route = FM_ROUTE_GROUP_LIMITED};
static const fm_model_config v3 = {
    .n_expert = E, .top_k = 3, .n_group = 4, .top_group = 2, .route = FM_ROUTE_NOAUX_TC};

static int possible(const fm_model_config *c, const float *p, int a, int b, int d)
{
    const fm_route_row x        = {.config = c, .probability = p, .near = 0.01f};
    const int32_t      expert[] = {a, b, d};
    return fm_route_is_possible(&x, expert);
}

static void single_experts(void **state)
{
    static const float p[E] = {.1f, .9f, .2f, .5f, .502f, .3f, .8f, .1f, .2f, .1f, .1f, .1f};
    (void)state;
    assert_true(possible(&plain, p, 1, 6, 4));
    assert_true(possible(&plain, p, 3, 1, 6));  /* 3 and 4 nearly tie; any order */
    assert_false(possible(&plain, p, 1, 3, 4)); /* 6 is missing */
    assert_false(possible(&plain, p, 1, 6, 5)); /* 3 and 4 are better */
    assert_false(possible(&plain, p, 1, 6, 6));
    assert_false(possible(&plain, p, 1, 6, E));
    assert_false(possible(&plain, p, 1, 6, -1));
}

static void groups_by_their_best(void **state)
{
    /* groups of 3: best .9 | .6 | .603 | .2 */
    static const float p[E] = {.9f, .1f, .1f, .6f, .5f, .1f, .603f, .1f, .05f, .2f, .2f, .2f};
    (void)state;
    assert_true(possible(&grouped, p, 0, 6, 7));   /* groups 0 and 2 */
    assert_true(possible(&grouped, p, 0, 3, 4));   /* groups 0 and 1: they nearly tie with 2 */
    assert_true(possible(&grouped, p, 0, 6, 1));   /* 1, 2, 7 tie within the groups */
    assert_false(possible(&grouped, p, 0, 6, 8));  /* 8 is worse than those */
    assert_false(possible(&grouped, p, 0, 9, 10)); /* group 3 is clearly out */
    assert_false(possible(&grouped, p, 6, 3, 4));  /* group 0 is clearly in, and its 0 the best */
    assert_false(possible(&grouped, p, 0, 3, 5));  /* the right groups, but 4 is left out */
}

static void groups_by_their_best_two(void **state)
{
    /* sums: 1.0 | 1.1 | 1.101 | .4 */
    static const float p[E] = {.9f, .1f, .1f, .6f, .5f, .1f, .601f, .5f, .1f, .2f, .2f, .2f};
    (void)state;
    assert_true(possible(&v3, p, 3, 4, 6) && possible(&v3, p, 6, 3, 7));
    assert_false(possible(&v3, p, 0, 3, 6)); /* 0 is the best expert, in a group that is out */
}

static void the_bias_takes_part_in_the_choice(void **state)
{
    static const float p[E]    = {.5f, .5f, .5f, .1f};
    static const float bias[E] = {0, 0, 0, .9f};
    const fm_route_row x       = {.config = &plain, .probability = p, .bias = bias, .near = 0.01f};
    (void)state;
    assert_true(fm_route_is_possible(&x, (const int32_t[]){3, 0, 1}));
    assert_false(fm_route_is_possible(&x, (const int32_t[]){2, 0, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_experts),
        cmocka_unit_test(groups_by_their_best),
        cmocka_unit_test(groups_by_their_best_two),
        cmocka_unit_test(the_bias_takes_part_in_the_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
