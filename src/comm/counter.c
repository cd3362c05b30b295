/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/counter.h"

#include <stdlib.h>

#include "comm/counter_internal.h"
#include "comm/watch.h"
#include "comm/world_internal.h"
#include "device/host_share.h"

struct fm_counter {
    fm_comm          *comm;  /* borrowed */
    uint64_t          key;   /* at rank 0's watch, if `word` is NULL */
    uint64_t          round; /* at least 1: a fresh word is in round 0 */
    _Atomic uint64_t *word;  /* `own`, or in `share` */
    _Atomic uint64_t  own;
    fm_host_share     share; /* base NULL: none */
};

/* What ranks exchange when a counter opens: first the maker's ticket for the window, then whether
 * each rank could map it. */
typedef struct {
    fm_host_ticket ticket;
    int32_t        has_word, world_rank;
    uint64_t       key;
} offer;

static int world_rank(const fm_comm *comm)
{
    return comm->world ? comm->world->comm->rank : 0;
}

/* A ticket (pid and file descriptor) is valid on the maker's host only. */
static int is_same_host(const fm_comm *comm, int a, int b)
{
    return !comm->world || fm__world_same_host(comm->world, a, b);
}

/* Of the group's first rank, distinct in the whole world. */
static uint64_t new_key(const fm_comm *comm)
{
    static _Atomic uint32_t n_made;
    return (uint64_t)world_rank(comm) << 32 | ++n_made;
}

static fm_status exchange(fm_counter *c, offer *all, size_t *bytes)
{
    const offer mine = all[c->comm->rank];
    for (int i = 0; i < c->comm->n_rank; i++) bytes[i] = sizeof mine;
    return fm_all_gather(c->comm, all, &mine, bytes);
}

static int all_have(const offer *all, int n)
{
    int n_have = 0;
    for (int i = 0; i < n; i++) n_have += all[i].has_word;
    return n_have == n;
}

/* The group's first rank creates the word in shared memory, the others map it.  It is used only
 * if all ranks could map it. */
static fm_status meet(fm_counter *c, offer *all, size_t *bytes)
{
    const int me     = c->comm->rank;
    offer    *mine   = &all[me];
    mine->key        = new_key(c->comm);
    mine->world_rank = world_rank(c->comm);
    if (me == 0)
        mine->has_word =
            fm_host_window_create(&c->share, &mine->ticket, sizeof *c->word, "counter") == FM_OK;
    FM_TRY(exchange(c, all, bytes));
    if (me != 0)
        mine->has_word = is_same_host(c->comm, all[0].world_rank, mine->world_rank) &&
                         fm_host_window_join(&c->share, &all[0].ticket) == FM_OK;
    FM_TRY(exchange(c, all, bytes));
    c->key  = all[0].key;
    c->word = all_have(all, c->comm->n_rank) ? c->share.base : NULL;
    return FM_OK;
}

static fm_status reach_all(fm_counter *c)
{
    const size_t n     = (size_t)c->comm->n_rank;
    offer       *all   = calloc(n, sizeof *all);
    size_t      *bytes = calloc(n, sizeof *bytes);
    fm_status    rc    = all && bytes ? FM_OK : fm_fail(FM_E_OOM, "shared counter");
    if (rc == FM_OK) rc = meet(c, all, bytes);
    free(all);
    free(bytes);
    if (rc == FM_OK && !c->word && !(c->comm->world && c->comm->world->watch))
        rc = fm_fail(FM_E_NOSUP, "shared counter: these ranks share neither memory nor a world");
    return rc;
}

fm_status fm_counter_open(fm_counter **out, fm_comm *comm)
{
    fm_counter *c = calloc(1, sizeof *c);
    if (!c) return fm_fail(FM_E_OOM, "shared counter");
    *c           = (fm_counter){.comm = comm, .round = 1, .share = {.fd = -1}};
    c->word      = &c->own;
    fm_status rc = comm->n_rank > 1 ? reach_all(c) : FM_OK;
    if (rc == FM_OK)
        *out = c;
    else
        fm_counter_close(c);
    return rc;
}

void fm_counter_close(fm_counter *c)
{
    if (!c) return;
    fm_host_share_close(&c->share);
    free(c);
}

void fm_counter_reset(fm_counter *c) { c->round++; }

fm_status fm_counter_next(fm_counter *c, long long *number)
{
    uint64_t taken = 0;
    if (c->word)
        taken = fm__counter_take(c->word, c->round);
    else
        FM_TRY(fm__watch_number(c->comm->world->watch, c->key, c->round,
                                fm__world_timeout(c->comm->world), &taken));
    *number = (long long)taken;
    return FM_OK;
}
