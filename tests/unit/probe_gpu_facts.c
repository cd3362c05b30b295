/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML says about GPUs, from a stand-in for the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probe/gpu_facts.h"

static void a_good_gpu(void **state)
{
    (void)state;
    fm_gpu_facts g;
    char         why[64];
    assert_int_equal(fm_gpu_facts_read(&g, 0, NULL), FM_OK);
    assert_string_equal(g.name, "Stand-in 0");
    assert_string_equal(g.driver, "555.1");
    assert_int_equal(g.mhz, 1980);
    assert_int_equal(g.mhz_memory, 3200);
    assert_int_equal(g.watt, 650);
    assert_int_equal(g.n_link, 4);
    assert_int_equal(g.n_link_active, 4);
    assert_int_equal(g.uncorrected, 0);
    assert_int_equal(g.has_ecc, 1);
    fm_gpu_throttle_words(g.throttled, why, sizeof why); /* idle is no reason */
    assert_string_equal(why, "");
}

static void a_bad_gpu_by_its_address(void **state)
{
    (void)state;
    fm_gpu_facts g;
    char         why[64];
    assert_int_equal(fm_gpu_facts_read(&g, 1, "0000:1B:00.0"), FM_OK);
    assert_int_equal(g.mhz, 900);
    assert_int_equal(g.celsius, 91);
    assert_int_equal(g.pcie_width, 8);
    assert_int_equal(g.pcie_width_most, 16);
    assert_int_equal(g.n_link_active, 3);
    assert_int_equal(g.corrected, 30);
    assert_int_equal(g.uncorrected, 2);
    fm_gpu_throttle_words(g.throttled, why, sizeof why);
    assert_string_equal(why, "heat, by the hardware, the power cap");
}

static void what_the_driver_lacks_is_not_known(void **state)
{
    (void)state;
    fm_gpu_facts g;
    assert_int_equal(fm_gpu_facts_read(&g, 0, NULL), FM_OK);
    assert_int_equal(g.watt_limit, -1);
    assert_int_equal(g.pcie_generation, -1);
    assert_int_equal(fm_gpu_facts_read(&g, 7, NULL), FM_E_NOSUP);
    assert_int_equal(g.index, -1);
    assert_int_equal(g.mhz, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_gpu),
        cmocka_unit_test(a_bad_gpu_by_its_address),
        cmocka_unit_test(what_the_driver_lacks_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
