/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange-correlation energies, electrons and potentials of given orbitals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../brief.h"
#include "chem/integral/one_electron.h"
#include "chem/xc/xc_internal.h"
#include "chem_xc_support.h"

/* A molecule with orbitals that are orthonormal in its basis. */
typedef struct {
    fm_molecule m;
    fm_basis    b;
    int         n, n_spin, n_occ[2];
    double     *C[2], *V[2];
    double      energy; /* what PySCF integrates from them */
} fixture;

static double metric(const double *S, const double *C, int n, int n_occ, int j, int k)
{
    double sum = 0;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) sum += C[a * n_occ + j] * S[a * n + b] * C[b * n_occ + k];
    return sum;
}

static void orthonormalise(double *C, int n_occ, const fm_basis *b)
{
    const int n = b->n_function;
    double   *S = malloc((size_t)(n * n) * sizeof *S);
    fm_overlap(S, b);
    for (int k = 0; k < n_occ; k++) {
        for (int j = 0; j < k; j++) {
            const double part = metric(S, C, n, n_occ, j, k);
            for (int a = 0; a < n; a++) C[a * n_occ + k] -= part * C[a * n_occ + j];
        }
        const double norm = 1 / sqrt(metric(S, C, n, n_occ, k, k));
        for (int a = 0; a < n; a++) C[a * n_occ + k] *= norm;
    }
    free(S);
}

static void allocate(fixture *f)
{
    for (int s = 0; s < f->n_spin; s++) {
        f->C[s] = calloc((size_t)(f->n * f->n_occ[s]) + 1, sizeof(double));
        f->V[s] = calloc((size_t)(f->n * f->n), sizeof(double));
    }
}

static void skip_to(FILE *file, const char *name)
{
    char line[512], word[32];
    long at = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%31s", word) == 1 && strcmp(word, name) == 0) {
            fseek(file, at + (long)strlen(name), SEEK_SET);
            return;
        }
        at = ftell(file);
    }
    fail_msg("no orbitals of %s", name);
}

static void open_fixture(fixture *f, const char *name)
{
    memset(f, 0, sizeof *f);
    xc_case_open(xc_case_find(name), &f->m, &f->b);
    FILE *file = fopen(FM_TEST_DATA "/chem_xc_orbitals.txt", "r");
    assert_non_null(file);
    skip_to(file, name);
    assert_int_equal(5, fscanf(file, "%d %d %d %d %lf", &f->n, &f->n_spin, &f->n_occ[0],
                               &f->n_occ[1], &f->energy));
    assert_int_equal(f->n, f->b.n_function);
    allocate(f);
    for (int s = 0; s < f->n_spin; s++) {
        for (int i = 0; i < f->n * f->n_occ[s]; i++)
            assert_int_equal(1, fscanf(file, "%lf", &f->C[s][i]));
        orthonormalise(f->C[s], f->n_occ[s], &f->b);
    }
    fclose(file);
}

static void close_fixture(fixture *f)
{
    for (int s = 0; s < 2; s++) {
        free(f->C[s]);
        free(f->V[s]);
    }
    xc_case_close(&f->m, &f->b);
}

static fm_xc_options options(const char *functional, fm_grid_level level, int n_thread, int n_spin)
{
    fm_xc_options o = {.level        = level,
                       .tol_rho      = 1e-14,
                       .tol_ao       = 25,
                       .n_thread     = n_thread,
                       .is_polarised = n_spin == 2,
                       .mix          = {.n_term = 1, .term = {{.factor = 1}}}};
    snprintf(o.mix.term[0].name, sizeof o.mix.term[0].name, "%s", functional);
    return o;
}

static fm_xc_result build(fixture *f, const fm_xc_options *o)
{
    fm_xc       *x    = NULL;
    fm_comm      self = fm_comm_self();
    fm_xc_result r;
    assert_int_equal(FM_OK, fm_xc_open(&x, &f->m, &f->b, o, &self));
    assert_int_equal(FM_OK, fm_xc_build(x, (const double *const *)f->C, f->n_occ, f->V, &r));
    fm_xc_close(x);
    return r;
}

typedef struct {
    const char   *molecule, *functional;
    fm_grid_level level;
    double        electrons; /* NWChem's */
    double        within;
} fingerprint;

static const fingerprint fingerprints[] = {
    {"w1", "b3lyp", FM_GRID_FINE, 10.000000044, 1e-9},
    {"oh", "b3lyp", FM_GRID_FINE, 8.999999965123, 1e-10},
    {"h3o", "b3lyp", FM_GRID_FINE, 9.999999946736, 1e-10},
    {"nacl", "b3lyp", FM_GRID_FINE, 27.9999999832, 1e-9},
    {"lihhe", "pbe0", FM_GRID_COARSE, 6.0000042569, 1e-9},
};

