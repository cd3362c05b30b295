/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "probe/turns.h"

#include <time.h>

#include "base/clock.h"

static int size_of(const fm_world *w, int n_rank, int machine)
{
    int n = 0;
    for (int i = 0; i < n_rank; i++) n += fm_world_machine(w, i) == machine;
    return n;
}

fm_turns fm_turns_of(fm_world *w, double patience)
{
    const fm_comm *c    = fm_world_comm(w);
    const int      mine = fm_world_machine(w, c->rank);
    fm_turns       t    = {.world = w, .n = size_of(w, c->n_rank, mine), .patience = patience};
    for (int i = 0; i < c->rank; i++) t.index += fm_world_machine(w, i) == mine;
    for (int i = 0; i < c->n_rank; i++) {
        const int n = fm_world_machine(w, i) == i ? size_of(w, c->n_rank, i) : 0;
        if (n > t.most) t.most = n;
    }
    return t;
}

static fm_status too_late(const fm_turns *t, const fm_comm *c, const fm_comm_job *job)
{
    const int peer = c->ops->awaits(c, job);
    return fm_fail(FM_E_COMM, "rank %d on %s has not come back from a measurement for %.3g s", peer,
                   fm_world_host(t->world, peer), t->patience);
}

fm_status fm_turns_meet(const fm_turns *t)
{
    const struct timespec nap = {.tv_nsec = 100000};
    fm_comm              *c   = fm_world_comm(t->world);
    fm_comm_job           job;
    int                   done = 0;
    if (c->n_rank == 1) return FM_OK;
    const double until = fm_now() + t->patience;
    FM_TRY(fm_comm_start(c, &job, fm_call_barrier()));
    for (;;) {
        FM_TRY(fm_comm_test(&job, &done));
        if (done) return FM_OK;
        if (fm_now() > until) return too_late(t, c, &job);
        nanosleep(&nap, NULL);
    }
}

fm_status fm_turns_run(const fm_turns *t, void (*act)(void *ctx), void *ctx)
{
    FM_TRY(fm_turns_meet(t));
    for (int k = 0; k < t->most; k++) {
        if (k == t->index) act(ctx);
        FM_TRY(fm_turns_meet(t));
    }
    return FM_OK;
}
