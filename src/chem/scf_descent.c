/* SPDX-License-Identifier: Apache-2.0 */
/* Direct minimisation: C -> C exp(K), K antisymmetric between orbitals of
 * different class (closed, open, virtual).
 *
 *     dE/dK_pq = 2 sum_spin F_pq (n_q - n_p)        h_pq = 2 sum_spin (F_pp - F_qq) (n_q - n_p)
 *
 * The direction is L-BFGS with diag(h) as first Hessian.  One Fock matrix a step:
 * if the energy has risen, the step is shortened and taken again from where it
 * began.  Vectors stay in the frame of the moving orbitals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/eigen/dense.h"
#include "chem/eigen/eigen.h"
#include "chem/scf_internal.h"

enum { MEMORY = 8, MAX_SHORTER = 8 };

static const double longest = 0.3, least_h = 0.4, noise = 1e-9;

struct fm__descent {
    int     n_set, m, n_pair, n_shorter, is_pending;
    size_t  count; /* n_set m m: numbers of a K */
    double  energy, slope, t;
    double *g, *h, *direction, *block;
    double *C[2]; /* [n][m] where the step began */
    double *dx[MEMORY], *dg[MEMORY];
};

fm_status fm__descent_create(fm__descent **out, const fm_scf *s)
{
    fm__descent *d = calloc(1, sizeof *d);
    if (!d) return fm_fail(FM_E_OOM, "descent");
    const size_t nm = (size_t)s->n * (size_t)s->m;
    d->n_set = s->n_set, d->m = s->m;
    d->count   = (size_t)s->n_set * (size_t)s->m * (size_t)s->m;
    double *at = d->block = fm_dense_new((3 + 2 * MEMORY) * d->count + (size_t)s->n_set * nm);
    if (!at) {
        free(d);
        return fm_fail(FM_E_OOM, "descent: %d orbitals", s->m);
    }
    d->g = at, d->h = at += d->count, d->direction = at += d->count;
    for (int i = 0; i < MEMORY; i++) d->dx[i] = at += d->count, d->dg[i] = at += d->count;
    at += d->count;
    for (int i = 0; i < s->n_set; i++, at += nm) d->C[i] = at;
    *out = d;
    return FM_OK;
}

void fm__descent_destroy(fm__descent *d)
{
    if (!d) return;
    free(d->block);
    free(d);
}

/* --- gradient and first Hessian -------------------------------------------- */

static int occupation(const fm_scf *s, int spin, int orbital)
{
    return orbital < s->n_occ[spin];
}

/* What spin `spin` adds for orbitals of `set`; F in the orbitals of that set. */
static void add_spin(const fm_scf *s, const double *F, int spin, double f, double *g, double *h)
{
    const size_t m = (size_t)s->m;
    for (size_t p = 0; p < m; p++)
        for (size_t q = 0; q < p; q++) {
            const double n = occupation(s, spin, (int)q) - occupation(s, spin, (int)p);
            g[p * m + q] += 2 * f * F[p * m + q] * n;
            h[p * m + q] += 2 * f * (F[p * m + p] - F[q * m + q]) * n;
        }
}

static fm_status gradient(fm__descent *d, const fm_scf *s, double *g)
{
    const size_t mm = (size_t)s->m * (size_t)s->m;
    double      *F  = fm_dense_new(mm + (size_t)s->n * (size_t)s->m);
    if (!F) return fm_fail(FM_E_OOM, "descent");
    memset(g, 0, d->count * sizeof *g);
    memset(d->h, 0, d->count * sizeof *d->h);
    for (int spin = 0; spin < s->n_spin; spin++) {
        const int set = s->n_set == 2 ? spin : 0;
        fm_dense_congruence(F, s->C[set], s->F + (size_t)spin * fm__nn(s), s->n, s->m, F + mm);
        add_spin(s, F, spin, s->n_spin == 1 ? 2 : 1, g + (size_t)set * mm, d->h + (size_t)set * mm);
    }
    for (size_t i = 0; i < d->count; i++) d->h[i] = fmax(d->h[i], least_h);
    free(F);
    return FM_OK;
}

/* --- direction ------------------------------------------------------------- */

