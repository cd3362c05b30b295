/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective over the real transport against a plain computation, with
 * random lengths, zeros among them; jobs that overlap; groups of a group. */
#include <string.h>

#include "base/rng.h"
#include "rank.h"

enum { MOST = 300000, RANKS = 16 };

static fm_world *w;
static float     x[MOST + 1], y[MOST + 1], z[MOST + 1];
static uint64_t  drawn;

static uint32_t draw(uint32_t below) /* the same on all ranks */
{
    return fm_rng_u32(4711, drawn++) % below;
}

static size_t draw_length(uint32_t most)
{
    static const size_t special[] = {0, 1, 17, 4096, 4097};
    return draw(3) ? draw(most) : special[draw(5)];
}

static float leaf(uint64_t key, int rank, size_t i)
{
    return ((float)(fm_rng_u32(key * 64 + (uint64_t)rank, i) >> 8) - 0x1p23f) *
           (float)(1 << fm_rng_u32(key, i) % 16);
}

static float tree(uint64_t key, int first, int n, size_t i)
{
    if (n == 1) return leaf(key, first, i);
    int half = 1;
    while (2 * half < n) half *= 2;
    return tree(key, first, half, i) + tree(key, first + half, n - half, i);
}

static unsigned char byte(uint64_t key, int from, int to, size_t i)
{
    return (unsigned char)fm_rng_u32(key + (uint64_t)(from * RANKS + to), i);
}

static void all_reduce(fm_comm *c, uint64_t key)
{
    const size_t n = draw_length(MOST);
    for (size_t i = 0; i < n; i++) x[i] = leaf(key, c->rank, i);
    x[n] = 42;
    CHECK(w, fm_all_reduce_f32(c, x, n) == FM_OK);
    for (size_t i = 0; i < n; i += 1 + i / 50) CHECK(w, x[i] == tree(key, 0, c->n_rank, i));
    CHECK(w, x[n] == 42);
}

static double wide_leaf(uint64_t key, int rank, size_t i)
{
    return (double)leaf(key, rank, i) * (1 + 0x1p-30 * (double)(i % 1000));
}

static double wide_tree(uint64_t key, int first, int n, size_t i)
{
    if (n == 1) return wide_leaf(key, first, i);
    int half = 1;
    while (2 * half < n) half *= 2;
    return wide_tree(key, first, half, i) + wide_tree(key, first + half, n - half, i);
}

static void all_reduce_f64(fm_comm *c, uint64_t key)
{
    static double wide[MOST + 1];
    const size_t  n = draw_length(MOST);
    for (size_t i = 0; i < n; i++) wide[i] = wide_leaf(key, c->rank, i);
    wide[n] = 42;
    CHECK(w, fm_all_reduce_f64(c, wide, n) == FM_OK);
    for (size_t i = 0; i < n; i += 1 + i / 50) CHECK(w, wide[i] == wide_tree(key, 0, c->n_rank, i));
    CHECK(w, wide[n] == 42);
}

static void all_gather(fm_comm *c, uint64_t key)
{
    size_t         n[RANKS];
    unsigned char *src = (unsigned char *)x, *dst = (unsigned char *)y;
    for (int r = 0; r < c->n_rank; r++) n[r] = draw_length(MOST / RANKS);
    for (size_t i = 0; i < n[c->rank]; i++) src[i] = byte(key, c->rank, 0, i);
    CHECK(w, fm_all_gather(c, dst, src, n) == FM_OK);
    size_t at = 0;
    for (int r = 0; r < c->n_rank; at += n[r++])
        for (size_t i = 0; i < n[r]; i++) CHECK(w, dst[at + i] == byte(key, r, 0, i));
}

static void all_to_all(fm_comm *c, uint64_t key)
{
    size_t         to[RANKS], from[RANKS], at = 0;
    unsigned char *src = (unsigned char *)x, *dst = (unsigned char *)y;
    const int      idle = draw(2) ? (int)draw((uint32_t)c->n_rank) : -1; /* one rank has nothing */
    for (int a = 0; a < c->n_rank; a++)
        for (int b = 0; b < c->n_rank; b++) {
            const size_t n = draw_length(MOST / RANKS) * (a != idle && b != idle);
            if (a == c->rank) to[b] = n;
            if (b == c->rank) from[a] = n;
        }
    for (int b = 0; b < c->n_rank; at += to[b++])
        for (size_t i = 0; i < to[b]; i++) src[at + i] = byte(key, c->rank, b, i);
    CHECK(w, fm_all_to_all(c, dst, from, src, to) == FM_OK);
    at = 0;
    for (int a = 0; a < c->n_rank; at += from[a++])
        for (size_t i = 0; i < from[a]; i++) CHECK(w, dst[at + i] == byte(key, a, c->rank, i));
}

static void broadcast(fm_comm *c, uint64_t key)
{
    const int      root = (int)draw((uint32_t)c->n_rank);
    const size_t   n    = draw_length(MOST);
    unsigned char *p    = (unsigned char *)x;
    for (size_t i = 0; i < n; i++) p[i] = c->rank == root ? byte(key, root, 0, i) : 0;
    CHECK(w, fm_broadcast(c, p, n, root) == FM_OK);
    for (size_t i = 0; i < n; i++) CHECK(w, p[i] == byte(key, root, 0, i));
}

