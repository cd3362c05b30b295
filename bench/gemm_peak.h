/* SPDX-License-Identifier: Apache-2.0 */
/* What one core can multiply at best, measured with registers only. */
#ifndef FM_BENCH_GEMM_PEAK_H
#define FM_BENCH_GEMM_PEAK_H

#include "base/cpu.h"
#include "base/number.h"

/* FLOP/s of the instruction a variant is built on; 0 for ref. */
double fm_bench_peak(fm_isa isa, fm_dtype type);

#endif
