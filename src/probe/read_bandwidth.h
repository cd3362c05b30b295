/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes per second out of main memory when all threads of the OpenMP team read
 * an arena, each a share of it.  The arena is much larger than the caches, and
 * its pages have been touched. */
#ifndef FM_PROBE_READ_BANDWIDTH_H
#define FM_PROBE_READ_BANDWIDTH_H

#include <stddef.h>

#include "probe/peak.h"

/* At best: of several passes and of one, two and four streams a thread. */
double fm_read_bandwidth(const void *arena, size_t bytes, int n_thread);

/* The mean over a stretch of time.  `bytes` is at least 4 MiB a thread. */
fm_sustained fm_read_sustained(const void *arena, size_t bytes, int n_thread, double seconds);

#endif
