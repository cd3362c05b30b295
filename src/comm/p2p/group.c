/* SPDX-License-Identifier: Apache-2.0 */
/* A group: who is in it, its jobs in flight, and how one becomes several. */
#include "comm/p2p/p2p.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slab.h"
#include "comm/p2p/p2p_internal.h"
#include "comm/self/self.h"
#include "comm/world_internal.h"

/* A tag names the group and the job: context, one bit, and seven bits that
 * count collectives or are the caller's tag of a send. */
enum { JOB_BITS = 7, CONTEXT_SHIFT = JOB_BITS + 1, SEND_BIT = 1 << JOB_BITS };

static fm__step *const steps[FM_N_COMM_KIND] = {
    [FM_COMM_BARRIER]        = fm__barrier_step,
    [FM_COMM_BROADCAST]      = fm__broadcast_step,
    [FM_COMM_ALL_REDUCE]     = fm__all_reduce_step,
    [FM_COMM_ALL_REDUCE_F64] = fm__all_reduce_step,
    [FM_COMM_ALL_GATHER]     = fm__all_gather_step,
    [FM_COMM_ALL_TO_ALL]     = fm__all_to_all_step,
    [FM_COMM_SEND]           = fm__send_step,
    [FM_COMM_RECV]           = fm__recv_step,
};

static fm_status post(fm__group *g, fm__flight *s, int peer, size_t bytes, fm__message **m)
{
    FM_BUG_UNLESS(s->n_message < 2 * g->comm.n_rank);
    if (bytes > INT_MAX)
        return fm_fail(FM_E_NOSUP, "a message of %zu bytes; one can have %d", bytes, INT_MAX);
    *m         = &s->message[s->n_message];
    (*m)->peer = peer;
    return FM_OK;
}

fm_status fm__post_send(fm__group *g, fm__flight *s, int to, const void *p, size_t bytes)
{
    fm__message *m = NULL;
    FM_TRY(post(g, s, to, bytes, &m));
    m->bytes = FM__IS_SEND;
    FM_TRY(g->wire->ops->send(g->wire, p, bytes, g->member[to], s->tag, &m->request));
    s->n_message++;
    return FM_OK;
}

fm_status fm__post_recv(fm__group *g, fm__flight *s, int from, void *p, size_t bytes)
{
    fm__message *m = NULL;
    FM_TRY(post(g, s, from, bytes, &m));
    m->bytes = bytes;
    FM_TRY(g->wire->ops->recv(g->wire, p, bytes, g->member[from], s->tag, &m->request));
    s->n_message++;
    return FM_OK;
}

static fm_status check_arrived(const fm__group *g, const fm__message *m, size_t bytes)
{
    if (m->bytes == FM__IS_SEND || m->bytes == bytes) return FM_OK;
    return fm_fail(FM_E_COMM, "rank %d sent %zu bytes where rank %d expects %zu",
                   g->member[m->peer], bytes, g->member[g->comm.rank], m->bytes);
}

/* Says whose message it was; the wire does not know ours from theirs. */
static fm_status broken_message(const fm__group *g, const fm__message *m, fm_status rc)
{
    char why[256];
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "message %s rank %d: %s", m->bytes == FM__IS_SEND ? "to" : "from",
                   g->member[m->peer], why);
}

/* Testing one message makes progress on all, so the first incomplete one is enough. */
static fm_status collect(fm__group *g, fm__flight *s)
{
    while (s->n_arrived < s->n_message) {
        fm__message    *m     = &s->message[s->n_arrived];
        int             done  = 0;
        size_t          bytes = 0;
        const fm_status rc    = g->wire->ops->test(g->wire, &m->request, &done, &bytes);
        if (rc != FM_OK) return broken_message(g, m, rc);
        if (!done) return FM_OK;
        FM_TRY(check_arrived(g, m, bytes));
        s->n_arrived++;
    }
    return FM_OK;
}

static fm_status poll(fm_comm *c, fm_comm_job *job)
{
    fm__group *g = (fm__group *)c;
    fm__flight  *s = &g->slot[job->slot];
    for (;;) {
        FM_TRY(collect(g, s));
        if (s->n_arrived < s->n_message) return FM_OK;
        int more     = 1;
        s->n_message = s->n_arrived = 0;
        FM_TRY(steps[job->call.kind](g, s, &job->call, &more));
        if (!more) break;
    }
    s->in_use    = 0;
    job->is_done = 1;
    return FM_OK;
}

