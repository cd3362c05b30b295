/* SPDX-License-Identifier: Apache-2.0 */
/* Device collectives by NCCL.  Each group has a communicator of its own, made
 * with an id that travels over the group; communicators do not block, so a call
 * that waits for another rank can be given up.
 *
 * A rank that is lost: a waiting call polls for errors, a communicator with one is
 * aborted, which ends its kernels on this device, and later calls fail. */
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "comm/device_comm.h"
#include "comm/nccl/nccl_library.h"
#include "comm/world_internal.h"

typedef struct {
    fm_device_comm        base;
    const fm__nccl_calls *nccl;
    fm__nccl_comm         comm;        /* NULL: aborted */
    int                   is_optional; /* its failure does not end the job */
} group;

static group *of(fm_device_comm *c)
{
    return (group *)c;
}

/* Aborts this rank's communicator; the other ranks find out by their own errors, or by the
 * watch. */
static fm_status give_up(group *g, const char *why)
{
    fm_comm *all = g->base.group;
    if (g->comm) (void)g->nccl->CommAbort(g->comm);
    g->comm            = NULL;
    all->is_broken     = 1;
    const fm_status rc = fm_fail(FM_E_COMM, "NCCL, rank %d of %d: %s", all->rank, all->n_rank, why);
    if (!g->is_optional) fm__world_blame(all->world);
    return rc;
}

/* What a call returned; one in progress is waited for, but not for ever. */
static int outcome(const group *g, int rc)
{
    const double until = fm_now() + fm__world_timeout(g->base.group->world);
    while (rc == FM__NCCL_IN_PROGRESS && fm_now() < until) {
        int       state = rc;
        const int asked = g->nccl->CommGetAsyncError(g->comm, &state);
        rc              = asked == FM__NCCL_OK ? state : asked;
        if (rc == FM__NCCL_IN_PROGRESS) sched_yield();
    }
    return rc;
}

static fm_status settle(group *g, int rc)
{
    rc = outcome(g, rc);
    if (rc == FM__NCCL_OK) return FM_OK;
    return give_up(g, rc == FM__NCCL_IN_PROGRESS ? "a call did not come to an end"
                                                 : g->nccl->GetErrorString(rc));
}

static fm_status check(fm_device_comm *c)
{
    group *g     = of(c);
    int    state = FM__NCCL_OK;
    if (!g->comm) return fm_fail(FM_E_COMM, "NCCL: this group has failed before");
    const int rc = g->nccl->CommGetAsyncError(g->comm, &state);
    if (rc != FM__NCCL_OK) return give_up(g, g->nccl->GetErrorString(rc));
    if (state == FM__NCCL_OK || state == FM__NCCL_IN_PROGRESS) return FM_OK;
    return give_up(g, g->nccl->GetErrorString(state));
}

/* A call within a group of calls; an error ends the group, too. */
static void keep(int *first, int rc)
{
    if (*first == FM__NCCL_OK && rc != FM__NCCL_IN_PROGRESS) *first = rc;
}

static fm_status end_calls(group *g, int rc)
{
    const int end = g->nccl->GroupEnd();
    return settle(g, rc != FM__NCCL_OK ? rc : end);
}

static int are_equal(const size_t *n, int count)
{
    for (int i = 1; i < count; i++)
        if (n[i] != n[0]) return 0;
    return 1;
}

/* Pieces of different lengths are as many broadcasts, which NCCL runs as one. */
static fm_status all_gather(fm_device_comm *c, void *dst, const void *src, const size_t *bytes,
                            fm_stream s)
{
    group    *g  = of(c);
    const int n  = c->group->n_rank;
    char     *to = dst;
    int       rc = FM__NCCL_OK;
    FM_TRY(check(c));
    if (are_equal(bytes, n))
        return bytes[0]
                   ? settle(g, g->nccl->AllGather(src, dst, bytes[0], FM__NCCL_BYTE, g->comm, s))
                   : FM_OK;
    keep(&rc, g->nccl->GroupStart());
    for (int i = 0; i < n; to += bytes[i++])
        if (bytes[i])
            keep(&rc, g->nccl->Broadcast(i == c->group->rank ? src : to, to, bytes[i],
                                         FM__NCCL_BYTE, i, g->comm, s));
    return end_calls(g, rc);
}

