/* SPDX-License-Identifier: Apache-2.0 */
/* A counter shared by the ranks of a group: fetch-and-add, so that every number
 * is given out once.  Work is divided dynamically by it: number i is task i.
 *
 *     open ──> { reset ──> next, next, ... on any rank ──> a collective } ──> close
 *
 * Ranks of one host add to a word in shared memory.  A group that spans hosts
 * asks the watch thread of world rank 0 by TCP, which answers at once whatever
 * that rank computes; no rank has to enter MPI for another's progress.
 *
 * Threads: fm_counter_next from any thread of a rank, also at the same time.
 * The rest as comm/comm.h. */
#ifndef FM_COMM_COUNTER_H
#define FM_COMM_COUNTER_H

#include "comm/comm.h"

typedef struct fm_counter fm_counter;

/* Collective over the group.  The group must outlive the counter. */
fm_status fm_counter_open(fm_counter **out, fm_comm *comm);
void      fm_counter_close(fm_counter *c); /* NULL is fine; not collective */

/* Begins a new round, in which numbers start at 0 again.  Every rank calls it,
 * in the same order as its collectives; the call does not wait.  Between two resets
 * all ranks pass a collective that waits for all of them. */
void fm_counter_reset(fm_counter *c);

/* The next number of this round.  FM_E_COMM: rank 0 did not answer in time. */
fm_status fm_counter_next(fm_counter *c, long long *number);

#endif
