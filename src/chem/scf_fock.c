/* SPDX-License-Identifier: Apache-2.0 */
/* The Fock matrix and the energy of a density.
 *
 *     restricted    F  = H + J[D] - (a/2) K[D] + Vxc        D: both spins
 *     two spins     Fs = H + J[Da] + J[Db] - a K[Ds] + Vxc_s
 *
 * J and K are linear: they are summed from builds with the change of the density,
 * which screening makes cheap, and built anew now and then. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chem/eigen/dense.h"
#include "chem/scf_internal.h"

/* While the gradient is above `far`, integrals up to `loose` are left out.  What is
 * left out of the change of the density makes noise that must stay small against the
 * gradient: `quiet` times it. */
static const double far = 1e-2, loose = 1e-8, tightest = 1e-10, quiet = 5e-7;
enum { MAX_CHANGE = 30 };

/* Asked-for tolerances that would cost digits of the energy are tightened. */
static double final_tol(const fm_scf *s)
{
    return fmin(s->task->tol2e > 0 ? s->task->tol2e : tightest, tightest);
}

/* What the deck asks for, but at most half of what is free: matrices and grid need theirs. */
static size_t cache_bytes(const fm_scf *s)
{
    const size_t asked = s->task->is_direct ? 0 : s->task->cache_bytes;
    const size_t most  = s->opt.memory_bytes / 2;
    return s->opt.memory_bytes > 0 && most < asked ? most : asked;
}

fm_status fm__scf_open_builders(fm_scf *s)
{
    s->cache_bytes             = cache_bytes(s);
    const fm_fock_options fock = {
        .n_thread = s->opt.n_thread, .cache_bytes = s->cache_bytes, .tol = final_tol(s)};
    double began        = fm_now();
    s->parts->tol_final = fock.tol;
    FM_TRY(fm_fock_open(&s->parts->fock, s->task->basis, &fock, s->comm));
    s->times.fock += fm_now() - began;
    if (!s->is_dft) return FM_OK;
    fm_xc_options xc = s->task->xc;
    began            = fm_now();
    xc.n_thread      = s->opt.n_thread;
    xc.is_polarised  = s->n_spin == 2;
    FM_TRY(fm_xc_open(&s->parts->xc, s->task->molecule, s->task->basis, &xc, s->comm));
    s->n_grid_point = fm_xc_points(s->parts->xc);
    s->times.xc += fm_now() - began;
    return FM_OK;
}

/* --- two-electron part ----------------------------------------------------- */

static double wanted_tol(const fm_scf *s)
{
    const double least  = s->parts->tol_final;
    const int    is_far = s->step.iteration == 1 || s->step.gradient > far;
    return is_far && loose > least ? loose : least;
}

static double change_tol(const fm_scf *s)
{
    const double noise = quiet * s->step.gradient;
    return s->parts->n_change > 0 && noise < s->parts->tol ? fmax(noise, 1e-16) : s->parts->tol;
}

static void count_build(fm_scf *s, double began, int is_full)
{
    const fm_fock_stats stats = fm_fock_last(s->parts->fock);
    s->times.fock += fm_now() - began;
    s->times.fock_busy += stats.busy_s;
    s->times.fock_wait += stats.wait_s;
    s->times.n_quartet += stats.n_quartet;
    s->times.n_fock++;
    s->times.n_full += is_full;
}

/* J and K of the change of the density since `seen`, into the rooms behind it. */
static fm_status build_change(fm_scf *s, double tol)
{
    fm__scf_parts *p  = s->parts;
    const size_t   nn = fm__nn(s), spins = (size_t)s->n_spin * nn;
    const double  *D[2] = {p->change, p->change + nn};
    double        *J[2] = {p->change + spins, p->change + spins + nn};
    double        *K[2] = {p->change + 2 * spins, p->change + 2 * spins + nn};
    return fm_fock_build(p->fock, s->n_spin, D, J, s->exact != 0 ? K : NULL, tol);
}

