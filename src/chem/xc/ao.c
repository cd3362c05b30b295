/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/ao.h"

#include <stddef.h>

#include "base/status.h"
#include "chem/integral/harmonic.h"

extern const fm_ao_kernels fm__ao_ref;
#if defined(__x86_64__)
extern const fm_ao_kernels fm__ao_avx2, fm__ao_avx512;
#endif

static const fm_ao_kernels *all(int i)
{
#if defined(__x86_64__)
    static const fm_ao_kernels *const table[] = {&fm__ao_avx512, &fm__ao_avx2, &fm__ao_ref};
#else
    static const fm_ao_kernels *const table[] = {&fm__ao_ref};
#endif
    return i < (int)(sizeof table / sizeof table[0]) ? table[i] : NULL;
}

const fm_ao_kernels *fm_ao_kernels_at(int i) { return all(i); }

const fm_ao_kernels *fm_ao_kernels_pick(void)
{
    int i = 0;
    while (all(i)->isa > fm_cpu_isa()) i++; /* stops at ref */
    return all(i);
}

static int index_of(int i, int j, int k)
{
    const int r = j + k;
    (void)i;
    return r * (r + 1) / 2 + k;
}

/* The factor and the monomial that d/dx, d/dy or d/dz (d = 1, 2, 3) makes of x^i y^j z^k. */
static double derivative(fm_monomial m, int d, int *index)
{
    int power[3] = {m.i, m.j, m.k};
    if (d > 0 && power[d - 1] == 0) return 0;
    const double f = d > 0 ? power[d - 1]-- : 1;
    *index         = index_of(power[0], power[1], power[2]);
    return f;
}

void fm_angular_init(fm_angular *a, int l, int is_pure)
{
    double    c[FM_ANGULAR_COMPONENTS * FM_ANGULAR_COMPONENTS];
    const int n_cartesian = fm_components(l, 0);
    int       n           = 0;
    fm_shell_transform(c, l, is_pure);
    a->n_component = fm_components(l, is_pure);
    for (int d = 0; d < 4; d++)
        for (int f = 0; f <= a->n_component; f++) {
            a->first[d][f] = n;
            for (int m = 0; f < a->n_component && m < n_cartesian; m++) {
                int          index  = 0;
                const double factor = derivative(fm_cartesian(l, m), d, &index);
                if (factor * c[f * n_cartesian + m] == 0) continue;
                FM_BUG_UNLESS(n < FM_ANGULAR_TERMS);
                a->monomial[n] = index;
                a->coef[n++]   = factor * c[f * n_cartesian + m];
            }
        }
}
