/* SPDX-License-Identifier: Apache-2.0 */
/* A group of one: collectives are copies, and most are nothing. */
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/self/self.h"

static fm_status copy(fm_comm_job *job, size_t bytes)
{
    const fm_comm_call *call = &job->call;
    if (bytes && call->dst != call->src) memcpy(call->dst, call->src, bytes);
    return FM_OK;
}

static fm_status start(fm_comm *c, fm_comm_job *job)
{
    (void)c;
    job->is_done = 1;
    switch (job->call.kind) {
    case FM_COMM_ALL_GATHER:
    case FM_COMM_ALL_TO_ALL: return copy(job, job->call.recv_n[0]);
    case FM_COMM_SEND:
    case FM_COMM_RECV: return fm_fail(FM_E_ARG, "a group of one has no other rank to send to");
    default: return FM_OK;
    }
}

static fm_status poll(fm_comm *c, fm_comm_job *job)
{
    (void)c, (void)job;
    return FM_OK;
}

static int awaits(const fm_comm *c, const fm_comm_job *job)
{
    (void)c, (void)job;
    return -1;
}

static fm_status split(fm_comm *c, const fm_comm_part *part, fm_comm **out)
{
    *out = NULL;
    return part->color < 0 ? FM_OK : fm__self_create(out, c->world);
}

static void close_self(fm_comm *c)
{
    free(c);
}

static const fm_comm_ops ops = {"self", start, poll, awaits, split, close_self};

fm_comm fm_comm_self(void)
{
    return (fm_comm){.ops = &ops, .n_rank = 1};
}

fm_status fm__self_create(fm_comm **out, fm_world *world)
{
    fm_comm *c = malloc(sizeof *c);
    if (!c) return fm_fail(FM_E_OOM, "group");
    *c       = fm_comm_self();
    c->world = world;
    *out     = c;
    return FM_OK;
}
