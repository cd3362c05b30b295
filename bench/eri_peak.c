/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/eri_peak.h"

double fm_fma_peak(fm_isa isa)
{
    if (isa >= FM_ISA_AVX512) return fm__fma_peak_avx512();
    return isa == FM_ISA_AVX2 ? fm__fma_peak_avx2() : fm__fma_peak_ref();
}
