/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over ranks, always in the order of comm/tree.h.  Offsets and lengths are
 * bytes; only add and sum know whether numbers are floats or doubles. */
#include <string.h>

#include "base/number.h"
#include "comm/p2p/p2p_internal.h"
#include "comm/tree.h"

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static int is_f64(const fm_comm_call *call) { return call->kind == FM_COMM_ALL_REDUCE_F64; }

static size_t number_bytes(const fm_comm_call *call)
{
    return is_f64(call) ? sizeof(double) : sizeof(float);
}

static size_t call_bytes(const fm_comm_call *call) { return call->n * number_bytes(call); }

static void add(const fm_comm_call *call, void *out, const void *low, const void *high)
{
    if (is_f64(call))
        fm_tree_add_f64(out, low, high, call->n);
    else
        fm_tree_add_f32(out, low, high, call->n);
}

static void sum(const fm_comm_call *call, void *out, void *const *part, int n, size_t bytes)
{
    if (is_f64(call))
        fm_tree_sum_f64(out, (double *const *)part, n, bytes / sizeof(double));
    else
        fm_tree_sum_f32(out, (float *const *)part, n, bytes / sizeof(float));
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

static fm_status exchange(fm__group *g, fm__flight *s, void *x, size_t bytes, pairing p)
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

static void add_arrived(const fm__group *g, const fm__flight *s, const fm_comm_call *call,
                        pairing p)
{
    if (p.n_right == 0) return;
    if (g->comm.rank < p.right)
        add(call, call->dst, call->dst, s->scratch);
    else
        add(call, call->dst, s->scratch, call->dst);
}

static fm_status short_sum(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    if (s->step > 0) add_arrived(g, s, call, pair_at(&g->comm, s->step - 1));
    if (1 << s->step >= g->comm.n_rank) {
        *more = 0;
        return FM_OK;
    }
    return exchange(g, s, call->dst, call_bytes(call), pair_at(&g->comm, s->step++));
}

/* --- long messages: every rank adds one block ------------------------------ */

typedef struct {
    char  *src;
    size_t n;
} block;

/* The part of x that begins at s->at, as much as the scratch can take, cut into equal blocks of
 * whole cache lines. */
static size_t round_bytes(const fm__group *g, const fm__flight *s, const fm_comm_call *call)
{
    return least(call_bytes(call) - s->at, g->piece * (size_t)g->comm.n_rank);
}

static block block_of(const fm__group *g, const fm__flight *s, const fm_comm_call *call, int rank)
{
    const size_t n = round_bytes(g, s, call), ranks = (size_t)g->comm.n_rank;
    const size_t width = fm_round_up((n + ranks - 1) / ranks, 64);
    const size_t begin = least((size_t)rank * width, n), end = least(begin + width, n);
    return (block){(char *)call->dst + s->at + begin, end - begin};
}

/* Send every rank its block, receive all ranks' parts of the own one into the
 * scratch, one row of g->piece bytes per rank. */
static fm_status post_blocks(fm__group *g, fm__flight *s, const fm_comm_call *call)
{
    const int   n = g->comm.n_rank, me = g->comm.rank;
    const block own = block_of(g, s, call, me);
    for (int i = 0; i < n; i++) {
        s->part[i] = s->scratch + (size_t)i * g->piece;
        if (i != me && own.n) FM_TRY(fm__post_recv(g, s, i, s->part[i], own.n));
    }
    if (own.n) memcpy(s->part[me], own.src, own.n);
    for (int k = 1; k < n; k++) {
        const int   to = (me + k) % n;
        const block b  = block_of(g, s, call, to);
        if (b.n) FM_TRY(fm__post_send(g, s, to, b.src, b.n));
    }
    return FM_OK;
}

static fm_status gather_blocks(fm__group *g, fm__flight *s, const fm_comm_call *call)
{
    const int   n = g->comm.n_rank, me = g->comm.rank;
    const block own = block_of(g, s, call, me);
    sum(call, own.src, s->part, n, own.n);
    for (int i = 0; i < n; i++) {
        const block b = block_of(g, s, call, i);
        if (i != me && b.n) FM_TRY(fm__post_recv(g, s, i, b.src, b.n));
    }
    for (int k = 1; k < n && own.n; k++) FM_TRY(fm__post_send(g, s, (me + k) % n, own.src, own.n));
    return FM_OK;
}

static fm_status long_sum(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    if (s->step == 1) {
        s->step = 2;
        return gather_blocks(g, s, call);
    }
    if (s->step == 2) s->at += round_bytes(g, s, call);
    *more   = s->at < call_bytes(call);
    s->step = 1;
    return *more ? post_blocks(g, s, call) : FM_OK;
}

fm_status fm__all_reduce_step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more)
{
    if (call->n == 0) {
        *more = 0;
        return FM_OK;
    }
    if (call_bytes(call) <= FM__SHORT_SUM_BYTES) return short_sum(g, s, call, more);
    return long_sum(g, s, call, more);
}
