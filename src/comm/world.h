/* SPDX-License-Identifier: Apache-2.0 */
/* The job this process belongs to: all its ranks.
 *
 *     open ──> agree on what matters ──> groups (comm/comm.h) ──> close
 *                        │
 *                        └─ a watch thread per rank: dead, silent or aborting
 *                           ranks take the whole job down
 *
 * Started by mpirun or srun, a world has all their ranks; otherwise one, and
 * MPI is not touched.
 *
 * Failure.  A rank that dies, stops answering or calls fm_world_abort ends the
 * job: one line on stderr names rank, host and what it was doing, and every
 * rank leaves with FM_WORLD_EXIT.  This is the one place where the library
 * prints and exits: the thread that learns of it has no caller to return to.
 * A terminate signal ends the job in the same way, half a second later, since
 * launchers send one when they have lost a rank: the lost rank is what is reported.
 *
 * Threads: as comm/comm.h; fm_world_doing and fm_world_abort from any. */
#ifndef FM_COMM_WORLD_H
#define FM_COMM_WORLD_H

#include <stdint.h>

#include "base/knobs.h"
#include "base/str.h"
#include "comm/comm.h"

enum { FM_WORLD_EXIT = 3 };

/* Rank 0's options hold for all ranks, except the interface. */
typedef struct {
    double comm_timeout; /* seconds a wait may take */
    double comm_silence; /* seconds without a word after which a rank counts as lost */
    int    comm_report;  /* measure waiting apart from transfer: a barrier before each collective */
    int    no_launch;    /* the program starts no launcher by itself */
    char  *comm_interface; /* network the watch threads of other hosts reach rank 0 on; NULL: any */
} fm_world_options;

extern const fm_knob fm_world_knobs[];
extern const int     fm_n_world_knob;

/* The rank that the launcher gave this process, known before there is a world; 0 without one. */
int fm_world_launched_as(void);
int fm_world_is_launched(void); /* by mpirun or srun, be it as the only rank */

/* NULL options: defaults and what the environment says (FM_COMM_TIMEOUT ...).
 * FM_E_NOSUP: started as many ranks by a launcher this build cannot talk to. */
fm_status fm_world_open(fm_world **out, const fm_world_options *o);

/* All ranks leave together.  If a group failed, this is fm_world_abort with
 * its reason.  NULL is fine.  Groups made by fm_comm_split are closed before. */
void fm_world_close(fm_world *w);

fm_comm    *fm_world_comm(fm_world *w);                 /* all ranks; borrowed */
const char *fm_world_host(const fm_world *w, int rank); /* borrowed */

/* How many ranks are on this host, and this rank's index among them. Then the same for the ranks of
 * the host that may use exactly the CPUs this one may: one where the launcher has given each rank
 * its own. */
int fm_world_on_host(const fm_world *w, int *index);
int fm_world_on_cpus(const fm_world *w, int *index);

/* The lowest rank that runs under the same kernel as `rank`, whatever their hosts are called:
 * ranks with the same number share memory and cores, as those of containers do. */
int fm_world_machine(const fm_world *w, int rank);

/* FM_E_COMM on every rank, naming those that differ and both texts, unless
 * all pass the same hash.  `text` is what a human would compare. */
fm_status fm_world_agree(fm_world *w, const char *name, uint64_t hash, const char *text);

/* A table of rank, host, socket, NUMA node and cores, the same on all ranks. */
fm_status fm_world_placement(fm_world *w, fm_str *out);

/* The library that carries messages, as it calls itself; "": there is none. */
void fm_world_library(char *out, size_t size);

/* What this rank is at, for the line about its end; cheap, cut at 120 bytes. */
void fm_world_doing(fm_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Ends the job: "rank 2 on node7: <text>; it was: <doing>". */
_Noreturn void fm_world_abort(fm_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* A call of a group that ended on this rank. */
typedef struct {
    const char  *group; /* its name */
    uint32_t     id;    /* of the group, and */
    uint32_t     serial; /* of a collective in it: alike on its ranks */
    fm_comm_kind kind;
    int          peer; /* SEND, RECV, BROADCAST: a rank of the group */
    size_t       bytes;
    double       began, ended, busy_s; /* fm_now(); seconds this rank could do nothing else */
} fm_comm_note;
typedef void fm_comm_observer(void *ctx, const fm_comm_note *n);

/* Calls `fn` after every finished collective, on the thread that made it; NULL removes it. */
void fm_world_observe(fm_world *w, fm_comm_observer *fn, void *ctx);

/* On all ranks: what communication cost, per collective and per rank.  Rank 0
 * gets the text, the others nothing. */
fm_status fm_world_report(fm_world *w, fm_str *out);

#endif
