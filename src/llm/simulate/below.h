/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below the pool of one replica, in a simulation: the engine's own policy (tier_policy.h)
 * decides which pages move and whether a load pays; links and a disk of given rates say when they
 * have moved.
 *
 *     policy ──moves──> link: pool <-> host memory ──> when the pass can begin
 *                  └──> disk: files ──────────────> when a slot is ready, a buffer free
 *
 * As engine/tiers.c: a device copies beside computing (is_async), and the pass after the one that
 * was launched with the copies waits for them; a CPU copies before the pass. */
#ifndef FM_LLM_SIMULATE_BELOW_H
#define FM_LLM_SIMULATE_BELOW_H

#include "llm/batch.h"
#include "llm/simulate/disk.h"
#include "llm/tier_policy/tier_policy.h"

/* Sizes and rates of the tiers of a replica. */
typedef struct {
    int          n_slot, n_buffer;  /* pages being read from files, and on their way there */
    int          n_host;            /* pages of host memory */
    int          most_in, most_out; /* pages copied before a step */
    int          is_async;          /* copies are made while the pass runs */
    fm_kv_saving saving;
    double       page_bytes;  /* of a page, on the rank with the most of it */
    double       file_bytes;  /* of a page's files, all ranks together */
    double       in, out;     /* bytes/s from host memory into the pool, and back */
    double       read, write; /* bytes/s of files */
    double       limit;       /* bytes of all files; 0: none */
} fm_sim_tiers;

typedef struct {
    const fm_sim_tiers *sizes; /* NULL: there are no tiers */
    fm__disk           *disk;
    fm_load_costs       costs;
    fm_slot_state      *slot; /* [sizes->n_slot] owned */
    int                 n_free_buffer;
    double              copied; /* when all copies so far are made */
    double              due;    /* when those are that the next pass waits for */
    double              learned;
} fm__below;

fm_status fm__below_open(fm__below *b, const fm_sim_tiers *sizes, fm__disk *disk);
void      fm__below_close(fm__below *b); /* {0} is fine */

/* For the policy of partition `index` of n; kv and sched are still to be filled in. */
fm_tier_policy_options fm__below_options(fm__below *b, int index, int n);

/* Makes the moves of a policy and empties its list; *busy gets the seconds of its copies, *is_now
 * whether the pass has to wait for them. */
void fm__below_move(fm__below *b, fm_tier_policy *p, double now, double *busy, int *is_now);

/* When a pass planned now can begin whose copies take so long; has_pass 0: when they are made. */
double fm__below_begins(fm__below *b, double now, double busy, int is_now, int has_pass);

/* A step of so many rows ended: what a prompt token costs. */
void fm__below_learn(fm__below *b, double launched, double now, int n_prompt_row, int n_row);

/* When a load that waits now can go on, if copies end at `copies`. */
double fm__below_wakes(const fm__below *b, double now, double copies);

#endif
