/* SPDX-License-Identifier: Apache-2.0 */
/* FP64 multiply-adds a second of one core, vectors of an instruction set, measured. */
#ifndef FM_BENCH_ERI_PEAK_H
#define FM_BENCH_ERI_PEAK_H

#include "base/cpu.h"

double fm_fma_peak(fm_isa isa);

double fm__fma_peak_ref(void);
double fm__fma_peak_avx2(void);
double fm__fma_peak_avx512(void);

#endif