static fm_status coulomb_exchange(fm_scf *s)
{
    fm__scf_parts *p     = s->parts;
    const size_t   spins = (size_t)s->n_spin * fm__nn(s);
    const double   tol = wanted_tol(s), began = fm_now();
    const int      is_full = p->n_change == 0 || tol < p->tol || p->n_change >= MAX_CHANGE;
    if (is_full) {
        memset(p->seen, 0, spins * sizeof *p->seen);
        memset(p->J, 0, spins * sizeof *p->J);
        memset(p->K, 0, spins * sizeof *p->K);
        p->n_change = 0;
        p->tol      = tol;
    }
    for (size_t i = 0; i < spins; i++) p->change[i] = s->D[i] - p->seen[i];
    FM_TRY(build_change(s, change_tol(s)));
    fm_dense_axpy(p->J, 1, p->change + spins, spins);
    if (s->exact != 0) fm_dense_axpy(p->K, 1, p->change + 2 * spins, spins);
    memcpy(p->seen, s->D, spins * sizeof *p->seen);
    p->n_change++;
    count_build(s, began, is_full);
    return FM_OK;
}

/* --- exchange and correlation ---------------------------------------------- */

static fm_status grid(fm_scf *s, double *energy)
{
    fm__scf_parts *p = s->parts;
    const double  *C[2];
    int            n_column[2];
    double        *V[2]  = {p->V, p->V + (size_t)(s->n_spin - 1) * fm__nn(s)};
    const double   began = fm_now();
    fm_xc_result   out   = {0};
    for (int i = 0; i < s->n_spin; i++) C[i] = fm__scf_columns(s, i, &n_column[i]);
    FM_TRY(fm_xc_build(p->xc, C, n_column, V, &out));
    s->energy.electrons = out.electrons;
    *energy             = out.energy;
    s->times.xc += fm_now() - began;
    return FM_OK;
}

/* --- together -------------------------------------------------------------- */

/* An electron exchanges with those of its own spin: half of a restricted D. */
static void assemble(fm_scf *s)
{
    const fm__scf_parts *p  = s->parts;
    const size_t         nn = fm__nn(s);
    const double         x  = s->n_spin == 1 ? 0.5 * s->exact : s->exact;
    for (int i = 0; i < s->n_spin; i++) {
        double *F = s->F + (size_t)i * nn;
        memcpy(F, s->H, nn * sizeof *F);
        for (int j = 0; j < s->n_spin; j++) fm_dense_axpy(F, 1, p->J + (size_t)j * nn, nn);
        if (x != 0) fm_dense_axpy(F, -x, p->K + (size_t)i * nn, nn);
        if (s->is_dft) fm_dense_axpy(F, 1, p->V + (size_t)i * nn, nn);
    }
}

/* E = tr DH + tr DJ/2 - exchange/2 + Exc + Enuc. */
static void energy(fm_scf *s, double e_xc)
{
    const fm__scf_parts *p   = s->parts;
    const size_t         nn  = fm__nn(s);
    const double         x   = s->n_spin == 1 ? 0.5 * s->exact : s->exact;
    double               one = 0, coulomb = 0, exchange = 0;
    for (int i = 0; i < s->n_spin; i++) {
        const double *D = s->D + (size_t)i * nn;
        one += fm_dense_dot(D, s->H, nn);
        for (int j = 0; j < s->n_spin; j++)
            coulomb += 0.5 * fm_dense_dot(D, p->J + (size_t)j * nn, nn);
        if (x != 0) exchange -= 0.5 * x * fm_dense_dot(D, p->K + (size_t)i * nn, nn);
    }
    s->energy.one_electron         = one;
    s->energy.coulomb              = coulomb;
    s->energy.two_electron         = coulomb + exchange;
    s->energy.exchange_correlation = exchange + e_xc;
    s->energy.total                = one + coulomb + exchange + e_xc + s->energy.repulsion;
}

fm_status fm__scf_fock(fm_scf *s)
{
    double e_xc = 0;
    fm_world_doing(s->opt.world, "%s iteration %d: Fock matrix", fm_scf_name(s), s->step.iteration);
    FM_TRY(coulomb_exchange(s));
    if (s->is_dft) FM_TRY(grid(s, &e_xc));
    assemble(s);
    energy(s, e_xc);
    if (!isfinite(s->energy.total))
        return fm_fail(FM_E_NOCONV, "%s iteration %d: the energy is not a number", fm_scf_name(s),
                       s->step.iteration);
    return FM_OK;
}
