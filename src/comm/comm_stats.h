/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of a group cost this rank, per collective. */
#ifndef FM_COMM_COMM_STATS_H
#define FM_COMM_COMM_STATS_H

#include <stdint.h>

#include "base/str.h"
#include "comm/comm.h"

typedef struct {
    uint64_t calls, bytes;
    double   busy_s; /* this rank could do nothing else */
    double   wait_s; /* of it, until the last rank had arrived; known only with the report on */
} fm_comm_cost;

struct fm_comm_stats {
    char         name[16];
    fm_comm_cost cost[FM_N_COMM_KIND];
};

/* Bytes this rank puts in and takes out of a call. */
size_t fm__call_bytes(const fm_comm *c, const fm_comm_call *call);

typedef struct {
    const fm_comm_stats *all; /* [n_rank, n_group]; unused ones have no name */
    int                  n_rank, n_group;
    double               wall_s;
    int                  has_wait;
} fm__stats_table;

/* Per group and collective: mean over the ranks that used it, and how much
 * longer the longest took; then per rank. */
void fm__stats_print(fm_str *out, const fm__stats_table *t);

#endif
