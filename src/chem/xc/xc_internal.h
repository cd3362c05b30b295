/* SPDX-License-Identifier: Apache-2.0 */
/* An open exchange-correlation integrator and the scratch of one thread.
 *
 * Letters: chi functions on the points of a box, C occupied orbitals,
 *     psi = chi C,  X = psi C^T,  rho = sum chi X,  Y = (v/2 + 2 v_sigma grad rho . grad) chi
 *     U = chi^T Y,  V = U + U^T */
#ifndef FM_CHEM_XC_XC_INTERNAL_H
#define FM_CHEM_XC_XC_INTERNAL_H

#include "chem/xc/ao.h"
#include "chem/xc/boxes.h"
#include "chem/xc/functional.h"
#include "chem/xc/product.h"
#include "chem/xc/xc.h"

struct fm_xc {
    const fm_basis           *basis; /* borrowed */
    fm_xc_options             opt;
    fm_comm                  *comm;
    fm_functional            *functional;
    const fm_ao_kernels      *kernels;
    const fm_product_kernels *products;
    fm_angular               *angular; /* [2][FM_L_MAX + 1] */
    fm_boxes                  boxes;
    int                       n_point, n_spin;
    int                       first_box, n_my_box; /* this rank's boxes: neighbours in space */
    double                   *sums; /* [n_sum] packed V of every spin, then a pair per box */
    size_t                    n_sum;
};

/* Orbitals of one build. */
typedef struct {
    const double *const *C; /* [n_spin] [n][n_occ] */
    const int           *n_occ;
} fm__xc_orbitals;

/* Adjacent functions of a box that are adjacent in the basis as well. */
typedef struct {
    int in_box, in_basis, n;
} fm__run;

typedef double fm__box_points[FM_BOX] __attribute__((aligned(64)));

typedef struct {
    fm_ao_values   chi;
    double        *psi, *X, *Y, *Y_by_point, *C, *U;
    double        *total[2];      /* [n][n] sum of U over the thread's boxes, a spin each */
    fm__box_points density[2][4]; /* rho and its gradient, spin by spin */
    fm__box_points factor[4];     /* what multiplies chi and grad chi in Y */
    double         rho[2 * FM_BOX], sigma[3 * FM_BOX]; /* of the points that count, for libxc */
    double         energy[FM_BOX], v_rho[2 * FM_BOX], v_sigma[3 * FM_BOX];
    double         scratch[FM_FUNCTIONAL_SCRATCH * FM_BOX];
    int            kept[FM_BOX]; /* which points count */
    fm__run       *run;          /* [n_run] of the box in hand */
    int            n_run;
    double        *block;
} fm__xc_thread;

fm_status fm__xc_thread_init(fm__xc_thread *t, const fm_xc *x);
void      fm__xc_thread_fini(fm__xc_thread *t);

/* Adds the box to t->total; out[0] is its energy, out[1] its electrons. */
void fm__xc_box(const fm_xc *x, fm__xc_thread *t, int box, const fm__xc_orbitals *o, double *out);

#endif
