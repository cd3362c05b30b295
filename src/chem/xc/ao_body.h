/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of ao.h in plain C whose loops over points become vectors.  A file
 * per instruction set defines MADD(a, b, c) = a b + c and includes this one. */
#include <string.h>

#include "chem/integral/harmonic.h"
#include "chem/xc/ao.h"
#include "chem/xc/exp_body.h"

typedef double points[FM_BOX] __attribute__((aligned(64)));

enum { CONTRACTIONS_AT_ONCE = 8 };

/* Points relative to one atom, and what shells of one l on it share. */
typedef struct {
    points x, y, z, r2;
    points monomial[FM_ANGULAR_COMPONENTS]; /* of the l in hand */
    points lower[FM_ANGULAR_COMPONENTS];    /* of l - 1 */
    points Y[4][FM_ANGULAR_COMPONENTS];     /* and grad Y */
    points R[CONTRACTIONS_AT_ONCE], dR[CONTRACTIONS_AT_ONCE], e;
} atom_scratch;

static void move_to_atom(atom_scratch *s, const fm_ao_box *box, const double *centre)
{
    for (int p = 0; p < FM_BOX; p++) {
        s->x[p]  = box->x[p] - centre[0];
        s->y[p]  = box->y[p] - centre[1];
        s->z[p]  = box->z[p] - centre[2];
        s->r2[p] = MADD(s->z[p], s->z[p], MADD(s->y[p], s->y[p], s->x[p] * s->x[p]));
    }
}

static inline void multiply(double *restrict out, const double *restrict a,
                            const double *restrict b)
{
    for (int p = 0; p < FM_BOX; p++) out[p] = a[p] * b[p];
}

/* Monomials of degree l from those of degree l - 1: x times all of them, then y
 * times those without x, then z times the last. */
static void raise_monomials(points *out, points *lower, const atom_scratch *s, int l)
{
    const int n = fm_components(l - 1, 0);
    for (int m = 0; m < n; m++) multiply(out[m], lower[m], s->x);
    for (int m = 0; m < l; m++) multiply(out[n + m], lower[n - l + m], s->y);
    multiply(out[n + l], lower[n - 1], s->z);
}

static void make_monomials(atom_scratch *s, int l)
{
    for (int p = 0; p < FM_BOX; p++) s->monomial[0][p] = 1;
    for (int d = 1; d <= l; d++) {
        memcpy(s->lower, s->monomial, (size_t)fm_components(d - 1, 0) * sizeof(points));
        raise_monomials(s->monomial, s->lower, s, d);
    }
}

static void sum_terms(double *restrict out, const fm_angular *a, int from, int to,
                      const points *monomial)
{
    for (int p = 0; p < FM_BOX; p++) out[p] = 0;
    for (int t = from; t < to; t++) {
        const double *restrict m = monomial[a->monomial[t]];
        const double c           = a->coef[t];
        for (int p = 0; p < FM_BOX; p++) out[p] = MADD(c, m[p], out[p]);
    }
}

static void make_angular(atom_scratch *s, const fm_angular *a, int l, int n_value)
{
    make_monomials(s, l);
    for (int d = 0; d < n_value; d++)
        for (int c = 0; c < a->n_component; c++)
            sum_terms(s->Y[d][c], a, a->first[d][c], a->first[d][c + 1],
                      (const points *)(d == 0 ? s->monomial : s->lower));
}

/* R = sum c exp(-a r^2) and dR = 2 dR/d(r^2) of contractions first .. first + n. */
static void make_radial(atom_scratch *s, const fm_shell *shell, int first, int n)
{
    memset(s->R, 0, (size_t)n * sizeof(points));
    memset(s->dR, 0, (size_t)n * sizeof(points));
    for (int i = 0; i < shell->n_prim; i++) {
        const double a = shell->exponent[i];
        for (int p = 0; p < FM_BOX; p++) s->e[p] = exp_negative(-a * s->r2[p]);
        for (int c = 0; c < n; c++) {
            const double coef = shell->coef[(first + c) * shell->n_prim + i];
            if (coef == 0) continue;
            double *restrict R = s->R[c], *restrict dR = s->dR[c];
            for (int p = 0; p < FM_BOX; p++) {
                R[p]  = MADD(coef, s->e[p], R[p]);
                dR[p] = MADD(-2 * a * coef, s->e[p], dR[p]);
            }
        }
    }
}

static void store_s(double *const out[4], size_t at, const atom_scratch *s, int c, int n_value)
{
    memcpy(out[0] + at, s->R[c], sizeof(points));
    if (n_value == 1) return;
    multiply(out[1] + at, s->x, s->dR[c]);
    multiply(out[2] + at, s->y, s->dR[c]);
    multiply(out[3] + at, s->z, s->dR[c]);
}