static fm_status check_call(const fm_comm *c, const fm_comm_call *call)
{
    const int is_message = call->kind == FM_COMM_SEND || call->kind == FM_COMM_RECV;
    if ((is_message || call->kind == FM_COMM_BROADCAST) &&
        (call->peer < 0 || call->peer >= c->n_rank))
        return fm_fail(FM_E_ARG, "%s: rank %d of a group of %d", fm_comm_kind_name(call->kind),
                       call->peer, c->n_rank);
    if (is_message && (call->peer == c->rank || call->tag < 0 || call->tag > FM_COMM_MAX_TAG))
        return fm_fail(FM_E_ARG, "%s: from rank %d to rank %d with tag %d",
                       fm_comm_kind_name(call->kind), c->rank, call->peer, call->tag);
    if (call->kind == FM_COMM_ALL_TO_ALL && call->send_n[c->rank] != call->recv_n[c->rank])
        return fm_fail(FM_E_ARG, "all_to_all: %zu bytes to itself, %zu from itself",
                       call->send_n[c->rank], call->recv_n[c->rank]);
    return FM_OK;
}

static int tag_of(fm__group *g, const fm_comm_call *call)
{
    const int is_message = call->kind == FM_COMM_SEND || call->kind == FM_COMM_RECV;
    return g->context << CONTEXT_SHIFT |
           (is_message ? SEND_BIT | call->tag : (int)(g->n_collective++ % (1 << JOB_BITS)));
}

static fm_status start(fm_comm *c, fm_comm_job *job)
{
    fm__group *g = (fm__group *)c;
    FM_TRY(check_call(c, &job->call));
    for (int i = 0; i < FM_COMM_IN_FLIGHT; i++) {
        fm__flight *s = &g->slot[i];
        if (s->in_use) continue;
        s->in_use = 1;
        s->tag    = tag_of(g, &job->call);
        s->step   = 0;
        s->at     = 0;
        job->slot = i;
        return poll(c, job);
    }
    return fm_fail(FM_E_FULL, "%d jobs are in flight already", FM_COMM_IN_FLIGHT);
}

static int awaits(const fm_comm *c, const fm_comm_job *job)
{
    const fm__group *g = (const fm__group *)c;
    const fm__flight  *s = &g->slot[job->slot];
    return s->n_arrived < s->n_message ? g->member[s->message[s->n_arrived].peer] : -1;
}

/* --- split ----------------------------------------------------------------- */

typedef struct {
    int    color, key, rank, context;
    size_t scratch_bytes;
} wish;

static int by_key(const void *a, const void *b)
{
    const wish *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->rank - y->rank;
}

static fm_status gather_wishes(fm__group *g, const fm_comm_part *part, wish *all, size_t *bytes)
{
    const wish mine = {part->color, part->key, g->comm.rank, g->wire->next_context,
                       part->scratch_bytes};
    for (int i = 0; i < g->comm.n_rank; i++) bytes[i] = sizeof mine;
    FM_TRY(fm_all_gather(&g->comm, all, &mine, bytes));
    for (int i = 0; i < g->comm.n_rank; i++)
        if (all[i].context > g->wire->next_context) g->wire->next_context = all[i].context;
    g->wire->next_context++;
    return FM_OK;
}

/* Ranks of the own colour, sorted, moved to the front of `all`. */
static fm_status keep_color(wish *all, int n, const fm_comm_part *part, int *n_kept)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (all[i].color != part->color) continue;
        if (all[i].scratch_bytes != part->scratch_bytes)
            return fm_fail(FM_E_ARG, "group %s: scratch of %zu bytes here, %zu on rank %d",
                           part->name, part->scratch_bytes, all[i].scratch_bytes, all[i].rank);
        all[k++] = all[i];
    }
    qsort(all, (size_t)k, sizeof *all, by_key);
    *n_kept = k;
    return FM_OK;
}

static fm_status make_part(fm__group *g, const fm_comm_part *part, const wish *mine, int n,
                           fm_comm **out)
{
    int *member = malloc((size_t)n * sizeof *member);
    if (!member) return fm_fail(FM_E_OOM, "group %s", part->name);
    fm__group_plan plan = {.name          = part->name,
                           .member        = member,
                           .n_rank        = n,
                           .context       = g->wire->next_context - 1,
                           .scratch_bytes = part->scratch_bytes,
                           .world         = g->comm.world};
    for (int i = 0; i < n; i++) {
        member[i] = g->member[mine[i].rank];
        if (mine[i].rank == g->comm.rank) plan.rank = i;
    }
    const fm_status rc = fm__group_create(out, g->wire, &plan);
    free(member);
    return rc;
}

