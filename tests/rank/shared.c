/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory that ranks of one host share: who fills, what the others
 * read, what is counted, and what happens where sharing does not work. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

#include <sys/resource.h>
#include <unistd.h>

#include "comm/shared.h"
#include "device/host.h"
#include "rank.h"

enum { BYTES = 9 << 20 };

static fm_world *w;
static int       rank, n_rank;

static void fill_and_read(fm_shared *s, int mark)
{
    if (s->fills) memset(s->base, mark, s->bytes);
    CHECK(w, fm_shared_ready(s, 1) == FM_OK);
    const unsigned char *p = s->base;
    for (size_t i = 0; i < s->bytes; i++)
        if (p[i] != mark) CHECK(w, !"another rank's content");
}

static int fillers(const fm_shared *s)
{
    float n = (float)s->fills;
    CHECK(w, fm_all_reduce_f32(fm_world_comm(w), &n, 1) == FM_OK);
    return (int)n;
}

/* Even ranks hold one content, odd ranks another. */
static void two_contents(void)
{
    fm_shared s     = {0};
    const int mates = (n_rank + 1 - rank % 2) / 2;
    CHECK(w, fm_shared_open(&s, w, 70 + (uint64_t)(rank % 2), BYTES, "block") == FM_OK);
    CHECK(w, s.fills == (rank < 2) && s.n_sharer == mates && fillers(&s) == 2);
    CHECK(w, s.total > BYTES && s.available > BYTES);
    CHECK(w, (s.available - BYTES) * (size_t)n_rank <= fm_host_total());
    fill_and_read(&s, 70 + rank % 2);
    CHECK(w, fm_barrier(fm_world_comm(w)) == FM_OK);
    fm_shared_close(&s);
    fm_shared_close(&s);
}

/* Blocks the host cannot hold are said to be too large, not divided away. */
static void too_large(void)
{
    fm_shared    s    = {0};
    const size_t much = fm_host_total() * 2;
    CHECK(w, fm_shared_open(&s, w, 5, much, "block") == FM_OK);
    CHECK(w, s.available < much && s.total < much);
    fm_shared_close(&s);
}

/* The first rank cannot open another file: no rank can share, and each allocates its own block. */
static void without_files(void)
{
    struct rlimit was, none;
    fm_shared     s    = {0};
    const int     next = dup(STDOUT_FILENO);
    close(next);
    getrlimit(RLIMIT_NOFILE, &was);
    none = (struct rlimit){(rlim_t)next, was.rlim_max};
    if (rank == 0) setrlimit(RLIMIT_NOFILE, &none);
    CHECK(w, fm_shared_open(&s, w, 9, BYTES, "block") == FM_OK);
    setrlimit(RLIMIT_NOFILE, &was);
    CHECK(w, s.fills && s.n_sharer == 1 && fillers(&s) == n_rank);
    fill_and_read(&s, 9);
    fm_shared_close(&s);
}

int main(void)
{
    w      = rank_open();
    rank   = fm_world_comm(w)->rank;
    n_rank = fm_world_comm(w)->n_rank;
    two_contents();
    too_large();
    without_files();
    fm_world_close(w);
    return 0;
}
