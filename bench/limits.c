/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/limits.h"

#include <omp.h>
#include <stdint.h>

#include "base/clock.h"
#include "bench/gemm_peak.h"
#include "bench/median.h"
#include "device/host.h"

enum { PASSES = 5, LINE = 64, MOST_STREAMS = 4 };

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

static double read_once(const char *arena, size_t bytes, int n_thread, int streams)
{
    const size_t share = bytes / (size_t)n_thread / 4096 * 4096;
    uint64_t     sum   = 0;
    const double began = fm_now();
#pragma omp parallel num_threads(n_thread) reduction(^ : sum)
    sum ^= read_share(arena + share * (size_t)omp_get_thread_num(), share, streams);
    const double took = fm_now() - began;
    __asm__ volatile("" ::"r"(sum)); /* the sum is wanted */
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

double fm_peak_of_team(fm_isa isa, fm_dtype type, int n_thread)
{
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        double all = 0;
#pragma omp parallel num_threads(n_thread) reduction(+ : all)
        {
            fm_bench_peak(isa, type); /* everybody is awake and warm */
#pragma omp barrier
            all += fm_bench_peak(isa, type);
        }
        if (all > best) best = all;
    }
    return best;
}

/* The median: what a neighbour takes comes and goes. */
static double fed_peak_of_team(fm_isa isa, int n_thread)
{
    enum { GOES = 31 };
    double rate[GOES] = {0};
    if (isa != FM_ISA_AMX) return 0;
    for (int i = 0; i < GOES; i++) {
        double all = 0;
#pragma omp parallel num_threads(n_thread) reduction(+ : all)
        {
#pragma omp barrier
            all += fm_bench_fed_amx();
        }
        rate[i] = all;
    }
    return fm_median(rate, GOES);
}

fm_status fm_limits_measure(fm_limits *out, int n_thread)
{
    const size_t bytes = (size_t)1 << 30;
    char        *arena = NULL;
    FM_TRY(fm_host_alloc((void **)&arena, bytes, "memory to read"));
#pragma omp parallel for num_threads(n_thread) schedule(static)
    for (size_t i = 0; i < bytes; i += 4096)
        arena[i] = 1; /* a page of its own, not the zero page */
    *out = (fm_limits){.n_thread = n_thread,
                       .isa      = fm_cpu_isa(),
                       .read     = fm_read_bandwidth(arena, bytes, n_thread),
                       .peak     = fm_peak_of_team(fm_cpu_isa(), FM_BF16, n_thread),
                       .fed      = fed_peak_of_team(fm_cpu_isa(), n_thread)};
    fm_host_free(arena, bytes);
    if (out->peak > 0) return FM_OK;
    return fm_fail(FM_E_NOSUP, "the %s level has no instruction to measure", fm_isa_name(out->isa));
}
