/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/input/principal.h"

#include <math.h>
#include <string.h>

/* One Jacobi rotation by at most 45 degrees in the plane (p, q); V collects them. */
static void rotate(double A[3][3], double V[3][3], int p, int q)
{
    const double half = 0.5 * (A[q][q] - A[p][p]), a = A[p][q];
    const double t = a / (fabs(half) + sqrt(half * half + a * a)) * (half < 0 ? -1 : 1);
    const double c = 1 / sqrt(1 + t * t), s = t * c;
    for (int k = 0; k < 3; k++) {
        const double u = A[k][p], v = A[k][q];
        A[k][p] = c * u - s * v;
        A[k][q] = s * u + c * v;
    }
    for (int k = 0; k < 3; k++) {
        const double u = A[p][k], v = A[q][k];
        A[p][k] = c * u - s * v;
        A[q][k] = s * u + c * v;
    }
    for (int k = 0; k < 3; k++) {
        const double u = V[k][p], v = V[k][q];
        V[k][p] = c * u - s * v;
        V[k][q] = s * u + c * v;
    }
}

static void diagonalise(double A[3][3], double V[3][3])
{
    const double size = A[0][0] + A[1][1] + A[2][2];
    for (int sweep = 0; sweep < 60; sweep++)
        for (int k = 0; k < 3; k++) {
            const int p = k == 0 ? 1 : 0, q = k == 2 ? 1 : 2; /* planes yz, xz, xy */
            if (fabs(A[p][q]) > 1e-15 * size) rotate(A, V, p, q);
        }
}

static void swap_columns(double V[3][3], double value[3], int i, int j)
{
    const double x = value[i];
    value[i]       = value[j];
    value[j]       = x;
    for (int k = 0; k < 3; k++) {
        const double v = V[k][i];
        V[k][i]        = V[k][j];
        V[k][j]        = v;
    }
}

/* A direction has no sign; NWChem takes the one with 3x + 2y + z >= 0. */
static void choose_signs(double axes[3][3])
{
    for (int i = 0; i < 3; i++)
        if (3 * axes[i][0] + 2 * axes[i][1] + axes[i][2] < 0)
            for (int k = 0; k < 3; k++) axes[i][k] = -axes[i][k];
}

static double determinant(const double a[3][3])
{
    double d = 0;
    for (int k = 0; k < 3; k++)
        d += a[2][k] *
             (a[0][(k + 1) % 3] * a[1][(k + 2) % 3] - a[0][(k + 2) % 3] * a[1][(k + 1) % 3]);
    return d;
}

static void exchange(double axes[3][3], double value[3], int i, int j)
{
    const double v = value[i];
    value[i]       = value[j];
    value[j]       = v;
    for (int k = 0; k < 3; k++) {
        const double x = axes[i][k];
        axes[i][k]     = axes[j][k];
        axes[j][k]     = x;
    }
}

static int sign_changes(const double a[3]) { return (a[0] * a[1] < 0) + (a[1] * a[2] < 0); }

/* Of axes with equal moments those with fewer changes of sign come first.  As in NWChem, the
 * numbers of changes stay where they are when axes move. */
static void order_equal_moments(double axes[3][3], double value[3])
{
    const int n[3] = {sign_changes(axes[0]), sign_changes(axes[1]), sign_changes(axes[2])};
    for (int i = 0; i < 2; i++)
        for (int j = i + 1; j < 3; j++)
            if (fabs(value[j] - value[i]) < FM__EQUAL_MOMENTS && n[j] < n[i])
                exchange(axes, value, i, j);
}

/* Right-handed: two axes of equal moments change places, otherwise the last one turns around. */
static void make_right_handed(double axes[3][3], double value[3])
{
    if (determinant(axes) > 0) return;
    if (fabs(value[0] - value[1]) <= FM__EQUAL_MOMENTS)
        exchange(axes, value, 0, 1);
    else if (fabs(value[1] - value[2]) <= FM__EQUAL_MOMENTS)
        exchange(axes, value, 1, 2);
    else
        for (int k = 0; k < 3; k++) axes[2][k] = -axes[2][k];
}

void fm__principal_axes(const double A[3][3], double axes[3][3], double value[3])
{
    double D[3][3], V[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    memcpy(D, A, sizeof D);
    diagonalise(D, V);
    for (int i = 0; i < 3; i++) value[i] = D[i][i];
    for (int pass = 2; pass > 0; pass--)
        for (int i = 0; i < pass; i++)
            if (value[i] < value[i + 1] - 1e-9) swap_columns(V, value, i, i + 1);
    for (int i = 0; i < 9; i++) axes[i / 3][i % 3] = V[i % 3][i / 3];
    choose_signs(axes);
    order_equal_moments(axes, value);
    make_right_handed(axes, value);
}
