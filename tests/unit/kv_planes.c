/* SPDX-License-Identifier: Apache-2.0 */
/* Planes of the cache: sizes and places in a pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/kv/planes.h"

static const fm_planes eight_bits = {.plane = {{FM_PLANE_LATENT, 576, FM_FP8, 61},
                                               {FM_PLANE_SCALE, 1, FM_F32, 61}},
                                     .n     = 2};

static void a_page_holds_every_plane(void **state)
{
    (void)state;
    assert_int_equal(fm_planes_page_bytes(&eight_bits, 64), 64 * 61 * (576 + 4));
    const fm_planes bf16 = {.plane = {{FM_PLANE_LATENT, 576, FM_BF16, 61}}, .n = 1};
    assert_int_equal(fm_planes_page_bytes(&bf16, 1), 61 * 576 * 2);
    assert_null(fm_planes_find(&bf16, FM_PLANE_SCALE));
}

/* The last byte of the last plane is the last of the pool: no gap, no overlap. */
static void planes_lie_one_after_the_other(void **state)
{
    (void)state;
    const size_t    n_slot = 10 * 64;
    const fm_plane *latent = fm_planes_find(&eight_bits, FM_PLANE_LATENT);
    const fm_plane *scale  = fm_planes_find(&eight_bits, FM_PLANE_SCALE);
    assert_int_equal(fm_planes_offset(&eight_bits, latent, n_slot), 0);
    assert_int_equal(fm_planes_offset(&eight_bits, scale, n_slot), 61 * n_slot * 576);
    assert_int_equal(fm_planes_offset(&eight_bits, scale, n_slot) + 61 * n_slot * 4,
                     10 * fm_planes_page_bytes(&eight_bits, 64));
}

static void the_widest_plane_names_the_type(void **state)
{
    (void)state;
    assert_string_equal(fm_planes_type(&eight_bits), "fp8_e4m3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_holds_every_plane),
        cmocka_unit_test(planes_lie_one_after_the_other),
        cmocka_unit_test(the_widest_plane_names_the_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
