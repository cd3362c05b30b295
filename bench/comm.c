/* SPDX-License-Identifier: Apache-2.0 */
/* What a collective costs, by size, and what a sum in a fixed order costs
 * against MPI_Allreduce, whose order is not specified:
 *
 *     mpirun -np 4 bench_comm [SECONDS]
 *
 * Times are the mean of the slowest rank; MB/s is the message over the time.
 * SECONDS (default 0.05) are spent on each number. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "comm/world.h"

enum { MOST_BYTES = 16 << 20, RANKS = 64 };

typedef struct {
    fm_comm *c;
    float   *x, *y;
    size_t   bytes;
    size_t   piece[RANKS]; /* bytes of a message cut evenly */
} bench;

typedef fm_status action(bench *b);

static fm_status do_barrier(bench *b)
{
    return fm_barrier(b->c);
}

static fm_status do_broadcast(bench *b)
{
    return fm_broadcast(b->c, b->x, b->bytes, 0);
}

static fm_status do_all_reduce(bench *b)
{
    return fm_all_reduce_f32(b->c, b->x, b->bytes / sizeof *b->x);
}

static fm_status do_mpi_all_reduce(bench *b)
{
    const int n = (int)(b->bytes / sizeof *b->x);
    MPI_Allreduce(MPI_IN_PLACE, b->x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return FM_OK;
}

static void cut_bytes(bench *b)
{
    for (int i = 0; i < b->c->n_rank; i++) b->piece[i] = b->bytes / (size_t)b->c->n_rank;
}

static fm_status do_all_gather(bench *b)
{
    cut_bytes(b);
    return fm_all_gather(b->c, b->y, b->x, b->piece);
}

static fm_status do_all_to_all(bench *b)
{
    cut_bytes(b);
    return fm_all_to_all(b->c, b->y, b->piece, b->x, b->piece);
}

/* There and back between ranks 0 and 1: half is one way. */
static fm_status do_ping_pong(bench *b)
{
    if (b->c->rank > 1) return FM_OK;
    if (b->c->rank == 1) {
        FM_TRY(fm_recv(b->c, b->x, b->bytes, 0, 0));
        return fm_send(b->c, b->x, b->bytes, 0, 0);
    }
    FM_TRY(fm_send(b->c, b->x, b->bytes, 1, 0));
    return fm_recv(b->c, b->x, b->bytes, 1, 0);
}

/* Mean seconds of the slowest rank.  All ranks must agree on the number of
 * turns: rank 0 says it. */
static double measure(bench *b, action *act, double seconds)
{
    int    turns = 3;
    double took  = 0;
    for (int round = 0; round < 2; round++) {
        if (fm_barrier(b->c) != FM_OK) return -1;
        const double began = fm_now();
        for (int i = 0; i < turns; i++)
            if (act(b) != FM_OK) return -1;
        took = (fm_now() - began) / turns;
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        turns = took > 0 && seconds / took < 20000 ? 3 + (int)(seconds / took) : 20000;
    }
    return took;
}

static void row(bench *b, const char *name, action *act, double seconds, double share)
{
    if (b->c->rank == 0) printf("%-16s", name);
    for (size_t n = 64; n <= MOST_BYTES; n *= 8) {
        b->bytes       = n;
        const double t = share * measure(b, act, seconds);
        if (b->c->rank == 0) printf(" %9.1f %6.0f", 1e6 * t, 1e-6 * (double)n / t);
    }
    if (b->c->rank == 0) printf("\n");
}

static void table(bench *b, double seconds)
{
    if (b->c->rank == 0) {
        printf("%d ranks; microseconds and MB/s\n%-16s", b->c->n_rank, "bytes");
        for (int n = 64; n <= MOST_BYTES; n *= 8) printf(" %16d", n);
        printf("\n");
    }
    const double t = measure(b, do_barrier, seconds);
    if (b->c->rank == 0) printf("%-16s %9.1f\n", "barrier", 1e6 * t);
    row(b, "one way", do_ping_pong, seconds, 0.5);
    row(b, "broadcast", do_broadcast, seconds, 1);
    row(b, "all_gather", do_all_gather, seconds, 1);
    row(b, "all_to_all", do_all_to_all, seconds, 1);
    row(b, "all_reduce", do_all_reduce, seconds, 1);
    row(b, "MPI_Allreduce", do_mpi_all_reduce, seconds, 1);
}

int main(int argc, char **argv)
{
    fm_world    *w       = NULL;
    const double seconds = argc > 1 ? atof(argv[1]) : 0.05;
    if (fm_world_open(&w, NULL) != FM_OK) {
        fprintf(stderr, "bench_comm: %s\n", fm_why());
        return 1;
    }
    bench b = {.c = fm_world_comm(w), .x = calloc(1, MOST_BYTES), .y = calloc(1, MOST_BYTES)};
    if (b.c->n_rank == 1 || b.c->n_rank > RANKS || !b.x || !b.y) {
        fprintf(stderr, "bench_comm: start it with mpirun, 2 to %d ranks\n", RANKS);
        return 1;
    }
    table(&b, seconds);
    free(b.x);
    free(b.y);
    fm_world_close(w);
    return 0;
}
