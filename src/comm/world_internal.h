/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a world (world.h): where each rank runs, its wire and watch, and the statistics of
 * its groups. */
#ifndef FM_COMM_WORLD_INTERNAL_H
#define FM_COMM_WORLD_INTERNAL_H

#include "comm/comm_stats.h"
#include "comm/p2p/p2p.h"
#include "comm/watch.h"
#include "comm/world.h"

enum { FM__HOST_BYTES = 64, FM__MAX_STATS = 24 };

/* Where a rank runs.  Machines are identified by host name and boot id: names may repeat, and
 * containers of one machine share the boot id. */
typedef struct {
    char     host[FM__HOST_BYTES];
    uint64_t boot;
    uint64_t cpus; /* a key of those it may use */
} fm__seat;

struct fm_world {
    fm_world_options options;
    fm_comm         *comm;
    fm_wire         *wire;        /* owned; NULL in a world of one */
    fm__watch       *watch;       /* owned; NULL in a world of one */
    fm__seat        *seat;        /* [n_rank] */
    size_t       *bytes;          /* [n_rank] counts for gathers of equal pieces */
    double        began;
    fm_comm_observer *observer; /* NULL: there is no observer */
    void             *observer_ctx;
    char          why[400]; /* the first failure of a group; empty: none */
    int           n_stats;
    fm_comm_stats stats[FM__MAX_STATS]; /* by group name, in the order of their making */
};

/* All of these accept a NULL world: a group outside any. */
fm_comm_stats *fm__world_stats(fm_world *w, const char *name); /* NULL without a world */
double         fm__world_timeout(const fm_world *w);
int            fm__world_reports(const fm_world *w);
void           fm__world_blame(fm_world *w); /* fm_why() broke a group */
void           fm__world_count(fm_world *w);
void           fm__world_waits(fm_world *w, fm_comm_kind k, int for_rank); /* -1: for no rank */
void           fm__world_tell_observer(const fm_comm *c, const fm_comm_job *job);
fm_status      fm__world_timed_out(const fm_comm *c, const fm_comm_job *job, double waited);

/* `bytes` of every rank, in rank order, on every rank. */
fm_status fm__world_gather(fm_world *w, void *all, const void *mine, size_t bytes);

int fm__world_same_host(const fm_world *w, int a, int b);

void fm__seat_find(fm__seat *mine);

/* Where this process may run, one line: "socket 0  numa 0  cores 0-7 (8)". */
void fm__place_text(char *out, size_t bytes);

#endif
