/* SPDX-License-Identifier: Apache-2.0 */
/* How long collectives of a group of ranks take: latencies along a tree of ranks, then the bytes
 * a rank receives over the slower of its links (within a host, between hosts).
 *
 * Ranks are numbered host by host, and a group is ranks that follow each other at a constant
 * distance, so a group of n ranks spreads evenly over its hosts. */
#ifndef FM_LLM_PLANNER_LINKS_H
#define FM_LLM_PLANNER_LINKS_H

#include "llm/planner/cluster.h"

typedef struct {
    int n;      /* ranks */
    int n_host; /* number of hosts it spans */
} fm_group;

/* n ranks `apart` from each other on hosts of per_node ranks. */
fm_group fm_group_of(int n, int apart, int per_node);

/* Every rank receives `bytes`, the same for all: what comes from other hosts comes in once a host,
 * by all its cards together, and is passed on inside. */
double fm_gather_seconds(const fm_cluster *c, fm_group g, double bytes);

/* Every rank receives `bytes` of its own, from all others alike. */
double fm_all_to_all_seconds(const fm_cluster *c, fm_group g, double bytes);

/* From one rank to another. */
double fm_send_seconds(const fm_cluster *c, int is_far, double bytes);

#endif
