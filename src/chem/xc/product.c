/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/product.h"

extern const fm_product_kernels fm__product_ref;
#if defined(__x86_64__)
extern const fm_product_kernels fm__product_avx2, fm__product_avx512;
#endif

const fm_product_kernels *fm_product_kernels_at(int i)
{
#if defined(__x86_64__)
    static const fm_product_kernels *const table[] = {&fm__product_avx512, &fm__product_avx2,
                                                      &fm__product_ref};
#else
    static const fm_product_kernels *const table[] = {&fm__product_ref};
#endif
    return i < (int)(sizeof table / sizeof table[0]) ? table[i] : NULL;
}

const fm_product_kernels *fm_product_kernels_pick(void)
{
    int i = 0;
    while (fm_product_kernels_at(i)->isa > fm_cpu_isa()) i++; /* stops at ref */
    return fm_product_kernels_at(i);
}
