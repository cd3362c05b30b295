/* SPDX-License-Identifier: Apache-2.0 */
/* The two-electron part of Fock matrices, straight from the integrals:
 *
 *     J_ij = sum_kl (ij|kl) D_kl        K_ij = sum_kl (ik|jl) D_kl
 *
 *     shell pairs by class ─bounds─> tasks, heaviest first ─counter─> ranks x threads
 *            ─> quartets in batches of one class ─kernel─> J, K of the thread ─> one sum
 *
 * Integrals below `tol` after weighting with the density are left out.  Densities
 * and results are replicated: every rank passes the same D and receives the same
 * bits.  The result depends neither on the number of ranks nor on that of threads.
 *
 * fm_fock_build is collective over the group given to fm_fock_open. */
#ifndef FM_CHEM_FOCK_FOCK_H
#define FM_CHEM_FOCK_FOCK_H

#include <stddef.h>

#include "chem/basis/basis.h"
#include "comm/comm.h"

typedef struct fm_fock fm_fock;

typedef struct {
    int    n_thread;    /* threads of this rank */
    size_t cache_bytes; /* integrals kept between builds (semidirect); 0: none */
    double tol;         /* the tightest tolerance that builds will ask for, e.g. 1e-10 */
} fm_fock_options;

typedef struct {
    long long n_quartet; /* shell quartets computed by this rank in the last build */
    long long n_cached;  /* of them taken from the cache */
    double    busy_s;    /* this rank's threads computing, mean over threads */
    double    wait_s;    /* until the slowest rank and thread was done */
} fm_fock_stats;

fm_status fm_fock_open(fm_fock **out, const fm_basis *b, const fm_fock_options *opt, fm_comm *comm);
void      fm_fock_close(fm_fock *f); /* NULL is fine */

/* Adds nothing: J and K are overwritten.  D, J, K: n_density matrices [n][n], symmetric.
 * K may be NULL (pure functionals).  FM_E_COMM names the rank that failed. */
fm_status fm_fock_build(fm_fock *f, int n_density, const double *const *D, double *const *J,
                        double *const *K, double tol);

fm_fock_stats fm_fock_last(const fm_fock *f);

#endif
