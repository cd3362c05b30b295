/* SPDX-License-Identifier: Apache-2.0 */
/* What all transports share: starting, polling and finishing a job, its statistics, and its time
 * limit. */
#define _POSIX_C_SOURCE 200809L
#include "comm/comm.h"

#include <math.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "comm/comm_stats.h"
#include "comm/world_internal.h"

enum { SPINS = 64 };

const char *fm_comm_kind_name(fm_comm_kind k)
{
    switch (k) {
#define CASE(name, text)                                                                           \
    case FM_COMM_##name: return text;
        FM_COMM_KIND_MAP(CASE)
#undef CASE
    default: return "?";
    }
}

fm_status fm_comm_split(fm_comm *parent, const fm_comm_part *part, fm_comm **out)
{
    return parent->ops->split(parent, part, out);
}

void fm_comm_close(fm_comm *c)
{
    if (c) c->ops->close(c);
}

/* A peer that failed leaves messages under way: nothing on this group can be
 * trusted any more.  A refused call has touched nothing. */
static fm_status judge(fm_comm *c, fm_status rc)
{
    if (rc == FM_OK || rc == FM_E_FULL || rc == FM_E_ARG) return rc;
    c->is_broken = 1;
    fm__world_blame(c->world);
    return rc;
}

static void finish(fm_comm_job *job)
{
    fm_comm *c = job->comm;
    if (!c->stats) return;
    fm__world_tell_observer(c, job);
    fm_comm_cost *cost = &c->stats->cost[job->call.kind];
    cost->calls++;
    cost->bytes += fm__call_bytes(c, &job->call);
    cost->busy_s += job->busy_s;
}

fm_status fm_comm_start(fm_comm *c, fm_comm_job *job, fm_comm_call call)
{
    *job = (fm_comm_job){.comm = c, .call = call, .slot = -1};
    if (c->n_rank == 1) return c->ops->start(c, job);
    if (c->is_broken)
        return fm_fail(FM_E_COMM, "%s on a group that failed before", fm_comm_kind_name(call.kind));
    job->began = fm_now();
    fm__world_count(c->world);
    FM_TRY(judge(c, c->ops->start(c, job)));
    if (call.kind != FM_COMM_SEND && call.kind != FM_COMM_RECV) job->serial = c->n_serial++;
    job->busy_s = fm_now() - job->began;
    if (job->is_done) finish(job);
    return FM_OK;
}

fm_status fm_comm_test(fm_comm_job *job, int *done)
{
    if (!job->is_done) {
        const double began = fm_now();
        FM_TRY(judge(job->comm, job->comm->ops->poll(job->comm, job)));
        job->busy_s += fm_now() - began;
        if (job->is_done) finish(job);
    }
    *done = job->is_done;
    return FM_OK;
}

/* Polls at first; then yields, since there may be more ranks than cores; after a while sleeps: in a
 * wait this long the time to wake up does not matter. */
static void rest(unsigned spin, double waited)
{
    const struct timespec nap = {.tv_nsec = waited > 1 ? 2000000 : 200000};
    if (spin % SPINS)
        sched_yield();
    else if (waited > 0.05)
        nanosleep(&nap, NULL);
}

static fm_status poll_patiently(fm_comm_job *job, double began, double timeout)
{
    fm_comm *c      = job->comm;
    double   waited = 0;
    for (unsigned spin = 1;; spin++) {
        FM_TRY(c->ops->poll(c, job));
        if (job->is_done) return FM_OK;
        if (spin < SPINS) continue;
        if (spin % SPINS == 0) {
            waited = fm_now() - began;
            fm__world_waits(c->world, job->call.kind, c->ops->awaits(c, job));
            if (waited > timeout) return fm__world_timed_out(c, job, waited);
        }
        rest(spin, waited);
    }
}

static fm_status wait_for(fm_comm_job *job, double timeout)
{
    if (job->is_done) return FM_OK;
    fm_comm     *c     = job->comm;
    const double began = fm_now();
    FM_TRY(judge(c, poll_patiently(job, began, timeout)));
    fm__world_waits(c->world, job->call.kind, -1);
    job->busy_s += fm_now() - began;
    finish(job);
    return FM_OK;
}

fm_status fm_comm_wait(fm_comm_job *job)
{
    return wait_for(job, fm__world_timeout(job->comm->world));
}

fm_status fm_comm_wait_idle(fm_comm_job *job)
{
    return wait_for(job, HUGE_VAL);
}

/* With --comm-report a barrier comes before each collective: its time is waiting for the
 * slowest rank, the rest is transfer. */
static fm_status meet(fm_comm *c, double *waited)
{
    const double began = fm_now();
    fm_comm_job  job   = {.comm = c, .call = fm_call_barrier(), .slot = -1};
    FM_TRY(c->ops->start(c, &job));
    if (!job.is_done) FM_TRY(poll_patiently(&job, began, fm__world_timeout(c->world)));
    fm__world_waits(c->world, FM_COMM_BARRIER, -1);
    *waited = fm_now() - began;
    return FM_OK;
}

static int is_probed(const fm_comm *c, fm_comm_kind k)
{
    return fm__world_reports(c->world) && k != FM_COMM_SEND && k != FM_COMM_RECV;
}

fm_status fm_comm_run(fm_comm *c, fm_comm_call call)
{
    fm_comm_job job;
    double      waited = 0;
    if (c->n_rank > 1 && !c->is_broken && is_probed(c, call.kind))
        FM_TRY(judge(c, meet(c, &waited)));
    FM_TRY(fm_comm_start(c, &job, call));
    FM_TRY(fm_comm_wait(&job));
    if (waited > 0 && c->stats) {
        c->stats->cost[call.kind].wait_s += waited;
        c->stats->cost[call.kind].busy_s += waited;
    }
    return FM_OK;
}
