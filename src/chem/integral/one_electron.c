/* SPDX-License-Identifier: Apache-2.0 */
/* Shell by shell: an operator fills the cartesian block of two primitives, which is
 * contracted and carried to the shells' own components. */
#include "chem/integral/one_electron.h"

#include <math.h>
#include <string.h>

#include "chem/integral/harmonic.h"
#include "chem/integral/hermite.h"

enum { N_OUT = 3 }; /* most matrices an operator fills */

/* Two primitives so far apart: below rounding whatever their coefficients. */
static const double NOTHING = 1e-30;

typedef double block[FM_CARTESIAN_MAX][FM_CARTESIAN_MAX];

typedef struct operator operator;
struct                  operator
{
    int n_out;
    int raise; /* how far the angular momenta are raised */
    void (*fill)(block * out, const operator* op, const fm_gauss_pair *g, const fm_shell *a,
                 const fm_shell *b);
    const fm_molecule *m;
};

/* Integral over one axis of x_A^i x_B^j exp exp, without the factor exp(-ab/p |AB|^2). */
static double overlap_1d(const fm_gauss_pair *g, int axis, int i, int j)
{
    return i < 0 || j < 0 ? 0 : g->E[axis][i][j][0] * sqrt(acos(-1) / g->p);
}

/* 1/2 <d/dx i | d/dx j> */
static double kinetic_1d(const fm_gauss_pair *g, int axis, int i, int j)
{
    return 0.5 * i * j * overlap_1d(g, axis, i - 1, j - 1) -
           g->a * j * overlap_1d(g, axis, i + 1, j - 1) -
           g->b * i * overlap_1d(g, axis, i - 1, j + 1) +
           2 * g->a * g->b * overlap_1d(g, axis, i + 1, j + 1);
}

static double moment_1d(const fm_gauss_pair *g, int axis, int i, int j) /* of x about the origin */
{
    const double first = i + j > 0 ? g->E[axis][i][j][1] : 0;
    return (first + g->P[axis] * g->E[axis][i][j][0]) * sqrt(acos(-1) / g->p);
}

typedef double factor(const fm_gauss_pair *, int axis, int i, int j);

static double product(const fm_gauss_pair *g, fm_monomial s, fm_monomial t, factor *x, factor *y,
                      factor *z)
{
    return x(g, 0, s.i, t.i) * y(g, 1, s.j, t.j) * z(g, 2, s.k, t.k);
}

#define FOR_COMPONENTS(a, b, s, t)                                                                 \
    for (int c_ = 0; c_ < fm_components((a)->l, 0); c_++)                                          \
        for (int d_ = 0; d_ < fm_components((b)->l, 0); d_++)                                      \
            for (int once_ = 1; once_;)                                                            \
                for (const fm_monomial s = fm_cartesian((a)->l, c_), t = fm_cartesian((b)->l, d_); \
                     once_; once_ = 0)

static void fill_overlap(block *out, const operator* op, const fm_gauss_pair *g, const fm_shell *a,
                         const fm_shell *b)
{
    (void)op;
    FOR_COMPONENTS(a, b, s, t)
    out[0][c_][d_] = product(g, s, t, overlap_1d, overlap_1d, overlap_1d);
}

static void fill_kinetic(block *out, const operator* op, const fm_gauss_pair *g, const fm_shell *a,
                         const fm_shell *b)
{
    (void)op;
    FOR_COMPONENTS(a, b, s, t)
    out[0][c_][d_] = product(g, s, t, kinetic_1d, overlap_1d, overlap_1d) +
                     product(g, s, t, overlap_1d, kinetic_1d, overlap_1d) +
                     product(g, s, t, overlap_1d, overlap_1d, kinetic_1d);
}

static void fill_dipole(block *out, const operator* op, const fm_gauss_pair *g, const fm_shell *a,
                        const fm_shell *b)
{
    (void)op;
    FOR_COMPONENTS(a, b, s, t)
    {
        out[0][c_][d_] = product(g, s, t, moment_1d, overlap_1d, overlap_1d);
        out[1][c_][d_] = product(g, s, t, overlap_1d, moment_1d, overlap_1d);
        out[2][c_][d_] = product(g, s, t, overlap_1d, overlap_1d, moment_1d);
    }
}

static double hermite_sum(const fm_gauss_pair *g, fm_monomial s, fm_monomial t, const double *R,
                          int l)
{
    double sum = 0;
    for (int x = 0; x <= s.i + t.i; x++)
        for (int y = 0; y <= s.j + t.j; y++)
            for (int z = 0; z <= s.k + t.k; z++)
                sum += g->E[0][s.i][t.i][x] * g->E[1][s.j][t.j][y] * g->E[2][s.k][t.k][z] *
                       R[(x * (l + 1) + y) * (l + 1) + z];
    return sum;
}