static fm_status all_to_all(fm_device_comm *c, const fm_device_exchange *x, fm_stream s)
{
    group *g  = of(c);
    int    rc = FM__NCCL_OK;
    FM_TRY(check(c));
    keep(&rc, g->nccl->GroupStart());
    for (int i = 0; i < c->group->n_rank; i++) {
        if (x->send_n[i])
            keep(&rc, g->nccl->Send((const char *)x->src + x->send_at[i], x->send_n[i],
                                    FM__NCCL_BYTE, i, g->comm, s));
        if (x->recv_n[i])
            keep(&rc, g->nccl->Recv((char *)x->dst + x->recv_at[i], x->recv_n[i], FM__NCCL_BYTE, i,
                                    g->comm, s));
    }
    return end_calls(g, rc);
}

static fm_status send(fm_device_comm *c, const void *src, size_t bytes, int to, fm_stream s)
{
    group *g = of(c);
    FM_TRY(check(c));
    return settle(g, g->nccl->Send(src, bytes, FM__NCCL_BYTE, to, g->comm, s));
}

static fm_status recv(fm_device_comm *c, void *dst, size_t bytes, int from, fm_stream s)
{
    group *g = of(c);
    FM_TRY(check(c));
    return settle(g, g->nccl->Recv(dst, bytes, FM__NCCL_BYTE, from, g->comm, s));
}

static fm_status broadcast(fm_device_comm *c, void *buf, size_t bytes, int root, fm_stream s)
{
    group *g = of(c);
    FM_TRY(check(c));
    return settle(g, g->nccl->Broadcast(buf, buf, bytes, FM__NCCL_BYTE, root, g->comm, s));
}

static void abort_group(fm_device_comm *c, const char *why)
{
    if (of(c)->comm) (void)give_up(of(c), why);
}

/* The failure that led here was reported already: closing reports nothing. */
static void close_group(fm_device_comm *c)
{
    group *g = of(c);
    if (g->comm && outcome(g, g->nccl->CommFinalize(g->comm)) == FM__NCCL_OK)
        (void)g->nccl->CommDestroy(g->comm);
    else if (g->comm)
        (void)g->nccl->CommAbort(g->comm);
    free(g);
}

static const fm_device_comm_ops nccl_ops = {.name       = "nccl",
                                            .can_record = 1,
                                            .all_gather = all_gather,
                                            .all_to_all = all_to_all,
                                            .send       = send,
                                            .recv       = recv,
                                            .broadcast  = broadcast,
                                            .check      = check,
                                            .abort      = abort_group,
                                            .close      = close_group};

/* All ranks learn whether the first could make an id. */
static fm_status share_id(group *g, fm__nccl_id *id)
{
    struct {
        int         rc;
        fm__nccl_id id;
    } made       = {0};
    fm_comm *all = g->base.group;
    if (all->rank == 0) made.rc = g->nccl->GetUniqueId(&made.id);
    FM_TRY(fm_broadcast(all, &made, sizeof made, 0));
    *id = made.id;
    if (made.rc == FM__NCCL_OK) return FM_OK;
    return fm_fail(FM_E_COMM, "NCCL made no id: %s", g->nccl->GetErrorString(made.rc));
}

static fm_status join(group *g)
{
    fm_comm        *all    = g->base.group;
    fm__nccl_config config = {sizeof config, FM__NCCL_MAGIC, FM__NCCL_VERSION, 0};
    fm__nccl_id     id;
    FM_TRY(share_id(g, &id));
    return settle(g, g->nccl->CommInitRankConfig(&g->comm, all->n_rank, id, all->rank, &config));
}

static fm_status open_group(fm_device_comm **out, fm_comm *all, int is_optional)
{
    group *g = calloc(1, sizeof *g);
    if (!g) return fm_fail(FM_E_OOM, "a group of ranks");
    *g           = (group){.base = {&nccl_ops, all}, .is_optional = is_optional};
    fm_status rc = fm__nccl_library(&g->nccl);
    if (rc == FM_OK) rc = join(g);
    if (rc == FM_OK)
        *out = &g->base;
    else
        free(g);
    return rc;
}

fm_status fm_device_comm_open_nccl(fm_device_comm **out, fm_comm *all)
{
    return open_group(out, all, 0);
}

fm_status fm_device_comm_try_nccl(fm_device_comm **out, fm_comm *all)
{
    return open_group(out, all, 1);
}

fm_status fm_device_comm_find_nccl(void)
{
    const fm__nccl_calls *calls;
    return fm__nccl_library(&calls);
}
