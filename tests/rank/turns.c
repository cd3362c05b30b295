/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of one machine measure one after the other, and one that does not come back from its turn
 * is named: the job ends with that line. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "probe/turns.h"

enum { ROUNDS = 3, MOST = 64 };

typedef struct {
    double from[ROUNDS], to[ROUNDS];
    int    round, is_late;
} work;

static void rest(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL);
}

static void act(void *ctx)
{
    work *w           = ctx;
    w->from[w->round] = fm_now();
    rest(w->is_late ? 3 : 0.02);
    w->to[w->round] = fm_now();
}

static void need(fm_world *w, fm_status rc)
{
    if (rc != FM_OK) fm_world_abort(w, "%s", fm_why());
}

/* All turns of all ranks, on one clock, since they are on one machine. */
static void check_apart(fm_world *world, const work *mine)
{
    static work all[MOST];
    size_t      bytes[MOST];
    fm_comm    *c = fm_world_comm(world);
    for (int i = 0; i < c->n_rank; i++) bytes[i] = sizeof *mine;
    need(world, fm_all_gather(c, all, mine, bytes));
    for (int i = 0; i < c->n_rank * ROUNDS; i++)
        for (int j = 0; j < i; j++) {
            const work *a = &all[i / ROUNDS], *b = &all[j / ROUNDS];
            const int   k = i % ROUNDS, l = j % ROUNDS;
            if (a->from[k] < b->to[l] && b->from[l] < a->to[k])
                fm_world_abort(world, "ranks %d and %d measured at the same time", i / ROUNDS,
                               j / ROUNDS);
        }
}

int main(void)
{
    fm_world *world = NULL;
    work      w     = {0};
    if (fm_world_open(&world, NULL) != FM_OK) return 1;
    fm_turns turns = fm_turns_of(world, 20);
    for (w.round = 0; w.round < ROUNDS; w.round++) need(world, fm_turns_run(&turns, act, &w));
    check_apart(world, &w);
    if (fm_world_comm(world)->rank == 0) printf("turns do not overlap\n");
    fflush(stdout);
    turns.patience = 0.5;
    w.round        = 0;
    w.is_late      = fm_world_comm(world)->rank == 1;
    need(world, fm_turns_run(&turns, act, &w));
    fm_world_close(world);
    return 0;
}