static void fill_attraction(block *out, const operator* op, const fm_gauss_pair *g,
                            const fm_shell *a, const fm_shell *b)
{
    double    R[FM_COULOMB_MAX];
    const int l = a->l + b->l;
    memset(out[0], 0, sizeof out[0]);
    for (int n = 0; n < op->m->n_atom; n++) {
        const fm_atom *at   = &op->m->atom[n];
        const double   d[3] = {g->P[0] - at->xyz[0], g->P[1] - at->xyz[1], g->P[2] - at->xyz[2]};
        if (at->charge == 0) continue;
        fm_hermite_coulomb(R, l, g->p, d);
        const double f = -at->charge * 2 * acos(-1) / g->p;
        FOR_COMPONENTS(a, b, s, t) out[0][c_][d_] += f * hermite_sum(g, s, t, R, l);
    }
}

/* M[a's function][b's function] += f * transform_a * cart * transform_b^T */
static void add_block(double *M, int n, double f, block cart, const fm_shell *a, int row,
                      const fm_shell *b, int col)
{
    double    ta[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX], tb[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX];
    const int na = fm_components(a->l, a->is_pure), ca = fm_components(a->l, 0);
    const int nb = fm_components(b->l, b->is_pure), cb = fm_components(b->l, 0);
    fm_shell_transform(ta, a->l, a->is_pure);
    fm_shell_transform(tb, b->l, b->is_pure);
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++) {
            double sum = 0;
            for (int s = 0; s < ca; s++)
                for (int t = 0; t < cb; t++) sum += ta[i * ca + s] * cart[s][t] * tb[j * cb + t];
            M[(size_t)(row + i) * (size_t)n + (size_t)(col + j)] += f * sum;
        }
}

static void add_primitives(double *const *M, int n, const operator* op, const fm_shell *a, int p,
                           const fm_shell *b, int q)
{
    const int     na = fm_components(a->l, a->is_pure), nb = fm_components(b->l, b->is_pure);
    fm_gauss_pair g;
    block         out[N_OUT];
    fm_gauss_product(&g, a->xyz, a->exponent[p], a->l + op->raise, b->xyz, b->exponent[q],
                     b->l + op->raise);
    if (g.pre < NOTHING) return;
    op->fill(out, op, &g, a, b);
    for (int s = 0; s < a->n_contr; s++)
        for (int t = 0; t < b->n_contr; t++) {
            const double f = g.pre * a->coef[s * a->n_prim + p] * b->coef[t * b->n_prim + q];
            for (int o = 0; o < op->n_out; o++)
                add_block(M[o], n, f, out[o], a, a->first + s * na, b, b->first + t * nb);
        }
}

static void mirror(double *M, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) M[(size_t)j * n + i] = M[(size_t)i * n + j];
}

static void fill_matrices(double *const *M, const fm_basis *basis, const operator* op)
{
    const int n = basis->n_function;
    for (int o = 0; o < op->n_out; o++) memset(M[o], 0, (size_t)n * (size_t)n * sizeof *M[o]);
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = basis->n_shell - 1; i >= 0; i--)
        for (int j = 0; j <= i; j++) {
            const fm_shell *a = &basis->shell[i], *b = &basis->shell[j];
            for (int p = 0; p < a->n_prim; p++)
                for (int q = 0; q < b->n_prim; q++) add_primitives(M, n, op, a, p, b, q);
        }
    for (int o = 0; o < op->n_out; o++) mirror(M[o], n);
}

void fm_overlap(double *S, const fm_basis *b)
{
    const operator op = {.n_out = 1, .fill = fill_overlap};
    fill_matrices(&S, b, &op);
}

void fm_kinetic(double *T, const fm_basis *b)
{
    const operator op = {.n_out = 1, .raise = 1, .fill = fill_kinetic};
    fill_matrices(&T, b, &op);
}

void fm_attraction(double *V, const fm_basis *b, const fm_molecule *m)
{
    const operator op = {.n_out = 1, .fill = fill_attraction, .m = m};
    fill_matrices(&V, b, &op);
}

void fm_dipole(double *X, double *Y, double *Z, const fm_basis *b)
{
    const         operator op = {.n_out = 3, .fill = fill_dipole};
    double *const M[3]        = {X, Y, Z};
    fill_matrices(M, b, &op);
}
