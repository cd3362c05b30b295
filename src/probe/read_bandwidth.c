/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "probe/read_bandwidth.h"

#include <omp.h>
#include <stdint.h>

#include "base/clock.h"
#include "probe/thread_time.h"

enum { PASSES = 5, LINE = 64, MOST_STREAMS = 4, PIECE = 4 << 20, STREAMS_OF_PIECE = 2 };

typedef uint64_t line_of_words __attribute__((vector_size(LINE)));

/* XOR of everything, from `streams` places of the share in turn. */
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static uint64_t
read_share(const char *p, size_t bytes, int streams)
{
    const size_t  each = bytes / (size_t)streams / (4 * LINE) * (4 * LINE);
    line_of_words sum[4] = {{0}};
    for (size_t at = 0; at < each; at += sizeof sum)
        for (int s = 0; s < streams; s++) {
            const line_of_words *v = (const line_of_words *)(p + (size_t)s * each + at);
            for (int i = 0; i < 4; i++) sum[i] ^= v[i];
        }
    sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
    return sum[0][0] ^ sum[0][3] ^ sum[0][7];
}

static void want(uint64_t sum)
{
    __asm__ volatile("" ::"r"(sum));
}

static double read_once(const char *arena, size_t bytes, int n_thread, int streams)
{
    const size_t share = bytes / (size_t)n_thread / 4096 * 4096;
    uint64_t     sum   = 0;
    const double began = fm_now();
#pragma omp parallel num_threads(n_thread) reduction(^ : sum)
    sum ^= read_share(arena + share * (size_t)omp_get_thread_num(), share, streams);
    const double took = fm_now() - began;
    want(sum);
    return (double)share * n_thread / took;
}

double fm_read_bandwidth(const void *arena, size_t bytes, int n_thread)
{
    double best = 0;
    for (int streams = 1; streams <= MOST_STREAMS; streams *= 2)
        for (int pass = 0; pass < PASSES; pass++) {
            const double rate = read_once(arena, bytes, n_thread, streams);
            if (rate > best) best = rate;
        }
    return best;
}

/* Bytes one thread read until then, around its share in pieces. */
static double read_until(const char *share, size_t bytes, double until, double *ran)
{
    const double began = fm_thread_time();
    double       done  = 0;
    size_t       at    = 0;
    uint64_t     sum   = 0;
    do {
        sum ^= read_share(share + at, PIECE, STREAMS_OF_PIECE);
        done += PIECE;
        at += PIECE;
        if (at + PIECE > bytes) at = 0;
    } while (fm_now() < until);
    want(sum);
    *ran += fm_thread_time() - began;
    return done;
}

fm_sustained fm_read_sustained(const void *arena, size_t bytes, int n_thread, double seconds)
{
    const size_t share = bytes / (size_t)n_thread / PIECE * PIECE;
    double       done = 0, ran = 0, began = 0;
    FM_BUG_UNLESS(share >= PIECE);
#pragma omp parallel num_threads(n_thread) reduction(+ : done, ran)
    {
        const char *mine = (const char *)arena + share * (size_t)omp_get_thread_num();
#pragma omp single
        began = fm_now();
        done += read_until(mine, share, began + seconds, &ran);
    }
    const double took = fm_now() - began;
    return (fm_sustained){done / took, ran / took / n_thread};
}
