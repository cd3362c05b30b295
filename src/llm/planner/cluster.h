/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster that is only described: so many hosts with so many devices each, and the ways between
 * them.
 *
 *     "2x8xH200"         hosts x devices x kind; "8xH200" is one host
 *     cluster.json       {"nodes": 2, "devices": 8, "device": "H200",
 *                         "near": {"latency_s": …, "bytes_per_s": …}, "far": {…},
 *                         "tiers": {"host_in_bytes_per_s": …, …}}
 *     rates.json         written by fathom doctor: hosts, ranks of a host, links and what the CPUs
 *                        reach as measured
 *
 * What a device can do stands in its table of costs (tuned.h).  Links that are not given are those
 * of the table here, by the kind of device: NVLink inside a host, InfiniBand between hosts, PCIe to
 * host memory. */
#ifndef FM_LLM_PLANNER_CLUSTER_H
#define FM_LLM_PLANNER_CLUSTER_H

#include "llm/planner/scaled.h"

typedef struct {
    int           n_node, per_node; /* hosts, and devices of each: one rank a device */
    char          device[64];       /* its table of costs */
    fm_link       near, far;        /* between two ranks of a host, and of two hosts */
    int           is_near_measured, is_far_measured; /* not described, nor those of its kind */
    fm_tier_rates tiers;
    fm_cpu_limits cpu; /* of a host, where they were measured */
} fm_cluster;

/* By the words above; a word that ends in .json is a file.  FM_E_ARG, FM_E_IO, FM_E_FORMAT. */
fm_status fm_cluster_read(fm_cluster *out, const char *words);

/* Fills in links that are not known: of the device's table, else of its kind. */
void fm_cluster_fill_links(fm_cluster *c, const fm_tuned *t);

#endif
