/* SPDX-License-Identifier: Apache-2.0 */
/* From a Fock matrix to the next orbitals: residual, DIIS, level shift,
 * eigenvectors; where DIIS does not get further, direct minimisation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chem/eigen/dense.h"
#include "chem/eigen/eigen.h"
#include "chem/scf_internal.h"

/* A gap below `small_gap` in DFT calls for a level shift, as in NWChem. */
static const double small_gap = 0.01, auto_shift = 0.5;

/* DIIS is given up after PATIENCE iterations without a smaller gradient, and
 * tried once more where the descent has come to `near`.  It looks for any stationary
 * point: in Hartree-Fock, whose energy should fall, it is also given up where the
 * energy has stayed `climb` hartree above the lowest for more than CLIMBING iterations. */
static const double near = 1e-3, progress = 0.9, climb = 1e-4;
enum { PATIENCE = 10, CLIMBING = 3 };

/* The atoms' density is no determinant: its residual says nothing. */
static int is_atomic_start(const fm_scf *s)
{
    return s->step.iteration == 1 && s->opt.vectors_from <= FM_VECTORS_ATOMIC;
}

/* --- residual -------------------------------------------------------------- */

/* R += f X^T G c (X^T S c)^T: with D = f c c^T, the first half of G D S - S D G.  ROHF's G
 * is made for one determinant, not for a mean over the point group. */
static fm_status add_half(const fm_scf *s, double *R, const double *G, int i)
{
    const fm__scf_parts *p       = s->parts;
    const int            is_rohf = s->n_spin != s->n_set;
    int                  k       = p->n_column[i];
    const double        *c       = is_rohf ? p->column[i] : fm__scf_columns(s, i, &k);
    const double         f       = s->n_spin == 1 ? 2 : 1;
    const size_t         tall = (size_t)s->n * (size_t)k, square = (size_t)s->m * (size_t)s->m;
    double              *room = fm_dense_new(3 * tall + square);
    if (!room) return fm_fail(FM_E_OOM, "residual");
    double *Gc = room, *a = room + tall, *b = room + 2 * tall, *product = room + 3 * tall;
    fm_dense_nn(Gc, G, c, s->n, k, s->n);
    fm_dense_tn(a, s->X, Gc, s->m, k, s->n);
    fm_dense_nn(Gc, s->S, c, s->n, k, s->n);
    fm_dense_tn(b, s->X, Gc, s->m, k, s->n);
    fm_dense_nt(product, a, b, s->m, s->m, k);
    fm_dense_axpy(R, f, product, square);
    free(room);
    return FM_OK;
}

static void antisymmetrise(double *R, int m)
{
    for (size_t i = 0; i < (size_t)m; i++)
        for (size_t j = 0; j <= i; j++) {
            const double x       = R[i * (size_t)m + j] - R[j * (size_t)m + i];
            R[i * (size_t)m + j] = x;
            R[j * (size_t)m + i] = -x;
        }
}

/* Both spins begin with the orbitals of the mean Fock matrix of the atoms, as in NWChem. */
static void mean_fock(const fm_scf *s, double *G)
{
    const size_t nn = fm__nn(s);
    for (size_t i = 0; i < nn; i++) G[i] = 0.5 * (s->F[i] + s->F[nn + i]);
    if (s->n_set == 2) memcpy(G + nn, G, nn * sizeof *G);
}

static fm_status effective_fock(fm_scf *s)
{
    fm__scf_parts *p = s->parts;
    if (s->n_spin == 2 && is_atomic_start(s))
        mean_fock(s, p->G);
    else if (s->n_spin == s->n_set)
        memcpy(p->G, s->F, (size_t)s->n_set * fm__nn(s) * sizeof *p->G);
    else
        return fm__scf_rohf_fock(s, p->G);
    return FM_OK;
}

/* The gradient of the energy by rotations of occupied with other orbitals is
 * the residual times the root of 2, in every method here. */
static void measure(fm_scf *s)
{
    fm__scf_parts *p     = s->parts;
    const size_t   count = (size_t)s->n_set * (size_t)s->m * (size_t)s->m;
    s->step.energy       = s->energy.total;
    s->step.change       = s->energy.total - p->energy_old;
    s->step.gradient     = sqrt(2) * fm_dense_norm(p->R, count);
    s->step.largest      = 2 * fm_dense_largest(p->R, count);
    s->step.seconds      = fm_now() - p->began;
    p->energy_old        = s->energy.total;
}