/* A ring: every rank sends to the right and receives from the left. */
static void ring(fm_comm *c, uint64_t key)
{
    const size_t n     = draw_length(MOST);
    const int    right = (c->rank + 1) % c->n_rank, left = (c->rank + c->n_rank - 1) % c->n_rank;
    fm_comm_job  out, in;
    for (size_t i = 0; i < n; i++) x[i] = leaf(key, c->rank, i);
    CHECK(w, fm_comm_start(c, &in, fm_call_recv(y, n * sizeof *y, left, 5)) == FM_OK);
    CHECK(w, fm_comm_start(c, &out, fm_call_send(x, n * sizeof *x, right, 5)) == FM_OK);
    CHECK(w, fm_comm_wait(&out) == FM_OK && fm_comm_wait(&in) == FM_OK);
    for (size_t i = 0; i < n; i++) CHECK(w, y[i] == leaf(key, left, i));
}

/* Three jobs at once, waited for in another order than started, and something
 * to compute meanwhile. */
static void overlap(fm_comm *c, uint64_t key)
{
    const size_t n = draw_length(MOST / 2);
    fm_comm_job  job[3];
    int          done = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = leaf(key, c->rank, i);
        y[i] = leaf(key + 1, c->rank, i);
        z[i] = c->rank == 0 ? (float)i : -1;
    }
    CHECK(w, fm_comm_start(c, &job[0], fm_call_all_reduce_f32(x, n)) == FM_OK);
    CHECK(w, fm_comm_start(c, &job[1], fm_call_broadcast(z, n * sizeof *z, 0)) == FM_OK);
    CHECK(w, fm_comm_start(c, &job[2], fm_call_all_reduce_f32(y, n)) == FM_OK);
    volatile float work = 0;
    for (int i = 0; i < 1000; i++) work += (float)i;
    for (int i = 0; i < 10; i++) CHECK(w, fm_comm_test(&job[0], &done) == FM_OK);
    for (int k = 2; k >= 0; k--) CHECK(w, fm_comm_wait(&job[k]) == FM_OK);
    for (size_t i = 0; i < n; i += 1 + i / 50) {
        CHECK(w, x[i] == tree(key, 0, c->n_rank, i));
        CHECK(w, y[i] == tree(key + 1, 0, c->n_rank, i));
        CHECK(w, z[i] == (float)i);
    }
}

static void all_kinds(fm_comm *c, int turns)
{
    drawn = 0; /* groups of other sizes draw more or less */
    static void (*const each[])(fm_comm *, uint64_t) = {
        all_reduce, all_gather, all_to_all, broadcast, overlap, all_reduce_f64};
    for (int turn = 0; turn < turns; turn++) {
        for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
            fm_world_doing(w, "turn %d kind %zu", turn, k);
            each[k](c, (uint64_t)turn * 1000 + k * 10);
        }
        if (c->n_rank > 1) ring(c, 1);
        CHECK(w, fm_barrier(c) == FM_OK);
    }
}

/* Two groups, turned round, of ranks with equal parity; rank 0 in a third
 * split stays out; then a part of a part. */
static void split(void)
{
    fm_comm           *all = fm_world_comm(w), *half = NULL, *most = NULL, *pair = NULL;
    const fm_comm_part parity = {all->rank % 2, -all->rank, "parity", 64 << 10};
    const fm_comm_part but_0  = {all->rank ? 7 : -1, 0, "but-0", 0};
    CHECK(w, fm_comm_split(all, &parity, &half) == FM_OK);
    CHECK(w, half->n_rank == (all->n_rank + 1 - all->rank % 2) / 2);
    CHECK(w, half->rank == half->n_rank - 1 - all->rank / 2);
    all_kinds(half, 2);
    CHECK(w, fm_comm_split(all, &but_0, &most) == FM_OK);
    CHECK(w, !most == !all->rank);
    if (most) CHECK(w, most->n_rank == all->n_rank - 1 && most->rank == all->rank - 1);
    if (most) all_kinds(most, 1);
    CHECK(w, fm_comm_split(half, &(fm_comm_part){half->rank / 2, 0, "pair", 0}, &pair) == FM_OK);
    all_kinds(pair, 1);
    fm_comm_close(pair);
    fm_comm_close(most);
    fm_comm_close(half);
}

static void scratch_must_agree(void)
{
    fm_comm     *all = fm_world_comm(w), *c = NULL;
    fm_comm_part part = {0, 0, "odd", all->rank == 0 ? 1 << 20 : 1 << 19};
    if (all->n_rank == 1) return;
    CHECK(w, fm_comm_split(all, &part, &c) == FM_E_ARG && !c);
}

int main(void)
{
    w = rank_open();
    all_kinds(fm_world_comm(w), 6);
    split();
    scratch_must_agree();
    CHECK(w, fm_barrier(fm_world_comm(w)) == FM_OK);
    fm_world_close(w);
    return 0;
}
