/* SPDX-License-Identifier: Apache-2.0 */
#define PEAK_NAME fm__fma_peak_avx512
#include "bench/eri_peak_body.h"