fm_status fm__scf_residual(fm_scf *s)
{
    fm__scf_parts *p     = s->parts;
    const double   began = fm_now();
    const size_t   mm    = (size_t)s->m * (size_t)s->m;
    FM_TRY(fm__scf_average_fock(s));
    FM_TRY(effective_fock(s));
    memset(p->R, 0, (size_t)s->n_set * mm * sizeof *p->R);
    for (int i = 0; i < s->n_spin; i++) {
        const size_t set = s->n_set == 2 ? (size_t)i : 0;
        FM_TRY(add_half(s, p->R + set * mm, p->G + set * fm__nn(s), i));
    }
    for (int i = 0; i < s->n_set; i++) antisymmetrise(p->R + (size_t)i * mm, s->m);
    measure(s);
    s->times.mix += fm_now() - began;
    return FM_OK;
}

/* --- orbitals -------------------------------------------------------------- */

/* Raises orbitals that are empty in D: G += shift (S - S P S), P the projector on
 * the occupied ones. */
static fm_status shift_levels(fm_scf *s, double shift)
{
    fm__scf_parts *p  = s->parts;
    const size_t   nn = fm__nn(s);
    double        *W  = fm_dense_new(2 * nn);
    if (!W) return fm_fail(FM_E_OOM, "level shift");
    for (int i = 0; i < s->n_spin; i++) {
        const size_t set  = s->n_set == 2 ? (size_t)i : 0;
        const double half = s->n_set == s->n_spin && s->n_spin == 2 ? 1 : 0.5;
        fm_dense_nn(W, s->S, s->D + (size_t)i * nn, s->n, s->n, s->n);
        fm_dense_nn(W + nn, W, s->S, s->n, s->n, s->n);
        if (i == 0 || s->n_set == 2) fm_dense_axpy(p->G + set * nn, shift, s->S, nn);
        fm_dense_axpy(p->G + set * nn, -half * shift, W + nn, nn);
    }
    free(W);
    return FM_OK;
}

static double choose_shift(const fm_scf *s)
{
    if (is_atomic_start(s)) return 0;
    if (s->task->level_shift > 0) return s->task->level_shift;
    return s->is_dft && s->step.iteration > 1 && s->parts->gap < small_gap ? auto_shift : 0;
}

static void find_gap(fm_scf *s)
{
    s->parts->gap = HUGE_VAL;
    for (int i = 0; i < s->n_set; i++) {
        const int n = s->n_set == 2 ? s->n_occ[i] : s->n_occ[0];
        if (n == 0 || n >= s->m) continue;
        s->parts->gap = fmin(s->parts->gap, s->eps[i][n] - s->eps[i][n - 1] - s->step.level_shift);
    }
}

static fm_status diagonalise(fm_scf *s)
{
    const double began = fm_now();
    for (int i = 0; i < s->n_set; i++)
        FM_TRY(fm_eigen(s->eps[i], s->C[i], s->parts->G + (size_t)i * fm__nn(s), s->X, s->n, s->m));
    find_gap(s);
    s->times.eigen += fm_now() - began;
    return FM_OK;
}

static fm_status diis_step(fm_scf *s)
{
    const double began  = fm_now();
    s->step.method      = "diis";
    s->step.level_shift = choose_shift(s);
    if (!is_atomic_start(s)) fm_diis_mix(s->parts->diis, s->parts->G, s->parts->R);
    if (s->step.level_shift > 0) FM_TRY(shift_levels(s, s->step.level_shift));
    s->times.mix += fm_now() - began;
    return diagonalise(s);
}

static fm_status descent_step(fm_scf *s)
{
    fm__scf_parts *p     = s->parts;
    const double   began = fm_now();
    s->step.method       = "descent";
    s->step.level_shift  = 0;
    FM_TRY(fm__descent_step(p->descent, s));
    s->times.mix += fm_now() - began;
    return FM_OK;
}

static int has_climbed(fm_scf *s)
{
    fm__scf_parts *p = s->parts;
    if (s->is_dft) return 0;
    if (s->energy.total < p->lowest) p->lowest = s->energy.total;
    p->n_climbing = s->energy.total > p->lowest + climb ? p->n_climbing + 1 : 0;
    return p->n_climbing > CLIMBING;
}

