/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/limits.h"

#include <omp.h>

#include "bench/fed_amx.h"
#include "bench/median.h"
#include "device/host.h"
#include "probe/peak.h"
#include "probe/read_bandwidth.h"

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
                       .peak     = fm_peak_of_team(fm_cpu_isa(), FM_FACTOR_BF16, n_thread),
                       .fed      = fed_peak_of_team(fm_cpu_isa(), n_thread)};
    fm_host_free(arena, bytes);
    if (out->peak > 0) return FM_OK;
    return fm_fail(FM_E_NOSUP, "the %s level has no instruction to measure", fm_isa_name(out->isa));
}
