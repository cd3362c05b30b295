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

typedef enum { FREE, GUARDED, PAUSED } how;

static int dies(how h)
{
    const pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        if (h != FREE) fm_alloc_guard_begin();
        const int paused = h == PAUSED ? fm_alloc_guard_pause() : 0;
        kept             = malloc(100);
        if (h == PAUSED) fm_alloc_guard_resume(paused);
        if (h != FREE) fm_alloc_guard_end();
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
    assert_true(dies(GUARDED));
    assert_false(dies(FREE));
}

/* As around MPI: what happens inside is not ours, and the guard goes on after. */
static void a_pause_is_no_end(void **state)
{
    (void)state;
    if (!FM_ALLOC_GUARDED) skip();
    assert_false(dies(PAUSED));
    fm_alloc_guard_begin();
    const int paused = fm_alloc_guard_pause();
    fm_alloc_guard_resume(paused);
    assert_true(dies(FREE)); /* the child inherits the guard */
    fm_alloc_guard_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocation_inside_aborts),
                                       cmocka_unit_test(a_pause_is_no_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
