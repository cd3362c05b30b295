/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores the threads of a team run on, and where the memory they share
 * lies.
 *
 *     fm_threads_create   how many threads, and a place for each
 *     fm_threads_pin      the OpenMP team of the calling thread goes there
 *     fm_threads_spread   memory all of them read: over their NUMA nodes
 *     fm_threads_destroy  every thread may run where it could before
 *
 * A place is one CPU of one physical core, in the order of the machine, so
 * that neighbours in the team are neighbours on the chip.  A thread made by a
 * pinned one inherits its place: make other threads before pinning, or let
 * them call fm_threads_roam. */
#ifndef FM_DEVICE_HOST_THREADS_H
#define FM_DEVICE_HOST_THREADS_H

#include <stddef.h>

#include "base/status.h"

typedef struct fm_threads fm_threads;

/* `how` is "auto", "none" or a list of CPUs such as "0-7,16".
 *
 * auto binds when the team has exactly as many threads as this process has cores.
 * With more threads than cores, or with cores left that other processes may use, the
 * system places the threads.  A list is taken
 * literally.  n_thread 0: as many as there are cores, but not more than the CPU
 * quota of a control group keeps busy; or CPUs in the list.
 *
 * FM_E_ARG: the list cannot be read, names a CPU this process may not use, or
 * is shorter than the team. */
fm_status fm_threads_create(fm_threads **out, const char *how, int n_thread);

/* The same for one of `n` processes that may all use the same cores: the
 * index-th part of them, and of the quota.  With fewer cores than processes a
 * part is one core that others have, too, and auto binds nothing.  A list is
 * still taken literally. */
fm_status fm_threads_create_part(fm_threads **out, const char *how, int n_thread, int index, int n);

/* The same with a quota that is known already. */
typedef struct {
    int index, n;
    int quota; /* CPUs' worth of time for all n; 0: no quota */
} fm_threads_part;

fm_status fm_threads_create_within(fm_threads **out, const char *how, int n_thread,
                                   fm_threads_part p);
void      fm_threads_destroy(fm_threads *t); /* NULL is fine; unpins what it pinned */

int fm_threads_count(const fm_threads *t);
int fm_threads_bound(const fm_threads *t);        /* 0: the system places them */
int fm_threads_cpu(const fm_threads *t, int i);   /* of thread i; -1 when not bound */
int fm_threads_nodes(const fm_threads *t);        /* NUMA nodes they span, at least 1 */

/* To be called by the thread that opens the parallel regions: teams belong to
 * it.  Cheap when they are in their place already, so it may be called before
 * every step.  Returns how many threads are in their place. */
int fm_threads_pin(fm_threads *t);

/* The calling thread alone may run on any core of the process again. */
void fm_threads_roam(const fm_threads *t);

/* The calling thread's team ends; a parallel region makes a new one.  OpenMP
 * counts the threads of all teams, and when they are more than the CPUs it
 * puts every waiting thread to sleep instead of spinning: a team that has no more work
 * slows down the others. */
void fm_threads_dismiss(void);

/* Interleaves pages that are not yet touched over the team's NUMA nodes, so that no node's
 * memory is the bottleneck.  Nothing happens on one node; NULL is fine. */
void fm_threads_spread(const fm_threads *t, void *p, size_t bytes);

#endif
