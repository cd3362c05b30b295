/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of pages, against values that xxhsum -H2 gave for the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/kv/page_hash.h"

static void expect(fm_page_hash got, uint64_t hi, uint64_t lo)
{
    assert_true(got.hi == hi && got.lo == lo);
}

static void a_chain_has_the_values_of_the_reference(void **state)
{
    (void)state;
    const int32_t few[3] = {1, 2, 3};
    int32_t       many[FM_PAGE_HASH_TOKENS];
    for (int i = 0; i < FM_PAGE_HASH_TOKENS; i++) many[i] = 100000;

    const fm_page_hash root = fm_page_hash_root(7);
    expect(root, 0xdeb6d224c549cbd3u, 0xe8c0d782b2f61276u);
    const fm_page_hash first = fm_page_hash_next(root, few, 3);
    expect(first, 0x82cbb2d6fd3726fcu, 0x6eaa93559c5c31e5u);
    expect(fm_page_hash_next(first, many, FM_PAGE_HASH_TOKENS), 0x0506e6e14bc07df1u,
           0x9b778ff0dee2c342u);
}

static void the_same_page_after_another_prefix_differs(void **state)
{
    (void)state;
    const int32_t      a[2] = {1, 2}, b[2] = {2, 1}, page[2] = {5, 6};
    const fm_page_hash root = fm_page_hash_root(0);
    const fm_page_hash x = fm_page_hash_next(fm_page_hash_next(root, a, 2), page, 2);
    const fm_page_hash y = fm_page_hash_next(fm_page_hash_next(root, b, 2), page, 2);
    assert_false(fm_hash_equal(x, y));
    assert_true(fm_hash_equal(x, fm_page_hash_next(fm_page_hash_next(root, a, 2), page, 2)));
    assert_false(fm_hash_equal(root, fm_page_hash_root(1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_has_the_values_of_the_reference),
        cmocka_unit_test(the_same_page_after_another_prefix_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
