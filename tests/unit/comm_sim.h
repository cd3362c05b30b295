/* SPDX-License-Identifier: Apache-2.0 */
/* A wire inside one process: several ranks, one thread.  Messages arrive when
 * chance says so, and half of them are read from the sender's memory only
 * then, so a buffer that changes too early shows. */
#ifndef FM_TESTS_UNIT_COMM_SIM_H
#define FM_TESTS_UNIT_COMM_SIM_H

#include "comm/p2p/p2p.h"

enum { SIM_RANKS = 17 };

typedef struct sim sim;

sim     *sim_create(int n_rank, uint64_t seed, size_t scratch_bytes);
void     sim_destroy(sim *s);
fm_comm *sim_group(sim *s, int rank);
fm_comm *sim_add_group(sim *s, int rank, const int *member, int n, int place, int context);
uint32_t sim_draw(sim *s, uint32_t below);
int      sim_undelivered(const sim *s); /* messages that were never received */

#endif
