/* SPDX-License-Identifier: Apache-2.0 */
/* The guard that makes debug builds abort on an allocation inside a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc_guard.h"

static void *volatile kept;

static int dies(int guarded)
{
    const pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        if (guarded) fm_alloc_guard_begin();
        kept = malloc(100);
        if (guarded) fm_alloc_guard_end();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

static void allocation_inside_aborts(void **state)
{
    (void)state;
    if (!FM_ALLOC_GUARDED) {
        print_message("only debug builds without sanitizers guard allocations\n");
        skip();
    }
    assert_true(dies(1));
    assert_false(dies(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocation_inside_aborts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
