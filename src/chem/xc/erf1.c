/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/erf1.h"

#include <stddef.h>

extern const fm_erf1_kernels fm__erf1_ref;
#if defined(__x86_64__)
extern const fm_erf1_kernels fm__erf1_avx2, fm__erf1_avx512;
#endif

const fm_erf1_kernels *fm_erf1_kernels_at(int i)
{
#if defined(__x86_64__)
    static const fm_erf1_kernels *const table[] = {&fm__erf1_avx512, &fm__erf1_avx2, &fm__erf1_ref};
#else
    static const fm_erf1_kernels *const table[] = {&fm__erf1_ref};
#endif
    return i < (int)(sizeof table / sizeof table[0]) ? table[i] : NULL;
}

const fm_erf1_kernels *fm_erf1_kernels_pick(void)
{
    int i = 0;
    while (fm_erf1_kernels_at(i)->isa > fm_cpu_isa()) i++; /* stops at ref */
    return fm_erf1_kernels_at(i);
}
