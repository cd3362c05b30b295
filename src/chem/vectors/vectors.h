/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors file: molecular orbitals on disk, to start from or to restart.
 *
 *     "fathom vectors" | version | sizes, fingerprint, energy | eps, C per set | checksum
 *
 * Numbers are little-endian doubles.  A file is written beside its name and
 * renamed, so that a reader finds a whole one at any moment: a process that is
 * killed loses the iteration it was in.
 *
 * Ownership: fm_vectors owns its numbers; fm_vectors_fini accepts a zeroed one. */
#ifndef FM_CHEM_VECTORS_VECTORS_H
#define FM_CHEM_VECTORS_VECTORS_H

#include <stdint.h>

#include "chem/basis/basis.h"

typedef struct {
    int      n_function, n_orbital, n_set; /* one set of orbitals, or alpha and beta */
    int      n_occ[2];                     /* alpha and beta electrons */
    int      is_converged, iteration;
    uint64_t fingerprint; /* of the basis */
    double   energy;      /* hartree */
    double  *eps[2];      /* [n_orbital] */
    double  *C[2];        /* [n_function][n_orbital] */
} fm_vectors;

/* Shells in their order, without positions: a moved atom keeps its vectors. */
uint64_t fm_vectors_fingerprint(const fm_basis *b);

fm_status fm_vectors_init(fm_vectors *v, int n_function, int n_orbital, int n_set); /* zeroed */
void      fm_vectors_fini(fm_vectors *v);

/* FM_E_IO names the file and why.  `is_last`: also through a power failure. */
fm_status fm_vectors_write(const fm_vectors *v, const char *path, int is_last);

/* FM_E_IO: no such file.  FM_E_FORMAT: not a vectors file, cut short, damaged,
 * or of another basis than `b`; the sentence says which. */
fm_status fm_vectors_read(fm_vectors *out, const char *path, const fm_basis *b);

/* Whether a file is there whose vectors this basis can take, at least n_orbital of them.
 * One whose header cannot be read fits: fm_vectors_read says what is wrong with it. */
int fm_vectors_fit(const char *path, const fm_basis *b, int n_orbital);

#endif
