/* SPDX-License-Identifier: Apache-2.0 */
/* Links between GPUs: every pair of ranks has a latency and a bandwidth, and all ranks know all of
 * them; where NCCL fails, its words are kept and the job goes on. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "probe/gpu_links.h"
#include "rank.h"

static void check_pairs(fm_world *w, const fm_links *l)
{
    for (int i = 0; i < l->n_rank * l->n_rank; i++) {
        const int is_self = i / l->n_rank == i % l->n_rank;
        CHECK(w, (l->latency[i].n > 0) == !is_self);
        if (is_self) continue;
        CHECK(w, l->latency[i].median > 1e-8 && l->latency[i].median < 1);
        CHECK(w, l->bandwidth[i].n == l->latency[i].n && l->bandwidth[i].median > 1e6);
    }
    CHECK(w, l->all_to_all.n > 0 && l->all_to_all.median > 1e6);
}

/* The numbers of rank 0 are the numbers of all. */
static void check_same(fm_world *w, const fm_links *l)
{
    const size_t n     = (size_t)l->n_rank * (size_t)l->n_rank;
    fm_rate     *first = malloc(n * sizeof *first), sent = l->all_to_all;
    CHECK(w, first != NULL);
    memcpy(first, l->bandwidth, n * sizeof *first);
    CHECK(w, fm_broadcast(fm_world_comm(w), first, n * sizeof *first, 0) == FM_OK);
    CHECK(w, memcmp(first, l->bandwidth, n * sizeof *first) == 0);
    CHECK(w, fm_broadcast(fm_world_comm(w), &sent, sizeof sent, 0) == FM_OK);
    CHECK(w, memcmp(&sent, &l->all_to_all, sizeof sent) == 0);
    free(first);
}

/* NCCL fails on all ranks: when they join, or at the first long message. */
static void check_failure(fm_world *w, const fm_turns *turns, const char *at)
{
    fm_gpu_links l = {0};
    CHECK(w, setenv("FM_STANDIN_FAILS", at, 1) == 0);
    CHECK(w, fm_gpu_links_measure(&l, turns, "") == FM_OK);
    CHECK(w, l.links.n_rank == 0 && l.has_failed);
    CHECK(w, strstr(l.why, "NCCL, rank ") && strstr(l.why, "invalid argument"));
    fm_gpu_links_fini(&l);
}

int main(void)
{
    fm_world      *w     = rank_open();
    const fm_turns turns = fm_turns_of(w, 20);
    const int      n = fm_world_comm(w)->n_rank, me = fm_world_comm(w)->rank;
    fm_gpu_links   l = {0};

    CHECK(w, fm_gpu_links_measure(&l, &turns, "") == FM_OK);
    CHECK(w, l.links.n_rank == n && !l.has_failed && !*l.why);
    check_pairs(w, &l.links);
    check_same(w, &l.links);
    fm_gpu_links_fini(&l);

    CHECK(w, fm_gpu_links_measure(&l, &turns, "0000:1B:00.0") == FM_OK); /* one GPU for all */
    CHECK(w, l.links.n_rank == 0 && !strcmp(l.why, "ranks 0 and 1 share a GPU"));
    fm_gpu_links_fini(&l);

    check_failure(w, &turns, "join");
    check_failure(w, &turns, "long");
    CHECK(w, unsetenv("FM_STANDIN_FAILS") == 0 && fm_barrier(fm_world_comm(w)) == FM_OK);
    if (me == 0) printf("links of %d GPUs are measured\n", n);
    fm_world_close(w);
    return 0;
}