/* d = -H g by the two loops of L-BFGS. */
static void find_direction(fm__descent *d)
{
    double *q = d->direction, a[MEMORY], rho[MEMORY];
    memcpy(q, d->g, d->count * sizeof *q);
    for (int i = d->n_pair - 1; i >= 0; i--) {
        rho[i] = 1 / fm_dense_dot(d->dx[i], d->dg[i], d->count);
        a[i]   = rho[i] * fm_dense_dot(d->dx[i], q, d->count);
        fm_dense_axpy(q, -a[i], d->dg[i], d->count);
    }
    for (size_t i = 0; i < d->count; i++) q[i] /= d->h[i];
    for (int i = 0; i < d->n_pair; i++) {
        const double b = rho[i] * fm_dense_dot(d->dg[i], q, d->count);
        fm_dense_axpy(q, a[i] - b, d->dx[i], d->count);
    }
    for (size_t i = 0; i < d->count; i++) q[i] = -q[i];
    const double most = fm_dense_largest(q, d->count), f = most > longest ? longest / most : 1;
    for (size_t i = 0; i < d->count; i++) q[i] *= f;
    d->slope = fm_dense_dot(q, d->g, d->count);
}

static void choose_direction(fm__descent *d)
{
    find_direction(d);
    if (d->slope < 0 || d->n_pair == 0) return;
    d->n_pair = 0; /* what was learned leads uphill: begin anew */
    find_direction(d);
}

/* dx = t direction, dg = the change of the gradient along it. */
static void learn(fm__descent *d, const double *g_new)
{
    if (d->n_pair == MEMORY) {
        double *dx = d->dx[0], *dg = d->dg[0];
        memmove(d->dx, d->dx + 1, (MEMORY - 1) * sizeof *d->dx);
        memmove(d->dg, d->dg + 1, (MEMORY - 1) * sizeof *d->dg);
        d->dx[MEMORY - 1] = dx, d->dg[MEMORY - 1] = dg;
        d->n_pair--;
    }
    double *dx = d->dx[d->n_pair], *dg = d->dg[d->n_pair];
    for (size_t i = 0; i < d->count; i++) {
        dx[i] = d->t * d->direction[i];
        dg[i] = g_new[i] - d->g[i];
    }
    const double curvature = fm_dense_dot(dx, dg, d->count);
    if (curvature > 1e-8 * fm_dense_norm(dx, d->count) * fm_dense_norm(dg, d->count)) d->n_pair++;
}

/* --- rotation -------------------------------------------------------------- */

/* U = exp(t K) by scaling and squaring; K below the diagonal is given. */
static fm_status exponential(double *U, const double *lower, double t, int m)
{
    const size_t mm = (size_t)m * (size_t)m;
    double      *K = fm_dense_new(3 * mm), *term = K + mm, *next = K + 2 * mm;
    int          n_square = 0;
    if (!K) return fm_fail(FM_E_OOM, "rotation of %d orbitals", m);
    const double size = fabs(t) * fm_dense_norm(lower, mm) * 1.5;
    while (ldexp(size, -n_square) > 0.5) n_square++;
    for (size_t p = 0; p < (size_t)m; p++)
        for (size_t q = 0; q < p; q++) {
            K[p * (size_t)m + q] = ldexp(t * lower[p * (size_t)m + q], -n_square);
            K[q * (size_t)m + p] = -K[p * (size_t)m + q];
        }
    memset(U, 0, mm * sizeof *U);
    for (size_t p = 0; p < (size_t)m; p++) U[p * (size_t)m + p] = 1;
    memcpy(term, U, mm * sizeof *U);
    for (int k = 1; k <= 12; k++) {
        fm_dense_nn(next, term, K, m, m, m);
        for (size_t i = 0; i < mm; i++) term[i] = next[i] / k;
        fm_dense_axpy(U, 1, term, mm);
    }
    for (; n_square > 0; n_square--) {
        fm_dense_nn(next, U, U, m, m, m);
        memcpy(U, next, mm * sizeof *U);
    }
    free(K);
    return FM_OK;
}

/* C = C_began exp(t direction) */
static fm_status rotate(fm__descent *d, fm_scf *s)
{
    const size_t mm = (size_t)s->m * (size_t)s->m;
    double      *U  = fm_dense_new(mm);
    fm_status    rc = U ? FM_OK : fm_fail(FM_E_OOM, "rotation");
    for (int i = 0; i < s->n_set && rc == FM_OK; i++) {
        rc = exponential(U, d->direction + (size_t)i * mm, d->t, s->m);
        if (rc != FM_OK) break;
        fm_dense_nn(s->C[i], d->C[i], U, s->n, s->m, s->m);
        rc = fm_orthonormalise(s->C[i], s->S, s->n, s->m); /* rounding adds up */
    }
    free(U);
    d->is_pending = rc == FM_OK;
    return rc;
}

