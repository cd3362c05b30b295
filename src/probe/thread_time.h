/* SPDX-License-Identifier: Apache-2.0 */
/* How long the calling thread has been running on a CPU, in seconds. */
#ifndef FM_PROBE_THREAD_TIME_H
#define FM_PROBE_THREAD_TIME_H

#include <time.h>

static inline double fm_thread_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
