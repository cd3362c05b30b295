/* SPDX-License-Identifier: Apache-2.0 */
/* Versions that libraries say of themselves, from stand-ins for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "probe/libraries.h"

static void versions_are_read(void **state)
{
    (void)state;
    char text[128];
    fm_libraries_list(text, sizeof text);
    assert_string_equal(text, "NCCL=2.21.5\nCUDA driver=12.4\n"); /* UCX is not loaded */
    assert_non_null(dlopen("libucp.so.0", RTLD_NOW));
    fm_libraries_list(text, sizeof text);
    assert_string_equal(text, "NCCL=2.21.5\nCUDA driver=12.4\nUCX=1.13.1\n");
}

static void a_short_room_is_not_exceeded(void **state)
{
    (void)state;
    char text[16];
    fm_libraries_list(text, sizeof text);
    assert_string_equal(text, "NCCL=2.21.5\nCUD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_read),
        cmocka_unit_test(a_short_room_is_not_exceeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