static int is_stuck(fm_scf *s)
{
    fm__scf_parts *p = s->parts;
    if (is_atomic_start(s)) return 0;
    if (has_climbed(s)) return 1;
    if (s->opt.without_diis) return s->step.iteration > 1; /* vectors of a file: only occupied */
    if (p->best_gradient == 0 || s->step.gradient < progress * p->best_gradient) {
        p->best_gradient = s->step.gradient;
        p->n_since_best  = 0;
        return 0;
    }
    return ++p->n_since_best > PATIENCE;
}

static void back_to_diis(fm_scf *s)
{
    fm__scf_parts *p = s->parts;
    fm__descent_destroy(p->descent);
    p->descent = NULL;
    fm_diis_clear(p->diis);
    p->best_gradient = s->step.gradient;
    p->n_since_best  = 0;
    p->n_climbing    = 0;
}

/* The error of the energy goes as the square of the gradient: NWChem's default thresholds leave up
 * to 1e-7 hartree in scf and 1e-6 in dft.  NWChem's scf ends with a Newton step, which takes its
 * error away; DIIS goes on a little, in dft for up to MORE iterations. */
enum { MORE = 3 };
static const double good_scf_gradient = 3e-5, good_gradient = 1e-4, good_change = 1e-7;

static int has_small_gradient(const fm_scf *s)
{
    const int    is_last = s->step.iteration == s->task->max_iterations;
    const double least   = is_last ? s->task->thresh : fmin(s->task->thresh, good_scf_gradient);
    return !s->is_dft && s->step.gradient < least && !is_atomic_start(s) &&
           s->parts->tol <= s->parts->tol_final;
}

fm_status fm__scf_orbitals(fm_scf *s)
{
    fm__scf_parts *p = s->parts;
    if (has_small_gradient(s)) { /* the last ones: of the Fock matrix itself */
        s->step.level_shift = 0;
        return p->descent ? fm__scf_canonical(s) : diagonalise(s);
    }
    if (p->descent && p->n_descent == 1 && s->step.gradient < near && !s->opt.without_diis)
        back_to_diis(s);
    if (!p->descent && is_stuck(s)) {
        FM_TRY(fm__descent_create(&p->descent, s));
        p->n_descent++;
    }
    return p->descent ? descent_step(s) : diis_step(s);
}

/* --- density --------------------------------------------------------------- */

void fm__scf_density_of(const fm_scf *s, double *D, const double *column, int n_column)
{
    fm_dense_nt(D, column, column, s->n, s->n, n_column);
    if (n_column == 0) memset(D, 0, fm__nn(s) * sizeof *D);
    if (s->n_spin == 2) return;
    for (size_t i = 0; i < fm__nn(s); i++) D[i] *= 2;
}

fm_status fm__scf_density(fm_scf *s)
{
    fm__scf_parts *p     = s->parts;
    const size_t   nn    = fm__nn(s);
    double         moved = 0;
    for (int i = 0; i < s->n_spin; i++) {
        const double *C = s->C[s->n_set == 2 ? i : 0];
        const int     k = s->n_occ[i];
        double       *D = s->D + (size_t)i * nn, *old = p->D_old;
        if (p->n_column[i] != k || !p->column[i]) {
            free(p->column[i]);
            p->column[i]   = fm_dense_new((size_t)s->n * (size_t)k);
            p->n_column[i] = k;
        }
        if (!p->column[i]) return fm_fail(FM_E_OOM, "%d orbitals", k);
        memcpy(old, D, nn * sizeof *D);
        fm_dense_columns(p->column[i], C, s->n, s->m, 0, k);
        fm__scf_density_of(s, D, p->column[i], k);
        FM_TRY(fm__scf_average_density(s, i));
        fm_dense_axpy(old, -1, D, nn);
        moved += fm_dense_dot(old, old, nn);
    }
    s->step.rms_density = sqrt(moved) / s->n;
    return FM_OK;
}

/* What the deck asks for. */
static int has_converged_as_asked(const fm_scf *s)
{
    const fm_deck_task *t = s->task;
    if (!s->is_dft) return has_small_gradient(s);
    return !is_atomic_start(s) && s->parts->tol <= s->parts->tol_final &&
           fabs(s->step.change) < t->tol_energy && s->step.rms_density < t->tol_density &&
           s->step.gradient < t->tol_gradient;
}

static int is_good(const fm_scf *s)
{
    return !s->is_dft || (s->step.gradient < good_gradient && fabs(s->step.change) < good_change);
}

int fm__scf_converged(fm_scf *s)
{
    if (!has_converged_as_asked(s)) return 0;
    return is_good(s) || s->step.iteration == s->task->max_iterations || s->parts->n_more++ == MORE;
}
