/* SPDX-License-Identifier: Apache-2.0 */
/* What layers cost when a pipeline is cut by the clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/open/layers.h"

/* A byte costs seconds whatever its type; 1 would be a byte's price by memory. */
static void every_type_of_a_model_has_a_measured_price(void **state)
{
    (void)state;
    const fm_model_config fp8  = {.fp8 = 1, .n_expert = 8, .top_k = 2};
    const fm_model_config int4 = {.int4 = 1, .n_expert = 8, .top_k = 2};
    fm__prices            p;
    assert_int_equal(fm__prices_measure(&p, &fp8, FM_BF16, 4), FM_OK);
    assert_true(p.dense[FM_BF16] < 1e-3 && p.dense[FM_FP8] < 1e-3 && p.expert[FM_FP8] < 1e-3);
    assert_int_equal(fm__prices_measure(&p, &int4, FM_BF16, 4), FM_OK);
    assert_true(p.dense[FM_BF16] < 1e-3 && p.dense[FM_INT4] < 1e-3 && p.expert[FM_INT4] < 1e-3);
    assert_true(p.dense[FM_INT4] > 0 && p.expert[FM_INT4] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_a_model_has_a_measured_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
