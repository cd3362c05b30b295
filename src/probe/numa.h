/* SPDX-License-Identifier: Apache-2.0 */
/* The NUMA nodes whose cores this process may use: memory on one of them, and a
 * team of threads on its cores. */
#ifndef FM_PROBE_NUMA_H
#define FM_PROBE_NUMA_H

#include <stddef.h>

#include "base/status.h"

typedef struct fm_numa fm_numa;

fm_status fm_numa_open(fm_numa **out);
void      fm_numa_close(fm_numa *t); /* NULL is fine; threads may run where they could before */

int    fm_numa_count(const fm_numa *t);         /* at least 1 */
int    fm_numa_id(const fm_numa *t, int i);     /* the system's number */
int    fm_numa_cores(const fm_numa *t, int i);  /* this process may use */
size_t fm_numa_cache(const fm_numa *t);         /* bytes of the largest cache; 0: not known */

/* Pages not yet touched come from the node. */
void fm_numa_place(const fm_numa *t, int i, void *p, size_t bytes);

/* Team of fm_numa_cores(t, i) threads, each on a core of the node; then where they were. */
void fm_numa_gather(const fm_numa *t, int i);
void fm_numa_release(const fm_numa *t);

#endif