static fm_status split(fm_comm *c, const fm_comm_part *part, fm_comm **out)
{
    fm__group *g     = (fm__group *)c;
    fm_status  rc    = FM_OK;
    wish      *all   = malloc((size_t)c->n_rank * sizeof *all);
    size_t    *bytes = malloc((size_t)c->n_rank * sizeof *bytes);
    fm_comm   *made  = NULL;
    int        n     = 0;
    if (!all || !bytes) {
        rc = fm_fail(FM_E_OOM, "group %s", part->name);
        goto out;
    }
    FM_GO(gather_wishes(g, part, all, bytes));
    if (part->color >= 0) {
        FM_GO(keep_color(all, c->n_rank, part, &n));
        FM_GO(n == 1 ? fm__self_create(&made, c->world) : make_part(g, part, all, n, &made));
    }
    *out = made;
out:
    free(all);
    free(bytes);
    return rc;
}

/* --- life ------------------------------------------------------------------ */

static void carve(fm__group *g, fm_slab *slab)
{
    const size_t n = (size_t)g->comm.n_rank;
    g->member      = fm_slab_take(slab, n * sizeof *g->member);
    for (int i = 0; i < FM_COMM_IN_FLIGHT; i++) {
        fm__flight *s = &g->slot[i];
        s->message  = fm_slab_take(slab, 2 * n * sizeof *s->message);
        s->part     = fm_slab_take(slab, n * sizeof *s->part);
        s->scratch  = fm_slab_take(slab, n * g->piece);
    }
}

/* Messages may still be written into the buffers of a broken group: they stay
 * until the process ends. */
static fm__group *abandoned;

static void close_group(fm_comm *c)
{
    fm__group *g = (fm__group *)c;
    for (int i = 0; i < FM_COMM_IN_FLIGHT; i++) FM_BUG_UNLESS(!g->slot[i].in_use || c->is_broken);
    if (c->is_broken) {
        g->next_abandoned = abandoned;
        abandoned         = g;
        return;
    }
    free(g->block);
    free(g);
}

static const fm_comm_ops ops = {"p2p", start, poll, awaits, split, close_group};

/* At least room for one whole short message. */
static size_t piece_bytes(const fm__group_plan *plan)
{
    const size_t least = FM__SHORT_SUM_BYTES;
    const size_t bytes = plan->scratch_bytes > least ? plan->scratch_bytes : least;
    return fm_round_up(bytes / (size_t)plan->n_rank + 1, 64);
}

static char *aligned(char *p)
{
    return p + (FM_SLAB_ALIGN - (uintptr_t)p % FM_SLAB_ALIGN) % FM_SLAB_ALIGN;
}

/* FNV-1a of the members' world ranks and the context. */
static uint32_t id_of(const fm__group_plan *plan)
{
    uint32_t id = (2166136261u ^ (uint32_t)plan->context) * 16777619u;
    for (int i = 0; i < plan->n_rank; i++) id = (id ^ (uint32_t)plan->member[i]) * 16777619u;
    return id ? id : 1;
}

fm_status fm__group_create(fm_comm **out, fm_wire *wire, const fm__group_plan *plan)
{
    FM_BUG_UNLESS(plan->n_rank > 1 && plan->rank >= 0 && plan->rank < plan->n_rank);
    if (plan->context > wire->max_tag >> CONTEXT_SHIFT)
        return fm_fail(FM_E_FULL, "group %s is one too many for this transport", plan->name);
    fm__group *g = calloc(1, sizeof *g);
    if (!g) return fm_fail(FM_E_OOM, "group %s", plan->name);

    g->comm.ops    = &ops;
    g->comm.rank   = plan->rank;
    g->comm.n_rank = plan->n_rank;
    g->comm.world  = plan->world;
    g->comm.id     = id_of(plan);
    g->wire        = wire;
    g->context     = plan->context;
    g->piece       = piece_bytes(plan);

    fm_slab slab = {0};
    carve(g, &slab);
    g->block = calloc(1, slab.used + FM_SLAB_ALIGN);
    if (!g->block) {
        free(g);
        return fm_fail(FM_E_OOM, "group %s: %zu bytes of scratch", plan->name, slab.used);
    }
    slab = (fm_slab){.base = aligned(g->block), .size = slab.used};
    carve(g, &slab);
    memcpy(g->member, plan->member, (size_t)plan->n_rank * sizeof *g->member);
    g->comm.stats = fm__world_stats(plan->world, plan->name);
    *out          = &g->comm;
    return FM_OK;
}
