/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/integral/eri_kernel.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "chem/integral/boys.h"
#include "chem/integral/eri_classes.h"

double fm__boys_table[FM_COULOMB_L + 1][FM_BOYS_STEPS][FM_BOYS_TERMS] __attribute__((aligned(64)));

const fm_eri_kernel *fm_eri_kernel_pick(fm_isa isa)
{
    if (isa >= FM_ISA_AVX512) return &fm__eri_kernel_avx512;
    return isa == FM_ISA_AVX2 ? &fm__eri_kernel_avx2 : &fm__eri_kernel_ref;
}

/* Interpolation at Chebyshev nodes of [-1/2, 1/2]: divided differences, then powers. */
static void fit(double *c, const long double *x, long double *f)
{
    long double poly[FM_BOYS_TERMS] = {0};
    for (int k = 1; k < FM_BOYS_TERMS; k++)
        for (int i = FM_BOYS_TERMS - 1; i >= k; i--) f[i] = (f[i] - f[i - 1]) / (x[i] - x[i - k]);
    for (int k = FM_BOYS_TERMS - 1; k >= 0; k--) {
        for (int i = FM_BOYS_TERMS - 1; i > 0; i--) poly[i] = poly[i - 1] - x[k] * poly[i];
        poly[0] = f[k] - x[k] * poly[0];
    }
    for (int k = 0; k < FM_BOYS_TERMS; k++) c[k] = (double)poly[k];
}

static void make_boys_table(void)
{
    for (int s = 0; s < FM_BOYS_STEPS; s++) {
        long double x[FM_BOYS_TERMS], f[FM_COULOMB_L + 1][FM_BOYS_TERMS];
        for (int k = 0; k < FM_BOYS_TERMS; k++) {
            double F[FM_COULOMB_L + 1];
            x[k] = cos(acos(-1) * (k + 0.5) / FM_BOYS_TERMS) / 2;
            fm_boys(F, FM_COULOMB_L, (double)((s + 0.5L + x[k]) / 8));
            for (int m = 0; m <= FM_COULOMB_L; m++) f[m][k] = F[m];
        }
        for (int m = 0; m <= FM_COULOMB_L; m++) fit(fm__boys_table[m][s], x, f[m]);
    }
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

fm_status fm_eri_work_init(fm_eri_work *w, const fm_pair_list *list)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_boys_table);
    size_t most_E = 0, bra_E = 0, products = 0, hermites = 0, half = 0;
    for (int k = 0; k < list->n_class; k++) {
        const fm_pair_class *c     = &list->class[k];
        const size_t         all   = (size_t)(fm_class_combos(c) * fm_class_products(c));
        const size_t         dense = (size_t)(fm_class_products(c) * c->n_hermite);
        most_E                     = larger(most_E, dense);
        bra_E    = larger(bra_E, dense * (size_t)(c->most_prim * fm_class_combos(c)));
        products = larger(products, all);
        hermites = larger(hermites, (size_t)c->n_hermite);
    }
    half               = products * hermites;
    const size_t lanes = FM_ERI_LANES;
    const size_t all =
        (bra_E + 7) / 8 * 8 + lanes * (FM_COULOMB_ROOM + half + most_E + products * products);
    double *m = aligned_alloc(64, all * sizeof *m);
    if (!m) return fm_fail(FM_E_OOM, "no memory for a thread's two-electron integrals");
    *w       = (fm_eri_work){.list = list, .cut = -1, .memory = m};
    w->bra_E = m;
    w->R     = m + (bra_E + 7) / 8 * 8;
    w->half  = w->R + lanes * FM_COULOMB_ROOM;
    w->ket_E = w->half + lanes * half;
    w->out   = w->ket_E + lanes * most_E;
    return FM_OK;
}

void fm_eri_work_fini(fm_eri_work *w)
{
    free(w->memory);
    *w = (fm_eri_work){0};
}
