/* SPDX-License-Identifier: Apache-2.0 */
/* Basis functions on the points of a box, and the sums over functions that need
 * them.  A kernel family: plain C (ao_body.h), compiled per instruction set.
 *
 *     chi[f][p] = Y_f(x, y, z) R_f(r^2)        grad chi = R grad Y + 2 Y R' (x, y, z)
 *
 * Values lie function by function in rows of FM_BOX points, FM_BOX_STRIDE apart,
 * 64-byte aligned; a box with fewer points is padded by points of weight zero.  A kernel reads and
 * writes its arguments alone. */
#ifndef FM_CHEM_XC_AO_H
#define FM_CHEM_XC_AO_H

#include "base/cpu.h"
#include "chem/basis/basis.h"

/* Rows are padded by 64 bytes so that their strides do not map to the same cache set. */
enum { FM_BOX = 128, FM_BOX_STRIDE = FM_BOX + 8 };

/* Terms of the polynomials Y and grad Y of one l: coefficients of monomials. */
enum { FM_ANGULAR_TERMS = 512, FM_ANGULAR_COMPONENTS = (FM_L_MAX + 1) * (FM_L_MAX + 2) / 2 };
typedef struct {
    int n_component;
    /* terms of Y (0) and of its derivatives by x, y, z (1, 2, 3): first[d][c] .. first[d][c+1] */
    int    first[4][FM_ANGULAR_COMPONENTS + 1];
    int    monomial[FM_ANGULAR_TERMS]; /* index in the cartesian order of degree l, or l - 1 */
    double coef[FM_ANGULAR_TERMS];
} fm_angular;

void fm_angular_init(fm_angular *a, int l, int is_pure);

/* Values and gradients of functions: value[0] = chi, value[1..3] = its derivatives,
 * [n][FM_BOX_STRIDE] each. */
typedef struct {
    double *value[4];
} fm_ao_values;

typedef struct {
    const fm_basis   *basis;
    const fm_angular *angular; /* [2][FM_L_MAX + 1]: cartesian, pure */
    const int        *shell;   /* [n_shell] those alive in the box, ascending */
    int               n_shell;
    const double     *x, *y, *z; /* [FM_BOX] */
    int               wants_gradient;
} fm_ao_box;

typedef struct {
    fm_isa isa;
    /* Functions in the order of box->shell. */
    void (*eval)(const fm_ao_values *out, const fm_ao_box *box);
    /* out[0][p] = sum_f chi[f][p] X[f][p]; out[1..3] the same with the gradients (n_out 1 or 4) */
    void (*contract)(double (*out)[FM_BOX], int n_out, const fm_ao_values *v, const double *X,
                     int n);
    /* Y[f][p] = sum_d a[d][p] value[d][f][p], d < n_a (1 or 4) */
    void (*combine)(double *Y, double (*a)[FM_BOX], int n_a, const fm_ao_values *v, int n);
} fm_ao_kernels;

const fm_ao_kernels *fm_ao_kernels_at(int i);  /* best first, plain C last; NULL beyond */
const fm_ao_kernels *fm_ao_kernels_pick(void); /* the best this CPU may run */

#endif
