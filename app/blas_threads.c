/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "blas_threads.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Second to OPENBLAS_NUM_THREADS, which is the user's. */
#define TOLD "GOTO_NUM_THREADS"

static int is_limited(int resource)
{
    struct rlimit r;
    return getrlimit(resource, &r) == 0 && r.rlim_cur != RLIM_INFINITY;
}

void fm_blas_threads_avoid(char **argv)
{
    char program[PATH_MAX] = "";
    if (getenv(TOLD)) {
        unsetenv(TOLD);
        return;
    }
    if (getenv("OPENBLAS_NUM_THREADS")) return;
    if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return;
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0) return;
    setenv(TOLD, "1", 1);
    execv(program, argv);
    unsetenv(TOLD);
}