static void store_component(double *const out[4], size_t at, const atom_scratch *s, int c, int m,
                            int n_value)
{
    const double *restrict R = s->R[c], *restrict dR = s->dR[c], *restrict Y = s->Y[0][m];
    double *restrict chi = out[0] + at;
    for (int p = 0; p < FM_BOX; p++) chi[p] = Y[p] * R[p];
    if (n_value == 1) return;
    const double *restrict Yx = s->Y[1][m], *restrict Yy = s->Y[2][m], *restrict Yz = s->Y[3][m];
    double *restrict gx = out[1] + at, *restrict gy = out[2] + at, *restrict gz = out[3] + at;
    for (int p = 0; p < FM_BOX; p++) {
        const double q = Y[p] * dR[p];
        gx[p]          = MADD(s->x[p], q, Yx[p] * R[p]);
        gy[p]          = MADD(s->y[p], q, Yy[p] * R[p]);
        gz[p]          = MADD(s->z[p], q, Yz[p] * R[p]);
    }
}

static size_t store_shell(double *const out[4], size_t at, atom_scratch *s, const fm_shell *shell,
                          int n_value)
{
    const int n_component = fm_components(shell->l, shell->is_pure);
    for (int first = 0; first < shell->n_contr; first += CONTRACTIONS_AT_ONCE) {
        const int left = shell->n_contr - first;
        const int n    = left < CONTRACTIONS_AT_ONCE ? left : CONTRACTIONS_AT_ONCE;
        make_radial(s, shell, first, n);
        for (int c = 0; c < n; c++)
            for (int m = 0; m < n_component; m++, at += FM_BOX_STRIDE) {
                if (shell->l == 0)
                    store_s(out, at, s, c, n_value);
                else
                    store_component(out, at, s, c, m, n_value);
            }
    }
    return at;
}

static void eval(const fm_ao_values *out, const fm_ao_box *box)
{
    atom_scratch    s;
    const int       n_value = box->wants_gradient ? 4 : 1;
    const fm_shell *before  = NULL;
    size_t          at      = 0;
    for (int i = 0; i < box->n_shell; i++) {
        const fm_shell *shell   = &box->basis->shell[box->shell[i]];
        const int       is_same = before && before->atom == shell->atom;
        if (!is_same) move_to_atom(&s, box, shell->xyz);
        if (shell->l > 0 &&
            !(is_same && before->l == shell->l && before->is_pure == shell->is_pure))
            make_angular(&s, &box->angular[shell->is_pure * (FM_L_MAX + 1) + shell->l], shell->l,
                         n_value);
        at     = store_shell(out->value, at, &s, shell, n_value);
        before = shell;
    }
}

static void contract(double (*out)[FM_BOX], int n_out, const fm_ao_values *v, const double *X,
                     int n)
{
    memset(out, 0, (size_t)n_out * sizeof out[0]);
    for (int f = 0; f < n; f++) {
        const double *restrict x = X + (size_t)f * FM_BOX_STRIDE;
        for (int d = 0; d < n_out; d++) {
            const double *restrict value = v->value[d] + (size_t)f * FM_BOX_STRIDE;
            double *restrict sum         = out[d];
            for (int p = 0; p < FM_BOX; p++) sum[p] = MADD(value[p], x[p], sum[p]);
        }
    }
}

static void combine(double *Y, double (*a)[FM_BOX], int n_a, const fm_ao_values *v, int n)
{
    for (int f = 0; f < n; f++) {
        double *restrict y         = Y + (size_t)f * FM_BOX_STRIDE;
        const double *restrict chi = v->value[0] + (size_t)f * FM_BOX_STRIDE;
        const double *restrict a0  = a[0];
        for (int p = 0; p < FM_BOX; p++) y[p] = a0[p] * chi[p];
        if (n_a == 1) continue;
        const double *restrict gx = v->value[1] + (size_t)f * FM_BOX_STRIDE;
        const double *restrict gy = v->value[2] + (size_t)f * FM_BOX_STRIDE;
        const double *restrict gz = v->value[3] + (size_t)f * FM_BOX_STRIDE;
        const double *restrict ax = a[1], *restrict ay = a[2], *restrict az = a[3];
        for (int p = 0; p < FM_BOX; p++)
            y[p] = MADD(az[p], gz[p], MADD(ay[p], gy[p], MADD(ax[p], gx[p], y[p])));
    }
}
