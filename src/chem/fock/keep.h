/* SPDX-License-Identifier: Apache-2.0 */
/* Integrals kept between builds (semidirect): batches of those pairs of classes whose
 * integrals cost most for the bytes they take, contracted ones that is.
 *
 * For such a pair of classes the kets of a bra are cut into batches by their bounds alone, not
 * by a build's density, and computed to the tightest tolerance.  So a batch is the same
 * numbers in every build, and a build's bits do not depend on what was kept.
 *
 * Threads: any number at once; two threads never work on the same bra. */
#ifndef FM_CHEM_FOCK_KEEP_H
#define FM_CHEM_FOCK_KEEP_H

#include <stdatomic.h>
#include <stddef.h>

#include "chem/integral/eri_kernel.h"

typedef struct {
    const fm_pair_list *list;    /* borrowed */
    double              tol;     /* of the batches */
    uint8_t            *is_kept; /* [n_class][n_class] owned: in fixed batches; 2: worth memory */
    double            **batches; /* [n_pair][n_class] owned, each owned; NULL: not there */
    atomic_size_t       left;    /* bytes */
} fm_keep;

/* bytes 0: nothing is kept and no batch is fixed. */
fm_status fm_keep_init(fm_keep *k, const fm_pair_list *list, size_t bytes, double tol);
void      fm_keep_fini(fm_keep *k); /* a zeroed one is fine */

/* So many leading kets of a class are in fixed batches of this bra. */
int fm_keep_fixed(const fm_keep *k, int bra, int class);

/* The batches of a bra and a class of kets, one after the other, or NULL. */
static inline double *fm_keep_find(const fm_keep *k, int bra, int class)
{
    return k->batches[(size_t)bra * (size_t)k->list->n_class + (size_t) class];
}

/* Room to keep so many doubles, from now on found; NULL: no more, or not worth it. */
double *fm_keep_room(fm_keep *k, int bra, int class, size_t doubles);

#endif
