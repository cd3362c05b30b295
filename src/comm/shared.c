/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/shared.h"

#include <stdlib.h>

#include "base/log.h"
#include "comm/world_internal.h"
#include "device/host.h"

/* What ranks exchange: first the block each wants, then whether it was mapped. */
typedef struct {
    uint64_t       content, bytes, total, available;
    fm_host_ticket ticket;
    int32_t        joined; /* the rank whose pages it reads */
} offer;

static int is_same(const fm_world *w, const offer *all, int a, int b)
{
    return fm__world_same_host(w, a, b) && all[a].content == all[b].content &&
           all[a].bytes == all[b].bytes;
}

static int first_of(const fm_world *w, const offer *all, int rank)
{
    int i = 0;
    while (!is_same(w, all, i, rank)) i++; /* comes to itself at last */
    return i;
}

static int count_same(const fm_world *w, const offer *all, int rank)
{
    int n = 0;
    for (int i = 0; i < w->comm->n_rank; i++) n += is_same(w, all, i, rank);
    return n;
}

static fm_status exchange(fm_world *w, offer *all)
{
    const offer mine = all[w->comm->rank];
    return fm__world_gather(w, all, &mine, sizeof mine);
}

static fm_status alone(fm_shared *s, const char *what)
{
    s->fills = 1;
    return fm_host_alloc(&s->base, s->bytes, what);
}

/* A process that cannot map shared memory allocates its own; the memory plan has to know. */
static fm_status take(fm_shared *s, fm_status shared, const char *what)
{
    if (shared == FM_OK) {
        s->base = s->share.base;
        return FM_OK;
    }
    FM_WARN("comm", "%s", fm_why());
    return alone(s, what);
}

/* The first of those with the same content makes the block, then the others
 * join. */
static fm_status obtain(fm_shared *s, offer *all, const char *what)
{
    fm_world *w     = s->world;
    const int me    = w->comm->rank;
    const int first = first_of(w, all, me), many = count_same(w, all, me) > 1;
    offer    *mine  = &all[me];
    s->fills        = first == me;
    if (!many) FM_TRY(alone(s, what));
    else if (s->fills)
        FM_TRY(take(s, fm_host_share_create(&s->share, &mine->ticket, s->bytes, what), what));
    FM_TRY(exchange(w, all));
    if (!s->fills) FM_TRY(take(s, fm_host_share_join(&s->share, &all[first].ticket), what));
    mine->joined = s->fills ? me : first;
    return exchange(w, all);
}

/* Of a host's memory: all blocks are taken off once, the rest is divided by
 * the ranks.  Where not even the blocks fit, each gets its part of too little. */
static size_t fair_part(const fm_shared *s, const offer *all, size_t memory)
{
    const int me = s->world->comm->rank, n_rank = s->world->comm->n_rank;
    size_t    blocks = 0, ranks = 0;
    for (int i = 0; i < n_rank; i++) {
        if (!fm__world_same_host(s->world, i, me)) continue;
        ranks++;
        if (all[i].joined == i) blocks += all[i].bytes;
    }
    if (blocks <= memory) return (memory - blocks) / ranks + s->bytes;
    return (size_t)((double)memory * ((double)s->bytes / (double)blocks));
}

/* The ranks of a host have asked it at different moments: the least counts. */
static void count_memory(fm_shared *s, const offer *all)
{
    const int me = s->world->comm->rank, n_rank = s->world->comm->n_rank;
    size_t    total = SIZE_MAX, available = SIZE_MAX;
    s->n_sharer = 0;
    for (int i = 0; i < n_rank; i++) {
        if (!fm__world_same_host(s->world, i, me)) continue;
        if (all[i].total < total) total = all[i].total;
        if (all[i].available < available) available = all[i].available;
        s->n_sharer += all[i].joined == all[me].joined;
    }
    s->total     = fair_part(s, all, total);
    s->available = fair_part(s, all, available);
}

fm_status fm_shared_open(fm_shared *out, fm_world *w, uint64_t content, size_t bytes,
                         const char *what)
{
    const int me  = fm_world_comm(w)->rank;
    fm_shared s   = {.bytes = bytes, .world = w, .share = {.fd = -1}};
    offer    *all = calloc((size_t)fm_world_comm(w)->n_rank, sizeof *all);
    if (!all) return fm_fail(FM_E_OOM, "%s", what);
    all[me] = (offer){.content   = content,
                      .bytes     = bytes,
                      .total     = fm_host_total(),
                      .available = fm_host_available(),
                      .joined    = me};
    fm_status rc = exchange(w, all);
    if (rc == FM_OK) rc = obtain(&s, all, what);
    if (rc == FM_OK) count_memory(&s, all);
    free(all);
    if (rc == FM_OK) *out = s;
    else fm_shared_close(&s);
    return rc;
}

static fm_status meet(fm_world *w)
{
    fm_comm_job job;
    if (fm_world_comm(w)->n_rank == 1) return FM_OK;
    FM_TRY(fm_comm_start(fm_world_comm(w), &job, fm_call_barrier()));
    return fm_comm_wait_idle(&job); /* a slow disk is no failure */
}

fm_status fm_shared_ready(fm_shared *s, int n_thread)
{
    if (s->share.base && s->fills) fm_host_share_settle(&s->share, n_thread);
    FM_TRY(meet(s->world));
    if (s->share.base && !s->fills) fm_host_share_settle(&s->share, n_thread);
    return FM_OK;
}

void fm_shared_close(fm_shared *s)
{
    if (!s) return;
    if (s->share.base) fm_host_share_close(&s->share);
    else fm_host_free(s->base, s->bytes);
    *s = (fm_shared){.share = {.fd = -1}};
}
