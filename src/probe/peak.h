/* SPDX-License-Identifier: Apache-2.0 */
/* The multiply-add peak of cores: FLOP/s of the instruction that products of a type are
 * built on, with operands in registers alone.
 *
 * At best: the fastest of a few short runs, a limit for kernels.  Sustained: the mean over
 * a longer time, which a CPU quota, other processes and a falling clock lower. */
#ifndef FM_PROBE_PEAK_H
#define FM_PROBE_PEAK_H

#include <stddef.h>

#include "base/cpu.h"
#include "probe/rates.h"

/* Over a stretch of time. */
typedef struct {
    double rate;   /* per second */
    double on_cpu; /* share of the time that the threads were running, not waiting for a CPU */
} fm_sustained;

/* Random numbers, as bf16 pairs, f32 or f64, for what is to be multiplied: zeros draw less
 * current and run faster. */
void fm_peak_numbers(void *p, size_t bytes);

/* At best, of the calling thread; and of all threads at once, so that clocks shared by the cores
 * show.  0: the level has no instruction for it. */
double fm_peak_of_core(fm_isa isa, fm_factor f);
double fm_peak_of_team(fm_isa isa, fm_factor f, int n_thread);

fm_sustained fm_peak_sustained(fm_isa isa, fm_factor f, int n_thread, double seconds);

#endif
