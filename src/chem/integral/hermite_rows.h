/* SPDX-License-Identifier: Apache-2.0 */
/* The Hermite coefficients of a class of shell pairs as a sparse matrix: a row per
 * product of components, only entries that are not zero for every geometry. */
#ifndef FM_CHEM_INTEGRAL_HERMITE_ROWS_H
#define FM_CHEM_INTEGRAL_HERMITE_ROWS_H

#include <stdint.h>

#include "chem/basis/basis.h"
#include "chem/integral/hermite.h"

typedef struct {
    int      l_a, l_b, is_pure;
    int      n_row;   /* products of components */
    int      n;       /* entries */
    int32_t *row;     /* [n_row + 1] owned: where each row begins */
    int32_t *hermite; /* [n] owned: index in fm_hermite_list */
    int32_t *offset;  /* [n] owned: the same in the layout of eri_classes.h */
    int8_t  *order;   /* [n] owned: t + u + v */
} fm_hermite_rows;

fm_status fm_hermite_rows_init(fm_hermite_rows *r, int l_a, int l_b, int is_pure);
void      fm_hermite_rows_fini(fm_hermite_rows *r);

/* E[n], without contraction coefficients and exp(-ab/p |AB|^2) */
void fm_hermite_rows_fill(const fm_hermite_rows *r, double *E, const fm_gauss_pair *g);

#endif
