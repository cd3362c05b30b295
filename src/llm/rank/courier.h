/* SPDX-License-Identifier: Apache-2.0 */
/* Brings step plans from the leader of a replica to its other ranks.
 *
 *     leader ──send──> place 0 of each later stage ──broadcast──> their stage
 *        └──────────────broadcast──> its own stage
 *
 * The leader waits for no other rank: a plan stays in the buffer of its micro-batch until
 * that is planned again, and by then all ranks have run it.  The ranks of a stage work in
 * lockstep, so within a stage ranks forward the plan to each other; between stages none
 * does, since a busy stage would delay the one before it. */
#ifndef FM_LLM_RANK_COURIER_H
#define FM_LLM_RANK_COURIER_H

#include "llm/rank/groups.h"
#include "llm/rank/moves_wire.h"
#include "llm/rank/plan_wire.h"

typedef struct fm_courier fm_courier;

typedef struct {
    fm_plan_limits limits;
    fm_comm       *plan, *heads; /* borrowed; heads NULL: not place 0 */
    int            group;        /* the attention group of this rank */
    int            is_leader;
} fm_courier_options;

size_t    fm_courier_bytes(const fm_courier_options *o);
fm_status fm_courier_create(fm_courier **out, const fm_courier_options *o);
void      fm_courier_destroy(fm_courier *c); /* NULL is fine */

/* The leader: sends the plan and reads its own part of it into *own, which is
 * valid until the lane's next plan. */
fm_status fm_courier_send(fm_courier *c, const fm_step_plan *p, fm_read_plan *own);

/* The leader: sends moves of pages; its own it makes itself. */
fm_status fm_courier_send_moves(fm_courier *c, const fm_moves_plan *p);

/* The leader, before it waits for a device that waits for the others': they have
 * its plans. */
fm_status fm_courier_settle(fm_courier *c);

/* The leader, at the end: sends the others the order to quit, and returns when they have it. */
fm_status fm_courier_quit(fm_courier *c);

/* The others: the next plan, however long it takes; valid until the next call. */
fm_status fm_courier_receive(fm_courier *c, fm_read_plan *out);

#endif
