/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of pages as a message: what the leader has the other ranks of its replica do before
 * the next step.
 *
 *     head   as a step plan's; then whether the ranks are to tell how their reads went
 *     group  how many moves each attention group has
 *     then, group by group, move by move: kind, page, slot, depth, key, the page's tokens */
#ifndef FM_LLM_RANK_MOVES_WIRE_H
#define FM_LLM_RANK_MOVES_WIRE_H

#include "llm/rank/plan_wire.h"
#include "llm/tier/moves.h"

typedef struct {
    fm_plan_head           head;
    const fm_moves *const *moves;    /* [n_group] */
    int                    asks;     /* for the state of all slots */
    int                    has_pass; /* a step plan follows, of which they are part */
} fm_moves_plan;

size_t fm_moves_max_words(const fm_plan_limits *l);

/* Writes it into out[fm_plan_max_words]; returns its length in words. */
size_t fm_moves_write(int32_t *out, const fm_moves_plan *p, const fm_plan_limits *l);

/* The moves of one group into room[limits.max_moves].  FM_E_FORMAT: it contradicts itself or
 * the limits. */
fm_status fm_moves_read(fm_read_plan *out, fm_page_move *room, const int32_t *in,
                        const fm_plan_limits *l, int group);

#endif
