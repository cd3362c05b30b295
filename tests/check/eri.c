/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of shell quartets from s to g, on every instruction set this machine has,
 * against the plain reference: 1e-13 of the class's largest integral, or of 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/chem_integral_shells.h"
#include "chem/integral/eri_kernel.h"
#include "chem/integral/eri_ref.h"

typedef struct {
    fm_atom      atom[SHELL_ATOMS];
    fm_molecule  m;
    fm_basis     b;
    fm_pair_list list;
} stand;

static void open_stand(stand *s, int is_pure, const fm_eri_kernel *kernel)
{
    assert_int_equal(shells_build(&s->b, &s->m, s->atom, is_pure, NULL, NULL), FM_OK);
    assert_int_equal(fm_pairs_init(&s->list, &s->b, 1e-40, kernel), FM_OK);
    assert_in_range(s->list.n_pair, 60, 66); /* steep and far apart: nothing there */
}

static void close_stand(stand *s)
{
    fm_pairs_fini(&s->list);
    fm_basis_fini(&s->b);
}

/* Number of a product in the reference's order. */
static int in_reference(const fm_pair_class *c, int combo, int product)
{
    const int s = combo / c->n_contr_b, t = combo % c->n_contr_b;
    const int i = product / c->n_b, j = product % c->n_b;
    return (s * c->n_a + i) * (c->n_contr_b * c->n_b) + t * c->n_b + j;
}

typedef struct {
    const fm_pair_class *b, *c;
    const double        *want; /* [products of bra][products of ket] */
    double               scale;
    int                  lane, lanes;
} expectation;

static double worst_of(const fm_eri_work *w, const expectation *e)
{
    const int nab = fm_class_products(e->b), ncd = fm_class_products(e->c);
    const int mb = fm_class_combos(e->b), mc = fm_class_combos(e->c);
    double    worst = 0;
    for (int m = 0; m < mb; m++)
        for (int k = 0; k < mc; k++)
            for (int p = 0; p < nab; p++)
                for (int q = 0; q < ncd; q++) {
                    const double got =
                        w->out[((size_t)((m * mc + k) * nab + p) * (size_t)ncd + (size_t)q) *
                                   (size_t)e->lanes +
                               (size_t)e->lane];
                    const double want =
                        e->scale *
                        e->want[in_reference(e->b, m, p) * mc * ncd + in_reference(e->c, k, q)];
                    worst = fmax(worst, fabs(got - want) / fmax(1, fabs(want)));
                }
    return worst;
}

/* A kernel, with its own list of pairs and memory. */
typedef struct {
    const fm_eri_kernel *kernel;
    stand                s;
    fm_eri_work          w;
} candidate;

/* All kets of one class against a bra; lanes carry different kets and factors. */
static void check_ket(candidate *t, int bra, int ket, const double *want)
{
    const fm_pair_list  *l = &t->s.list;
    int32_t              kets[FM_ERI_LANES];
    double               factor[FM_ERI_LANES];
    const int            lane = (bra + ket) % t->kernel->lanes;
    const fm_pair_class *c    = &l->class[l->of[ket]];
    for (int k = 0; k < t->kernel->lanes; k++) {
        kets[k]   = k == lane ? ket : c->first + k % c->n_pair;
        factor[k] = 0.5 + k;
    }
    t->kernel->batch(&t->w, l->of[ket], kets, factor, FM_ERI_ALL_PRIMITIVES);
    const double self = (l->shell_a[bra] == l->shell_b[bra] ? 0.5 : 1) *
                        (l->shell_a[ket] == l->shell_b[ket] ? 0.5 : 1);
    const expectation e     = {&l->class[l->of[bra]], c, want, factor[lane] * self, lane,
                               t->kernel->lanes};
    const double      worst = worst_of(&t->w, &e) / factor[lane];
    if (!(worst < 1e-13))
        fail_msg("%s: (%d %d|%d %d) of l %d%d%d%d is off by %g", t->kernel->name, l->shell_a[bra],
                 l->shell_b[bra], l->shell_a[ket], l->shell_b[ket], e.b->l_a, e.b->l_b, c->l_a,
                 c->l_b, worst);
}

