/* SPDX-License-Identifier: Apache-2.0 */
/* What one core can multiply at best. */
#ifndef FM_BENCH_GEMM_PEAK_H
#define FM_BENCH_GEMM_PEAK_H

#include "base/cpu.h"
#include "base/number.h"

/* Random numbers for what is to be measured. */
void fm_bench_numbers(void *p, size_t bytes);

/* FLOP/s of the instruction a variant is built on, with registers only; 0 for ref. */
double fm_bench_peak(fm_isa isa, fm_dtype type);

/* FLOP/s of AMX products as the kernels do them, with operands from L1: on a core that is shared
 * with another machine's hyperthread less than the peak, now and then or always. */
double fm_bench_fed_amx(void);

#endif
