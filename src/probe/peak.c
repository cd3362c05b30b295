/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "probe/peak.h"

#include <math.h>
#include <stdint.h>

#include <omp.h>

#include "base/clock.h"
#include "base/rng.h"
#include "probe/peak_internal.h"
#include "probe/thread_time.h"

enum { GOES = 5 };

void fm_peak_numbers(void *p, size_t bytes)
{
    uint32_t *to = p;
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        to[i] = (fm_rng_u32(7, i) & 0x807f807f) | 0x3f003f00;
}

static double rate_of(fm__work w) { return w.flop / w.seconds; }

double fm_peak_of_core(fm_isa isa, fm_factor f)
{
    fm__peak_loop *loop[FM__PEAK_LOOPS];
    double         best = 0;
    fm__peak_loops(loop, isa, f);
    for (int i = 0; i < GOES; i++)
        for (int l = 0; loop[l]; l++) best = fmax(best, rate_of(loop[l]()));
    return best;
}

double fm_peak_of_team(fm_isa isa, fm_factor f, int n_thread)
{
    double best = 0;
    for (int pass = 0; pass < GOES; pass++) {
        double all = 0;
#pragma omp parallel num_threads(n_thread) reduction(+ : all)
        {
            fm_peak_of_core(isa, f); /* warms up every thread's core */
#pragma omp barrier
            all += fm_peak_of_core(isa, f);
        }
        if (all > best) best = all;
    }
    return best;
}

static fm__peak_loop *fastest(fm_isa isa, fm_factor f)
{
    fm__peak_loop *loop[FM__PEAK_LOOPS], *found = NULL;
    double         best = 0;
    fm__peak_loops(loop, isa, f);
    for (int l = 0; loop[l]; l++) {
        const double rate = rate_of(loop[l]());
        if (rate > best) found = loop[l];
        best = fmax(best, rate);
    }
    return found;
}

/* What one thread did until then, and how long it was running meanwhile. */
static double multiply_until(fm__peak_loop *loop, double until, double *ran)
{
    const double began = fm_thread_time();
    double       flop  = 0;
    do flop += loop().flop;
    while (fm_now() < until);
    *ran += fm_thread_time() - began;
    return flop;
}

fm_sustained fm_peak_sustained(fm_isa isa, fm_factor f, int n_thread, double seconds)
{
    fm__peak_loop *const loop = fastest(isa, f);
    double               flop = 0, ran = 0, began = 0;
    if (!loop) return (fm_sustained){0};
#pragma omp parallel num_threads(n_thread) reduction(+ : flop, ran)
    {
#pragma omp single
        began = fm_now();
        flop += multiply_until(loop, began + seconds, &ran);
    }
    const double took = fm_now() - began;
    return (fm_sustained){flop / took, ran / took / n_thread};
}
