/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of one machine measure one after the other, because they share its memory and, with more
 * ranks than cores, its cores: a rank's rate is what it reaches alone. Ranks of different
 * machines measure at the same time.
 *
 * A rank that waits sleeps between polls: polling all the time would take CPU time from the rank
 * that measures. */
#ifndef FM_PROBE_TURNS_H
#define FM_PROBE_TURNS_H

#include "comm/world.h"

typedef struct {
    fm_world *world;    /* borrowed */
    int       index, n; /* this rank's place among those of its machine */
    int       most;     /* ranks of the machine that has most */
    double    patience; /* seconds to wait for another rank */
} fm_turns;

fm_turns fm_turns_of(fm_world *w, double patience);

/* On all ranks; `act` runs on this one when its turn has come.  FM_E_COMM: another rank did not
 * come back from its turn in time, and is named. */
fm_status fm_turns_run(const fm_turns *t, void (*act)(void *ctx), void *ctx);

/* A barrier of all ranks. */
fm_status fm_turns_meet(const fm_turns *t);

#endif