/* The minimum of the parabola through both energies and the slope. */
static double shorter(const fm__descent *d, double energy)
{
    const double bend = (energy - d->energy - d->slope * d->t) / (d->t * d->t);
    const double t    = bend > 0 ? -d->slope / (2 * bend) : 0;
    return fmin(fmax(t, 0.1 * d->t), 0.5 * d->t);
}

static fm_status begin(fm__descent *d, fm_scf *s, const double *g)
{
    memcpy(d->g, g, d->count * sizeof *g);
    for (int i = 0; i < s->n_set; i++)
        memcpy(d->C[i], s->C[i], (size_t)s->n * (size_t)s->m * sizeof *s->C[i]);
    d->energy    = s->energy.total;
    d->n_shorter = 0;
    d->t         = 1;
    choose_direction(d);
    return rotate(d, s);
}

fm_status fm__descent_step(fm__descent *d, fm_scf *s)
{
    const int has_risen = d->is_pending && s->energy.total > d->energy + noise;
    if (has_risen && d->n_shorter++ < MAX_SHORTER) {
        d->t = shorter(d, s->energy.total);
        return rotate(d, s);
    }
    if (has_risen) d->n_pair = 0;
    double   *g  = fm_dense_new(d->count);
    fm_status rc = g ? gradient(d, s, g) : fm_fail(FM_E_OOM, "descent");
    if (rc == FM_OK && d->is_pending && !has_risen) learn(d, g);
    if (rc == FM_OK) rc = begin(d, s, g);
    free(g);
    return rc;
}

/* --- canonical orbitals ---------------------------------------------------- */

static void keep_blocks(const fm_scf *s, int set, double *A)
{
    for (int p = 0; p < s->m; p++)
        for (int q = 0; q < s->m; q++)
            if (fm__class_of(s, set, p) != fm__class_of(s, set, q))
                A[(size_t)p * (size_t)s->m + (size_t)q] = 0;
}

/* Rows of the eigenvectors of a block matrix, sorted by class, then energy. */
static fm_status block_vectors(const fm_scf *s, int set, double *A, double *U, double *eps)
{
    const size_t m = (size_t)s->m;
    double      *e = fm_dense_new(m);
    if (!e) return fm_fail(FM_E_OOM, "canonical orbitals");
    keep_blocks(s, set, A);
    const fm_status rc = fm_eigen_symmetric(e, A, s->m);
    size_t          n  = 0;
    for (int class = 0; class < 3 && rc == FM_OK; class ++)
        for (size_t i = 0; i < m; i++) {
            size_t top = 0;
            for (size_t q = 1; q < m; q++)
                if (fabs(A[i * m + q]) > fabs(A[i * m + top])) top = q;
            if (fm__class_of(s, set, (int)top) != class) continue;
            memcpy(U + n * m, A + i * m, m * sizeof *U);
            eps[n++] = e[i];
        }
    free(e);
    return rc;
}

static fm_status canonical_set(fm_scf *s, int set, double *room)
{
    const size_t mm = (size_t)s->m * (size_t)s->m, nm = (size_t)s->n * (size_t)s->m;
    double      *A = room, *U = room + mm, *work = room + 2 * mm;
    fm_dense_congruence(A, s->C[set], s->parts->G + (size_t)set * fm__nn(s), s->n, s->m, work);
    fm_dense_symmetrise(A, s->m);
    FM_TRY(block_vectors(s, set, A, U, s->eps[set]));
    fm_dense_nt(work, s->C[set], U, s->n, s->m, s->m);
    memcpy(s->C[set], work, nm * sizeof *work);
    return FM_OK;
}

fm_status fm__scf_canonical(fm_scf *s)
{
    double   *room = fm_dense_new(2 * (size_t)s->m * (size_t)s->m + (size_t)s->n * (size_t)s->m);
    fm_status rc   = room ? FM_OK : fm_fail(FM_E_OOM, "canonical orbitals");
    for (int i = 0; i < s->n_set && rc == FM_OK; i++) rc = canonical_set(s, i, room);
    free(room);
    return rc;
}