static void test_fingerprint(void **state)
{
    const fingerprint *p = *state;
    fixture            f;
    open_fixture(&f, p->molecule);
    fm_xc_options      o = options(p->functional, p->level, 2, f.n_spin);
    const fm_xc_result r = build(&f, &o);
    if (fabs(r.electrons - p->electrons) > p->within) fail_msg("electrons %.12f", r.electrons);
    if (fabs(r.energy - f.energy) > 2e-10) fail_msg("energy %.12f, not %.12f", r.energy, f.energy);
    o.tol_rho = 1e-10, o.tol_ao = 14; /* decks' defaults */
    const fm_xc_result loose = build(&f, &o);
    assert_true(fabs(loose.energy - r.energy) < 1e-9);
    assert_true(fabs(loose.electrons - r.electrons) < 1e-9);
    close_fixture(&f);
}

/* sum_ij V_ij dD_ij for a change of orbitals. */
static double predicted_change(const fixture *f, double *const *dC)
{
    double sum = 0;
    for (int s = 0; s < f->n_spin; s++)
        for (int i = 0; i < f->n; i++)
            for (int j = 0; j < f->n; j++)
                for (int k = 0; k < f->n_occ[s]; k++)
                    sum += (f->n_spin == 1 ? 4 : 2) * f->V[s][i * f->n + j] *
                           f->C[s][j * f->n_occ[s] + k] * dC[s][i * f->n_occ[s] + k];
    return sum;
}

static double energy_moved(fixture *f, const fm_xc_options *o, double *const *dC, double by)
{
    for (int s = 0; s < f->n_spin; s++)
        for (int i = 0; i < f->n * f->n_occ[s]; i++) f->C[s][i] += by * dC[s][i];
    const double e = build(f, o).energy;
    for (int s = 0; s < f->n_spin; s++)
        for (int i = 0; i < f->n * f->n_occ[s]; i++) f->C[s][i] -= by * dC[s][i];
    return e;
}

static void check_derivative(fixture *f, const fm_xc_options *o)
{
    double *dC[2] = {NULL, NULL};
    srand(7);
    for (int s = 0; s < f->n_spin; s++) {
        dC[s] = malloc((size_t)(f->n * f->n_occ[s] + 1) * sizeof(double));
        for (int i = 0; i < f->n * f->n_occ[s]; i++) dC[s][i] = rand() / (double)RAND_MAX - 0.5;
    }
    const double h    = 2e-4;
    const double want = (8 * (energy_moved(f, o, dC, h) - energy_moved(f, o, dC, -h)) -
                         (energy_moved(f, o, dC, 2 * h) - energy_moved(f, o, dC, -2 * h))) /
                        (12 * h);
    build(f, o);
    const double got = predicted_change(f, dC);
    if (fabs(got - want) > 1e-8 * (1 + fabs(want)))
        fail_msg("%s: %.10f, not %.10f", o->mix.term[0].name, got, want);
    for (int s = 0; s < f->n_spin; s++) free(dC[s]);
}

static void test_potential_is_the_derivative(void **state)
{
    (void)state;
    static const char *const functional[] = {"slater", "b3lyp", "pbe96", "becke88", "perdew81"};
    static const char *const molecule[]   = {"oh", "lihhe"};
    for (int m = 0; m < (is_brief() ? 1 : 2); m++) {
        fixture f;
        open_fixture(&f, molecule[m]);
        for (int i = 0; i < 5; i++) {
            const fm_xc_options o = options(functional[i], FM_GRID_XCOARSE, 2, f.n_spin);
            check_derivative(&f, &o);
        }
        close_fixture(&f);
    }
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    static const char *const molecule[] = {"w1", "oh"};
    for (int m = 0; m < 2; m++) {
        fixture f;
        open_fixture(&f, molecule[m]);
        fm_xc_options      o     = options("b3lyp", FM_GRID_COARSE, 1, f.n_spin);
        const fm_xc_result first = build(&f, &o);
        const size_t       bytes = (size_t)(f.n * f.n) * sizeof(double);
        double            *V     = malloc(bytes);
        memcpy(V, f.V[0], bytes);
        for (int n = is_brief() ? 4 : 2; n <= 4; n++) {
            o.n_thread           = n;
            const fm_xc_result r = build(&f, &o);
            assert_memory_equal(&r, &first, sizeof r);
            assert_memory_equal(f.V[0], V, bytes);
        }
        for (int i = 0; i < f.n; i++)
            for (int j = 0; j < f.n; j++) assert_true(V[i * f.n + j] == V[j * f.n + i]);
        free(V);
        close_fixture(&f);
    }
}

/* A group whose sums leave every rank with its own part. */
static fm_status start_nothing(fm_comm *c, fm_comm_job *job)
{
    (void)c;
    job->is_done = 1;
    return FM_OK;
}

static fm_status poll_nothing(fm_comm *c, fm_comm_job *job) { return start_nothing(c, job); }

static void add_rank(double *sums, fixture *f, const fm_xc_options *o, int rank, int n_rank)
{
    static const fm_comm_ops ops  = {.name = "parts", .start = start_nothing, .poll = poll_nothing};
    fm_comm                  part = {.ops = &ops, .rank = rank, .n_rank = n_rank};
    fm_xc                   *x    = NULL;
    fm_xc_result             r;
    assert_int_equal(FM_OK, fm_xc_open(&x, &f->m, &f->b, o, &part));
    assert_int_equal(FM_OK, fm_xc_build(x, (const double *const *)f->C, f->n_occ, f->V, &r));
    for (size_t i = 0; i < x->n_sum; i++) sums[i] += x->sums[i];
    fm_xc_close(x);
}

