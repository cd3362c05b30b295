/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of a Fock build: its work space and sums, kept between builds. */
#ifndef FM_CHEM_FOCK_WORKER_H
#define FM_CHEM_FOCK_WORKER_H

#include "chem/fock/digest.h"
#include "chem/fock/keep.h"
#include "chem/fock/screen.h"

typedef struct {
    const fm_eri_kernel    *eri;
    const fm_digest_kernel *digest;
    fm_eri_work             work;
    int                     n_density;
    fm_digest               sum[FM_MAX_DENSITY];
    double                 *row;   /* [n_shell] owned: largest densities beside the bra */
    int32_t                *kets;  /* [pairs of the largest class and a vector] owned */
    int32_t                *fixed; /* the same, behind it */
    fm_keep                *keep;  /* borrowed */
    double    cut, keep_cut;       /* of primitives, as the build or the kept batches want it */
    long long n_quartet, n_cached;
    double    busy_s;
} fm_worker;

fm_status fm_worker_init(fm_worker *w, const fm_pair_list *list, const fm_basis *b, fm_keep *keep,
                         fm_isa isa);
void      fm_worker_fini(fm_worker *w); /* a zeroed one is fine */

/* Room for the sums of so many densities, zeroed. */
fm_status fm_worker_begin(fm_worker *w, int n_density, int has_K);

/* Adds the quartets of one bra. */
void fm_worker_bra(fm_worker *w, const fm_screen *s, int bra, const double *const *D);

#endif
