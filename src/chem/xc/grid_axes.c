/* SPDX-License-Identifier: Apache-2.0 */
/* Orientation of the Lebedev sets: the grid turns with the molecule. */
#include <math.h>
#include <string.h>

#include "chem/xc/grid_internal.h"

#define DIAGONAL_ENOUGH 1e-3 /* sum |off-diagonal| / sum |diagonal| */

/* sum Z (d^2 1 - d d^T) about the centre of charge. */
static void charge_tensor(double M[3][3], const fm_molecule *m)
{
    double centre[3] = {0}, charge = 0;
    for (int i = 0; i < m->n_atom; i++) {
        charge += m->atom[i].charge;
        for (int k = 0; k < 3; k++) centre[k] += m->atom[i].charge * m->atom[i].xyz[k];
    }
    memset(M, 0, 9 * sizeof(double));
    for (int i = 0; i < m->n_atom; i++) {
        double d[3], d2 = 0;
        for (int k = 0; k < 3; k++) {
            d[k] = m->atom[i].xyz[k] - centre[k] / charge;
            d2 += d[k] * d[k];
        }
        for (int k = 0; k < 3; k++) {
            M[k][k] += m->atom[i].charge * d2;
            for (int l = 0; l < 3; l++) M[k][l] -= m->atom[i].charge * d[k] * d[l];
        }
    }
}

static double off_diagonal(double M[3][3])
{
    return M[0][1] * M[0][1] + M[0][2] * M[0][2] + M[1][2] * M[1][2];
}

/* One Jacobi rotation in the plane (p, q) that makes M[p][q] zero, at most 45 degrees. */
static void rotate(double M[3][3], double V[3][3], int p, int q)
{
    const double half = 0.5 * (M[q][q] - M[p][p]), a = M[p][q];
    const double t = a / (fabs(half) + sqrt(half * half + a * a)) * (half < 0 ? -1 : 1);
    const double c = 1 / sqrt(1 + t * t), s = t * c;
    for (int k = 0; k < 3; k++) {
        const double u = M[k][p], v = M[k][q];
        M[k][p] = c * u - s * v, M[k][q] = s * u + c * v;
    }
    for (int k = 0; k < 3; k++) {
        const double u = M[p][k], v = M[q][k];
        M[p][k] = c * u - s * v, M[q][k] = s * u + c * v;
    }
    for (int k = 0; k < 3; k++) {
        const double u = V[k][p], v = V[k][q];
        V[k][p] = c * u - s * v, V[k][q] = s * u + c * v;
    }
}

/* Jacobi's method with a threshold that falls with the norm of the off-diagonal
 * part, planes in the order xy, xz, yz.  The order matters where eigenvalues are
 * equal: it selects the axes within their plane. */
static void eigenvectors(double M[3][3], double V[3][3])
{
    static const int plane[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    const double     stop        = 1e-24 * off_diagonal(M);
    for (int sweep = 0; sweep < 50; sweep++)
        for (int i = 0; i < 3; i++) {
            const double left = off_diagonal(M);
            if (left <= stop || left == 0) return;
            const double a = M[plane[i][0]][plane[i][1]];
            if (fabs(a) > sqrt(left / 3.3)) rotate(M, V, plane[i][0], plane[i][1]);
        }
}

static void set_identity(double A[3][3])
{
    memset(A, 0, 9 * sizeof(double));
    A[0][0] = A[1][1] = A[2][2] = 1;
}

static void principal_axes(double axes[3][3], const fm_molecule *m)
{
    double M[3][3];
    set_identity(axes);
    if (m->n_atom < 2) return;
    charge_tensor(M, m);
    const double off = fabs(M[0][1]) + fabs(M[0][2]) + fabs(M[1][2]);
    const double on  = fabs(M[0][0]) + fabs(M[1][1]) + fabs(M[2][2]);
    if (on + off > 1e-20 && off / on < DIAGONAL_ENOUGH) return;
    if (on + off > 1e-20) eigenvectors(M, axes);
}

void fm__grid_axes(double axes[3][3], const fm_molecule *m)
{
    principal_axes(axes, m);
    if (m->grid_axes != FM_GRID_AXES_THREE_FOLD) return;
    const double s2 = sqrt(2.0), s3 = sqrt(3.0), s6 = sqrt(6.0);
    const double turn[3][3] = {{2 / s6, -1 / s6, -1 / s6},
                               {0, 1 / s2, -1 / s2},
                               {1 / s3, 1 / s3, 1 / s3}}; /* (1,1,1) onto z */
    double       before[3][3];
    memcpy(before, axes, sizeof before);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            axes[i][j] = 0;
            for (int k = 0; k < 3; k++) axes[i][j] += turn[i][k] * before[k][j];
        }
}
