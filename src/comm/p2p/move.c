/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that only move bytes. */
#include <string.h>

#include "comm/p2p/p2p_internal.h"

/* Dissemination barrier: in round k each rank sends to the rank 2^k further on; after log2(n)
 * rounds every rank has heard from every other, directly or not. */
fm_status fm__barrier_step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    (void)call;
    const int n = g->comm.n_rank, far = 1 << s->step;
    if (far >= n) {
        *more = 0;
        return FM_OK;
    }
    FM_TRY(fm__post_recv(g, s, (g->comm.rank - far + n) % n, NULL, 0));
    FM_TRY(fm__post_send(g, s, (g->comm.rank + far) % n, NULL, 0));
    s->step++;
    return FM_OK;
}

/* Binomial tree: counted from the root, rank v receives from v without its lowest bit and sends to
 * those that have one lower bit more. */
fm_status fm__broadcast_step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    const int n = g->comm.n_rank, root = call->peer;
    const int v = (g->comm.rank - root + n) % n, lowest = v & -v;
    if (s->step == 2 || call->n == 0) {
        *more = 0;
        return FM_OK;
    }
    if (s->step++ == 0 && v != 0)
        return fm__post_recv(g, s, (v - lowest + root) % n, call->dst, call->n);
    s->step = 2;
    int bit = v ? lowest >> 1 : 1 << 30;
    for (; bit; bit >>= 1) /* the largest subtree first */
        if (bit < n - v) FM_TRY(fm__post_send(g, s, (v + bit + root) % n, call->dst, call->n));
    return FM_OK;
}

/* Receives first, and each rank begins with its right neighbour, so that the
 * first messages do not all go to one rank. */
fm_status fm__all_gather_step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    const int     n = g->comm.n_rank, me = g->comm.rank;
    const size_t *bytes = call->recv_n;
    char         *dst   = call->dst;
    if (s->step++) {
        *more = 0;
        return FM_OK;
    }
    size_t own = 0, at = 0;
    for (int i = 0; i < n; at += bytes[i++])
        if (i == me)
            own = at;
        else if (bytes[i])
            FM_TRY(fm__post_recv(g, s, i, dst + at, bytes[i]));
    if (!bytes[me]) return FM_OK;
    if (dst + own != call->src) memcpy(dst + own, call->src, bytes[me]);
    for (int i = 1; i < n; i++) FM_TRY(fm__post_send(g, s, (me + i) % n, dst + own, bytes[me]));
    return FM_OK;
}

static size_t before(const size_t *bytes, int rank)
{
    size_t at = 0;
    for (int i = 0; i < rank; i++) at += bytes[i];
    return at;
}

fm_status fm__all_to_all_step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    const int   n = g->comm.n_rank, me = g->comm.rank;
    char       *dst = call->dst;
    const char *src = call->src;
    if (s->step++) {
        *more = 0;
        return FM_OK;
    }
    size_t at = 0;
    for (int i = 0; i < n; at += call->recv_n[i++])
        if (i == me && call->recv_n[me])
            memcpy(dst + at, src + before(call->send_n, me), call->recv_n[me]);
        else if (call->recv_n[i])
            FM_TRY(fm__post_recv(g, s, i, dst + at, call->recv_n[i]));
    for (int k = 1; k < n; k++) {
        const int to = (me + k) % n;
        if (call->send_n[to])
            FM_TRY(fm__post_send(g, s, to, src + before(call->send_n, to), call->send_n[to]));
    }
    return FM_OK;
}

fm_status fm__send_step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    *more = s->step++ == 0;
    return *more ? fm__post_send(g, s, call->peer, call->src, call->n) : FM_OK;
}

fm_status fm__recv_step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    *more = s->step++ == 0;
    return *more ? fm__post_recv(g, s, call->peer, call->dst, call->n) : FM_OK;
}
