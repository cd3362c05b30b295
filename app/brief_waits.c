/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "brief_waits.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* Pauses, some 5 to 15 µs of them: longer than most waits between two parts of
 * a step, much shorter than the turn of whoever has taken the core of the
 * thread waited for. */
static const char turns[] = "300";

void fm_wait_briefly(char **argv)
{
    char          program[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0 || getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
    program[n] = 0;
    if (setenv("GOMP_SPINCOUNT", turns, 1) == 0) execv(program, argv);
}