static void test_ranks_change_no_bit(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f, "oh");
    const fm_xc_options o    = options("b3lyp", FM_GRID_XCOARSE, 2, f.n_spin);
    fm_comm             self = fm_comm_self();
    fm_xc              *x    = NULL;
    fm_xc_result        r;
    assert_int_equal(FM_OK, fm_xc_open(&x, &f.m, &f.b, &o, &self));
    assert_int_equal(FM_OK, fm_xc_build(x, (const double *const *)f.C, f.n_occ, f.V, &r));
    static const int n_rank[] = {2, 3, 7, 400}; /* the last: more ranks than boxes */
    for (int i = is_brief() ? 2 : 0; i < 4; i++) {
        double *sums = calloc(x->n_sum, sizeof *sums);
        for (int rank = n_rank[i] - 1; rank >= 0; rank--) add_rank(sums, &f, &o, rank, n_rank[i]);
        assert_memory_equal(sums, x->sums, x->n_sum * sizeof *sums);
        free(sums);
    }
    fm_xc_close(x);
    close_fixture(&f);
}

/* Without a second spin's electrons, and with nothing but exact exchange. */
static void test_empty_parts(void **state)
{
    (void)state;
    fixture f = {.n_spin = 2, .n_occ = {1, 0}};
    xc_case_open(xc_case_find("h"), &f.m, &f.b);
    f.n = f.b.n_function;
    allocate(&f);
    f.C[0][0] = 1;
    orthonormalise(f.C[0], 1, &f.b);
    fm_xc_options o = options("b3lyp", FM_GRID_FINE, 2, 2);
    fm_xc_result  r = build(&f, &o);
    assert_true(fabs(r.electrons - 1) < 1e-6 && r.energy < -0.1 && isfinite(r.energy));
    for (int i = 0; i < f.n * f.n; i++) assert_true(isfinite(f.V[1][i]));
    o = options("hfexch", FM_GRID_FINE, 2, 2);
    r = build(&f, &o);
    assert_true(r.energy == 0 && f.V[0][0] == 0);
    close_fixture(&f);
}

/* Overlaps integrated on the grid are those of the integrals: every l, both forms.
 * The density of one orbital that is one function is its square. */
static void test_functions_of_every_l(void **state)
{
    const int is_pure = *(const int *)*state;
    fixture   f       = {.n_spin = 2, .n_occ = {1, 0}};
    fm_basis  wide;
    xc_case_open(xc_case_find("oh"), &f.m, &f.b);
    assert_int_equal(FM_OK, fm_basis_from_library(&wide, &f.m, "cc-pvqz", is_pure));
    fm_basis_fini(&f.b);
    f.b = wide, f.n = wide.n_function;
    allocate(&f);
    double             *S    = malloc((size_t)(f.n * f.n) * sizeof *S);
    const fm_xc_options o    = options("slater", FM_GRID_FINE, 2, 2);
    fm_comm             self = fm_comm_self();
    fm_xc              *x    = NULL;
    fm_xc_result        r;
    assert_int_equal(FM_OK, fm_xc_open(&x, &f.m, &f.b, &o, &self));
    fm_overlap(S, &f.b);
    for (int i = 0; i < f.n - 1; i += is_brief() ? 9 : 3) {
        /* norm of chi_i + chi_j for neighbours i, j */
        memset(f.C[0], 0, (size_t)f.n * sizeof(double));
        f.C[0][i] = f.C[0][i + 1] = 1;
        const double want = S[i * f.n + i] + S[(i + 1) * f.n + i + 1] + 2 * S[i * f.n + i + 1];
        assert_int_equal(FM_OK, fm_xc_build(x, (const double *const *)f.C, f.n_occ, f.V, &r));
        if (fabs(r.electrons - want) > 3e-6)
            fail_msg("function %d: %.9f, not %.9f", i, r.electrons, want);
    }
    fm_xc_close(x);
    free(S);
    close_fixture(&f);
}

int main(void)
{
    enum { N = sizeof fingerprints / sizeof fingerprints[0] };
    static const int  forms[2]     = {0, 1};
    struct CMUnitTest tests[N + 6] = {
        cmocka_unit_test(test_potential_is_the_derivative),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_ranks_change_no_bit),
        cmocka_unit_test(test_empty_parts),
        cmocka_unit_test_prestate(test_functions_of_every_l, (void *)&forms[0]),
        cmocka_unit_test_prestate(test_functions_of_every_l, (void *)&forms[1]),
    };
    const int n = is_brief() ? 2 : N; /* one without and one with a second spin */
    for (int i = 0; i < n; i++)
        tests[6 + i] = (struct CMUnitTest){.name          = fingerprints[i].molecule,
                                           .test_func     = test_fingerprint,
                                           .initial_state = (void *)&fingerprints[i]};
    return _cmocka_run_group_tests("tests", tests, (size_t)(6 + n), NULL, NULL);
}
