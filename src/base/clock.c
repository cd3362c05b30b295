/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"

#include <time.h>

static double started;

double fm_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Before main, so that no first call is needed. */
__attribute__((constructor)) static void note_start(void)
{
    started = fm_now();
}

double fm_start_time(void)
{
    return started;
}
