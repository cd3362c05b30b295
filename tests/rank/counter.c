/* SPDX-License-Identifier: Apache-2.0 */
/* A counter over ranks and their threads: every number exactly once, in shared
 * memory, through rank 0's watch thread, and in a group of a group. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "comm/counter.h"
#include "rank.h"

enum { NUMBERS = 600, THREADS = 3 };

static fm_world *w;
static float     taken[NUMBERS]; /* by this rank: 0 or 1 */

static void *take_all(void *counter)
{
    long long i = 0;
    for (;;) {
        CHECK(w, fm_counter_next(counter, &i) == FM_OK);
        if (i >= NUMBERS) return NULL;
        taken[i] += 1; /* no other rank or thread has this number */
        usleep(200);
    }
}

static void one_round(fm_comm *comm, fm_counter *c)
{
    pthread_t thread[THREADS];
    memset(taken, 0, sizeof taken);
    fm_counter_reset(c);
    for (int t = 0; t < THREADS; t++) pthread_create(&thread[t], NULL, take_all, c);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    CHECK(w, fm_all_reduce_f32(comm, taken, NUMBERS) == FM_OK);
    for (int i = 0; i < NUMBERS; i++) CHECK(w, taken[i] == 1);
}

static void count_over(fm_comm *comm)
{
    fm_counter *a = NULL, *b = NULL;
    CHECK(w, fm_counter_open(&a, comm) == FM_OK);
    CHECK(w, fm_counter_open(&b, comm) == FM_OK);
    for (int round = 0; round < 3; round++) {
        one_round(comm, a);
        one_round(comm, b);
    }
    fm_counter_close(a);
    fm_counter_close(b);
}

/* The last rank can open no file while the counter opens: no memory is shared,
 * and all ask the watch, as ranks of several hosts do. */
static void without_shared_memory(fm_comm *comm)
{
    struct rlimit was, none;
    fm_counter   *c    = NULL;
    const int     next = dup(STDOUT_FILENO);
    close(next);
    getrlimit(RLIMIT_NOFILE, &was);
    none = (struct rlimit){(rlim_t)next, was.rlim_max};
    if (comm->rank == comm->n_rank - 1) setrlimit(RLIMIT_NOFILE, &none);
    CHECK(w, fm_counter_open(&c, comm) == FM_OK);
    setrlimit(RLIMIT_NOFILE, &was);
    for (int round = 0; round < 3; round++) one_round(comm, c);
    fm_counter_close(c);
}

int main(void)
{
    w                      = rank_open();
    fm_comm           *all = fm_world_comm(w), *half = NULL;
    const fm_comm_part part = {all->rank % 2, 0, "half", 0};
    count_over(all);
    without_shared_memory(all);
    CHECK(w, fm_comm_split(all, &part, &half) == FM_OK);
    count_over(half);
    if (half->n_rank > 1) without_shared_memory(half);
    fm_comm_close(half);
    fm_world_close(w);
    return 0;
}
