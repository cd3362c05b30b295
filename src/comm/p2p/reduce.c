/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over ranks, always in the order of comm/tree.h. */
#include <string.h>

#include "base/number.h"
#include "comm/p2p/p2p_internal.h"
#include "comm/tree.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- short messages: two neighbouring subtrees exchange their sums ---------
 *
 * At level k, ranks [base, base + 2^k) hold the left subtree's sum and the
 * rest up to base + 2^(k+1) the right one's; the right one may have fewer
 * ranks, then each of them serves several of the left, or none. */
typedef struct {
    int left, n_left, right, n_right;
    int place; /* of this rank within its side */
} pairing;

static pairing pair_at(const fm_comm *c, int level)
{
    const int width = 1 << level, left = c->rank & ~(2 * width - 1), right = left + width;
    pairing   p = {left, width, right, c->n_rank - right, 0};
    if (p.n_right < 0) p.n_right = 0;
    if (p.n_right > width) p.n_right = width;
    p.place = c->rank < right ? c->rank - left : c->rank - right;
    return p;
}

static fm_status exchange(fm__group *g, fm__slot *s, float *x, size_t bytes, pairing p)
{
    if (p.n_right == 0) return FM_OK;
    if (g->comm.rank < p.right) {
        FM_TRY(fm__post_recv(g, s, p.right + p.place % p.n_right, s->scratch, bytes));
        return p.place < p.n_right ? fm__post_send(g, s, p.right + p.place, x, bytes) : FM_OK;
    }
    FM_TRY(fm__post_recv(g, s, p.left + p.place, s->scratch, bytes));
    for (int i = p.place; i < p.n_left; i += p.n_right)
        FM_TRY(fm__post_send(g, s, p.left + i, x, bytes));
    return FM_OK;
}

static void add_arrived(const fm__group *g, const fm__slot *s, float *x, size_t n, pairing p)
{
    if (p.n_right == 0) return;
    if (g->comm.rank < p.right)
        fm_tree_add_f32(x, x, s->scratch, n);
    else
        fm_tree_add_f32(x, s->scratch, x, n);
}

static fm_status short_sum(fm__group *g, fm__slot *s, const fm_comm_call *call, int *more)
{
    float *x = call->dst;
    if (s->step > 0) add_arrived(g, s, x, call->n, pair_at(&g->comm, s->step - 1));
    if (1 << s->step >= g->comm.n_rank) {
        *more = 0;
        return FM_OK;
    }
    return exchange(g, s, x, call->n * sizeof *x, pair_at(&g->comm, s->step++));
}

/* --- long messages: every rank adds one block ------------------------------ */

typedef struct {
    const float *src;
    size_t       at, n; /* in src */
} block;

typedef block cut(const fm__group *g, const fm__slot *s, const fm_comm_call *call, int rank);

/* Send every rank its block, receive all ranks' parts of the own one into the
 * scratch, one row of g->piece floats per rank. */
static fm_status post_blocks(fm__group *g, fm__slot *s, const fm_comm_call *call, cut *block_of)
{
    const int   n = g->comm.n_rank, me = g->comm.rank;
    const block own = block_of(g, s, call, me);
    for (int i = 0; i < n; i++) {
        s->part[i] = s->scratch + (size_t)i * g->piece;
        if (i != me && own.n) FM_TRY(fm__post_recv(g, s, i, s->part[i], own.n * sizeof(float)));
    }
    if (own.n) memcpy(s->part[me], own.src + own.at, own.n * sizeof(float));
    for (int k = 1; k < n; k++) {
        const int   to = (me + k) % n;
        const block b  = block_of(g, s, call, to);
        if (b.n) FM_TRY(fm__post_send(g, s, to, b.src + b.at, b.n * sizeof(float)));
    }
    return FM_OK;
}

/* All-reduce: the part of x that begins at s->at, as much as the scratch can
 * take, cut into equal blocks of whole cache lines. */
static size_t round_floats(const fm__group *g, const fm__slot *s, const fm_comm_call *call)
{
    return least(call->n - s->at, g->piece * (size_t)g->comm.n_rank);
}

static block reduce_block(const fm__group *g, const fm__slot *s, const fm_comm_call *call, int rank)
{
    const size_t n = round_floats(g, s, call), ranks = (size_t)g->comm.n_rank;
    const size_t width = fm_round_up((n + ranks - 1) / ranks, 16);
    const size_t begin = least((size_t)rank * width, n), end = least(begin + width, n);
    return (block){call->dst, s->at + begin, end - begin};
}

static fm_status gather_blocks(fm__group *g, fm__slot *s, const fm_comm_call *call)
{
    const int   n = g->comm.n_rank, me = g->comm.rank;
    const block own = reduce_block(g, s, call, me);
    float      *x   = call->dst;
    fm_tree_sum_f32(x + own.at, s->part, n, own.n);
    for (int i = 0; i < n; i++) {
        const block b = reduce_block(g, s, call, i);
        if (i != me && b.n) FM_TRY(fm__post_recv(g, s, i, x + b.at, b.n * sizeof *x));
    }
    for (int k = 1; k < n && own.n; k++)
        FM_TRY(fm__post_send(g, s, (me + k) % n, x + own.at, own.n * sizeof *x));
    return FM_OK;
}

static fm_status long_sum(fm__group *g, fm__slot *s, const fm_comm_call *call, int *more)
{
    if (s->step == 1) {
        s->step = 2;
        return gather_blocks(g, s, call);
    }
    if (s->step == 2) s->at += round_floats(g, s, call);
    *more   = s->at < call->n;
    s->step = 1;
    return *more ? post_blocks(g, s, call, reduce_block) : FM_OK;
}

fm_status fm__all_reduce_step(fm__group *g, fm__slot *s, const fm_comm_call *call, int *more)
{
    if (call->n == 0) {
        *more = 0;
        return FM_OK;
    }
    if (call->n * sizeof(float) <= FM__SHORT_SUM_BYTES) return short_sum(g, s, call, more);
    return long_sum(g, s, call, more);
}

/* Reduce-scatter: rows s->at .. of every rank's own block. */
static block scatter_block(const fm__group *g, const fm__slot *s, const fm_comm_call *call,
                           int rank)
{
    size_t before = 0;
    for (int i = 0; i < rank; i++) before += call->recv_n[i];
    const size_t n = call->recv_n[rank], at = least(s->at, n);
    return (block){call->src, before + at, least(n - at, g->piece)};
}

static size_t longest_block(const fm__group *g, const fm_comm_call *call)
{
    size_t n = 0;
    for (int i = 0; i < g->comm.n_rank; i++) n = call->recv_n[i] > n ? call->recv_n[i] : n;
    return n;
}

fm_status fm__reduce_scatter_step(fm__group *g, fm__slot *s, const fm_comm_call *call, int *more)
{
    if (s->step) {
        const block own = scatter_block(g, s, call, g->comm.rank);
        if (own.n) fm_tree_sum_f32((float *)call->dst + s->at, s->part, g->comm.n_rank, own.n);
        s->at += g->piece;
    }
    s->step = 1;
    *more   = s->at < longest_block(g, call);
    return *more ? post_blocks(g, s, call, scatter_block) : FM_OK;
}
