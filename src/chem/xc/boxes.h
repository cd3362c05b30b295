/* SPDX-License-Identifier: Apache-2.0 */
/* Grid points sorted into boxes of FM_BOX neighbours, each with the shells that
 * are not negligible on it.
 *
 *     all points ──halved along the longest edge──> boxes ──distance, weight──> live shells
 *
 * The last box is padded with points of weight zero.  Boxes are the unit of work
 * and of summation: what a box contributes depends on nothing but its points.
 *
 * Ownership: owns its arrays; nothing changes after fm_boxes_init. */
#ifndef FM_CHEM_XC_BOXES_H
#define FM_CHEM_XC_BOXES_H

#include "chem/xc/ao.h"
#include "chem/xc/grid.h"

typedef struct {
    int     n_box;
    double *x, *y, *z, *w; /* [n_box][FM_BOX], 64-byte aligned */
    int    *first;         /* [n_box + 1] a box' shells are shell[first[i] .. first[i+1]) */
    int    *shell;
    int    *n_function; /* [n_box] functions of these shells */
    int     max_function;
} fm_boxes;

/* Functions are left out where they are below e^-tol_ao all over a box. */
fm_status fm_boxes_init(fm_boxes *b, const fm_grid *g, const fm_basis *basis, double tol_ao);
void      fm_boxes_fini(fm_boxes *b); /* a zeroed one is fine */

#endif