/* Owned by the caller. */
static double *reference(const stand *s, int bra, int ket)
{
    const fm_pair_list *l = &s->list;
    fm_hermite_pair     x = {0}, y = {0};
    assert_int_equal(
        fm_hermite_pair_init(&x, &s->b.shell[l->shell_a[bra]], &s->b.shell[l->shell_b[bra]]),
        FM_OK);
    assert_int_equal(
        fm_hermite_pair_init(&y, &s->b.shell[l->shell_a[ket]], &s->b.shell[l->shell_b[ket]]),
        FM_OK);
    const size_t n    = (size_t)x.n_product * (size_t)y.n_product;
    double      *want = malloc((n + fm_eri_ref_scratch(&x, &y)) * sizeof *want);
    fm_eri_ref(want, &x, &y, want + n);
    fm_hermite_pair_fini(&x);
    fm_hermite_pair_fini(&y);
    return want;
}

static void open_candidate(candidate *t, fm_isa isa, int is_pure)
{
    *t = (candidate){.kernel = fm_eri_kernel_pick(isa)};
    open_stand(&t->s, is_pure, t->kernel);
    assert_int_equal(fm_eri_work_init(&t->w, &t->s.list), FM_OK);
}

static int is_same_pair(const fm_pair_list *a, const fm_pair_list *b, int pair)
{
    return a->n_pair == b->n_pair && a->shell_a[pair] == b->shell_a[pair] &&
           a->shell_b[pair] == b->shell_b[pair];
}

/* The reference is slow: each of its quartets is computed once for all kernels. */
static void check_kernels(int is_pure)
{
    static const fm_isa isa[] = {FM_ISA_REF, FM_ISA_AVX2, FM_ISA_AVX512};
    candidate           t[3];
    int                 n = 0;
    for (size_t i = 0; i < sizeof isa / sizeof *isa; i++)
        if (fm_cpu_detects(isa[i])) open_candidate(&t[n++], isa[i], is_pure);
    const fm_pair_list *l = &t[0].s.list;
    for (int bra = 0; bra < l->n_pair; bra++) {
        for (int i = 0; i < n; i++) {
            assert_true(is_same_pair(l, &t[i].s.list, bra));
            t[i].kernel->begin_bra(&t[i].w, bra, FM_ERI_ALL_PRIMITIVES);
        }
        for (int ket = 0; ket < l->n_pair; ket++) {
            if (!l->is_ket[l->of[bra] * l->n_class + l->of[ket]]) continue;
            double *want = reference(&t[0].s, bra, ket);
            for (int i = 0; i < n; i++) check_ket(&t[i], bra, ket, want);
            free(want);
        }
    }
    for (int i = 0; i < n; i++) {
        fm_eri_work_fini(&t[i].w);
        close_stand(&t[i].s);
    }
}

static void pure(void **state)
{
    (void)state;
    check_kernels(1);
}

static void cartesian(void **state)
{
    (void)state;
    check_kernels(0);
}

/* The bound of a pair is what Schwarz needs, also for a shell with itself. */
static void bounds(void **state)
{
    (void)state;
    stand s;
    open_stand(&s, 1, fm_eri_kernel_pick(FM_ISA_REF));
    for (int k = 0; k < s.list.n_pair; k++) {
        fm_hermite_pair x   = {0};
        double          top = 0;
        assert_int_equal(
            fm_hermite_pair_init(&x, &s.b.shell[s.list.shell_a[k]], &s.b.shell[s.list.shell_b[k]]),
            FM_OK);
        const size_t n    = (size_t)x.n_product * (size_t)x.n_product;
        double      *want = malloc((n + fm_eri_ref_scratch(&x, &x)) * sizeof *want);
        fm_eri_ref(want, &x, &x, want + n);
        for (int p = 0; p < x.n_product; p++) top = fmax(top, want[p * x.n_product + p]);
        assert_true(fabs(s.list.bound[k] - sqrt(top)) < 1e-10);
        free(want);
        fm_hermite_pair_fini(&x);
    }
    close_stand(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pure), cmocka_unit_test(cartesian),
                                       cmocka_unit_test(bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
