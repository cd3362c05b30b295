/* SPDX-License-Identifier: Apache-2.0 */
/* Hartree-Fock and Kohn-Sham: find the density D whose Fock matrix commutes
 * with it,
 *     F[D] C = S C eps,    D = C_occ C_occ^T for each spin.
 *
 * Integrals and grid are the work of all ranks; the algebra between them is
 * rank 0's, which broadcasts the new density and whether it is the last. */
#include "chem/scf.h"

#include "chem/scf_internal.h"

/* clang-format off: an equation a line */

static fm_status next_density(fm_scf *s)
{
    FM_TRY(fm__scf_residual(s));                /* R = X^T (FDS - SDF) X, the gradient */
    FM_TRY(fm__scf_orbitals(s));                /* C of the F that DIIS makes of all so far */
    FM_TRY(fm__scf_density(s));                 /* D = C_occ C_occ^T */
    s->is_converged = fm__scf_converged(s);
    return fm__scf_keep(s);                     /* C to the vectors file */
}

fm_status fm_scf_run(fm_scf *s)
{
    FM_TRY(fm__scf_core(s));                    /* H = T + V, S, and X with X^T S X = 1 */
    FM_TRY(fm__scf_guess(s));                   /* D from atoms, H or a vectors file */

    for (s->step.iteration = 1; s->step.iteration <= s->task->max_iterations; s->step.iteration++) {
        FM_TRY(fm__scf_fock(s));                /* F = H + J[D] - a K[D] + Vxc[rho], and E */
        FM_TRY(fm__scf_share(s, s->comm->rank == 0 ? next_density(s) : FM_OK));
        fm__scf_report(s);
        if (s->is_converged) return FM_OK;
    }
    return fm__scf_not_converged(s);
}
