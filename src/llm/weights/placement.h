/* SPDX-License-Identifier: Apache-2.0 */
/* Where the routed experts lie.  Sets of ranks hold whole experts (shard.expert says which set a
 * rank is in), each in slots; an expert may have copies in several sets.
 *
 *     set 0   experts 0 1 2 3 | 7        slots 0 .. 4
 *     set 1   experts 4 5 6 7            expert 7 has two copies
 *
 * All ranks of a stage have the same table, so they agree without a message on who computes what:
 * a row of the pass goes to copy (row % copies).  Copies are equal, so the choice moves no bit.
 * By default the experts are divided evenly, in order, one copy each. */
#ifndef FM_LLM_WEIGHTS_PLACEMENT_H
#define FM_LLM_WEIGHTS_PLACEMENT_H

#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t set, slot;
} fm_expert_copy;

typedef struct {
    int             n_expert, n_set;
    int             most_slots; /* of a set */
    int32_t        *copy0;      /* [n_expert + 1] first copy of each expert */
    fm_expert_copy *copy;       /* [copy0[n_expert]] */
    int32_t        *slot0;      /* [n_set + 1] first slot of each set */
    int32_t        *expert;     /* [slot0[n_set]] the expert in each slot */
} fm_placement;

/* `expert` has n_slot[q] experts for each set q, in slot order.  FM_E_ARG: an expert without a
 * copy, or two of one in a set; with a single set, slots that are not the experts in order. */
fm_status fm_placement_create(fm_placement **out, int n_expert, int n_set, const int32_t *n_slot,
                              const int32_t *expert);
fm_status fm_placement_create_even(fm_placement **out, int n_expert, int n_set);
void      fm_placement_destroy(fm_placement *p); /* NULL is fine */

static inline int fm_placement_slots(const fm_placement *p, int set)
{
    return p->slot0[set + 1] - p->slot0[set];
}

static inline int fm_placement_expert(const fm_placement *p, int set, int slot)
{
    return p->expert[p->slot0[set] + slot];
}

/* The copy that computes this expert for a row, counted over the rows of all groups. */
static inline fm_expert_copy fm_placement_copy(const fm_placement *p, int expert, int row)
{
    const int first = p->copy0[expert], n = p->copy0[expert + 1] - first;
    return p->copy[n == 1 ? first : first + row % n];
}

#ifdef __cplusplus
}
#endif

#endif
