/* SPDX-License-Identifier: Apache-2.0 */
/* The self-consistent field: RHF, ROHF, UHF, RKS and UKS energies.
 *
 *     H, S, X ─> guess ─> { F[D], E ─> residual ─> DIIS ─> C ─> D } until converged
 *
 * Every rank runs the same iterations on replicated matrices; the Fock and the
 * grid parts divide their work over ranks and threads.  Rank 0's orbitals and
 * verdict hold for all, so ranks never part.
 *
 * Ownership: an fm_scf borrows its task and group and owns the rest. */
#ifndef FM_CHEM_SCF_H
#define FM_CHEM_SCF_H

#include "chem/input/deck.h"
#include "comm/world.h"

typedef struct fm_scf fm_scf;

/* One iteration, as reported to on_step. */
typedef struct {
    int         iteration;
    double      energy, change; /* hartree; change: since the iteration before */
    double      gradient;       /* norm of the orbital gradient */
    double      largest;        /* its largest element */
    double      rms_density;    /* change of the density this iteration led to */
    double      level_shift;    /* hartree, in this step */
    double      seconds;        /* since the task began */
    const char *method;         /* "diis", "descent" */
} fm_scf_step;

typedef struct {
    fm_world       *world;
    int             n_thread;                     /* of this rank */
    size_t          memory_bytes; /* free for this rank, for integrals to keep; 0: not known */
    int             without_diis;                 /* minimise the energy directly from the start */
    fm_vectors_from vectors_from;                 /* FM_VECTORS_USUAL: atoms */
    const char     *vectors_in;                   /* path, for FM_VECTORS_FILE */
    const char     *vectors_out;                  /* path; NULL: orbitals are not kept */
    void (*on_start)(void *ctx, const fm_scf *s); /* guess is made; NULL is fine */
    void (*on_step)(void *ctx, const fm_scf *s, const fm_scf_step *step);
    void *ctx;
} fm_scf_options;

/* Seconds of this rank. */
typedef struct {
    double    guess, one_electron, fock, xc, eigen, mix, vectors, total;
    double    fock_busy, fock_wait; /* within fock */
    double    comm_wait;            /* for rank 0's orbitals */
    int       n_fock, n_full;       /* builds, and those from the whole density */
    long long n_quartet;            /* of this rank, all builds */
} fm_scf_times;

typedef struct {
    double total, one_electron, two_electron, coulomb, exchange_correlation,
        repulsion;    /* hartree */
    double electrons; /* dft: integral of the density on the grid */
} fm_scf_energy;

struct fm_scf {
    const fm_deck_task *task; /* borrowed */
    fm_scf_options      opt;
    fm_comm            *comm;
    int                 is_dft;
    int                 n_spin; /* densities: 1 total, or alpha and beta */
    int                 n_set;  /* sets of orbitals: 2 if unrestricted */
    int                 n, m;   /* functions; independent combinations of them */
    int                 n_occ[2];
    double              exact; /* share of exact exchange */
    double              smallest_overlap;
    size_t              cache_bytes; /* semidirect: integrals are kept up to this; 0: direct */

    double *S, *H, *X;     /* [n][n], X [n][m] */
    double *D, *F;         /* [n_spin][n][n] */
    double *C[2], *eps[2]; /* [n][m], [m] of each set */

    fm_scf_energy         energy;
    fm_scf_step           step;
    fm_scf_times          times;
    int                   is_converged, n_grid_point;
    int                   all_know; /* every rank has seen the failure: none waits for another */
    double                atoms_energy;
    struct fm__scf_parts *parts;                      /* private */
};

fm_status fm_scf_open(fm_scf **out, const fm_deck_task *task, const fm_scf_options *opt);
void      fm_scf_close(fm_scf *s); /* NULL is fine */

/* Iterates to convergence.  FM_E_NOCONV says how far it came; energy, orbitals
 * and densities are then those of the last iteration. */
fm_status fm_scf_run(fm_scf *s);

const char *fm_scf_name(const fm_scf *s); /* "RHF", "ROHF", "UHF", "RKS", "UKS" */

#endif
