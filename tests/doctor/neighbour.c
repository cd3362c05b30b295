/* SPDX-License-Identifier: Apache-2.0 */
/* neighbour FILE [THREADS]: reads memory as fast as it can while the main thread of a process is
 * busy, and rests while that waits: a neighbour that one rank of several on a machine has alone.
 * FILE will hold the process's id; "ready" is printed before, when all memory has been touched.
 * Ends with the process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 16, PIECE = 1 << 20 };
static const size_t ARENA = (size_t)128 << 20;

static atomic_int is_busy, n_ready;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rest(long ns)
{
    const struct timespec t = {0, ns};
    nanosleep(&t, NULL);
}

static void *read_memory(void *arg)
{
    uint64_t    *arena = malloc(ARENA), sum = 0;
    size_t       at    = 0;
    const size_t piece = PIECE / sizeof *arena, n = ARENA / sizeof *arena;
    (void)arg;
    if (!arena) exit(1);
    memset(arena, 1, ARENA);
    atomic_fetch_add(&n_ready, 1);
    for (;;) {
        if (!atomic_load(&is_busy)) {
            rest(500000);
            continue;
        }
        for (size_t i = 0; i < piece; i++) sum += arena[at + i];
        __asm__ volatile("" ::"r"(sum));
        at = (at + piece) % n;
    }
    return NULL;
}

/* Seconds the process's main thread has been running; negative: it is gone. */
static double ran(const char *path)
{
    FILE              *f  = fopen(path, "r");
    unsigned long long ns = 0;
    const int          ok = f && fscanf(f, "%llu", &ns) == 1;
    if (f) fclose(f);
    return ok ? 1e-9 * (double)ns : -1;
}

/* The id in `file`, as soon as it is there. */
static int wait_for_id(const char *file)
{
    for (;;) {
        FILE *f  = fopen(file, "r");
        int   id = 0;
        if (f && fscanf(f, "%d", &id) != 1) id = 0;
        if (f) fclose(f);
        if (id > 0) return id;
        rest(10000000);
    }
}

int main(int argc, char **argv)
{
    char         path[64];
    pthread_t    t;
    const int    n    = argc > 2 ? atoi(argv[2]) : 2;
    const double much = 0.5, still = 0.15; /* of the time: it began to work, it still works */
    if (argc < 2 || n < 1 || n > MOST_THREADS) return 2;
    for (int i = 0; i < n; i++)
        if (pthread_create(&t, NULL, read_memory, NULL) != 0) return 1;
    while (atomic_load(&n_ready) < n) rest(1000000);
    puts("ready");
    fflush(stdout);
    snprintf(path, sizeof path, "/proc/%d/schedstat", wait_for_id(argv[1]));
    for (double before = ran(path), at = now(); before >= 0;) {
        rest(atomic_load(&is_busy) ? 20000000 : 2000000);
        const double after = ran(path), t1 = now();
        if (after < 0) break;
        const double share = (after - before) / (t1 - at);
        atomic_store(&is_busy, share > (atomic_load(&is_busy) ? still : much));
        before = after;
        at     = t1;
    }
    return 0;
}
