/* SPDX-License-Identifier: Apache-2.0 */
/* neighbour PID [THREADS]: reads memory as fast as it can while the main thread of process PID is
 * busy, and rests while that waits: a neighbour that one rank of several on a machine has alone.
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
static const size_t ARENA = (size_t)256 << 20;

static atomic_int is_busy;

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

int main(int argc, char **argv)
{
    char         path[64];
    pthread_t    t;
    const int    n    = argc > 2 ? atoi(argv[2]) : 2;
    const double much = 0.5, still = 0.15; /* of the time: it began to work, it still works */
    if (argc < 2 || n < 1 || n > MOST_THREADS) return 2;
    snprintf(path, sizeof path, "/proc/%.20s/schedstat", argv[1]);
    for (int i = 0; i < n; i++)
        if (pthread_create(&t, NULL, read_memory, NULL) != 0) return 1;
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
