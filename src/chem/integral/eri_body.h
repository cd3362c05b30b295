/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of eri_kernel.h for whatever instructions the including file may use, which
 * has included the generator's header name as ERI_GENERATED and defines ERI_KERNEL. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "chem/integral/eri_classes.h"
#include "chem/integral/eri_kernel.h"
#include "chem/integral/vec.h"

typedef struct {
    int la, lb, is_pure, n;
    void (*expand)(vd *E, const vd *pa, const vd *pb, vd h, vd g, vd k);
    void (*bra)(vd *half, const vd *R, const double *E, const int *offset, int n, int add);
    void (*ket)(vd *out, const vd *half, const vd *E, int n, int add);
} pair_functions;
typedef void coulomb_function(vd *R, const vd *F, vd X, vd Y, vd Z);

#include ERI_GENERATED

static const pair_functions *functions_of(const fm_pair_class *c) /* NULL: by loops */
{
    const int at = written_at[c->l_a][c->l_b][c->is_pure];
    return at < 0 ? NULL : &written[at];
}

/* Loops for the classes without straight-line code: rows of stored coefficients. */

static void bra_loop(vd *half, const vd *R, const double *E, const int *offset, int n, int add,
                     const fm_hermite_rows *rows)
{
    for (int row = 0; row < rows->n_row; row++) {
        int q = 0;
        for (; q + 3 < n; q += 4) {
            vd       *o = half + row * n + q, s[4];
            const vd *r[4];
            for (int k = 0; k < 4; k++) {
                s[k] = add ? o[k] : vd_set(0);
                r[k] = R + offset[q + k];
            }
            for (int e = rows->row[row]; e < rows->row[row + 1]; e++) {
                const vd  x  = vd_set(E[e]);
                const int at = rows->offset[e];
                for (int k = 0; k < 4; k++) s[k] = vd_fma(x, r[k][at], s[k]);
            }
            for (int k = 0; k < 4; k++) o[k] = s[k];
        }
        for (; q < n; q++) {
            vd        s = add ? half[row * n + q] : vd_set(0);
            const vd *r = R + offset[q];
            for (int e = rows->row[row]; e < rows->row[row + 1]; e++)
                s = vd_fma(vd_set(E[e]), r[rows->offset[e]], s);
            half[row * n + q] = s;
        }
    }
}

static void ket_loop(vd *out, const vd *half, const vd *E, int n, int add,
                     const fm_hermite_rows *rows, int nh)
{
    int ab = 0;
    for (; ab + 3 < n; ab += 4)
        for (int row = 0; row < rows->n_row; row++) {
            vd       *o = out + ab * rows->n_row + row, s[4];
            const vd *r = half + ab * nh;
            for (int k = 0; k < 4; k++) s[k] = add ? o[k * rows->n_row] : vd_set(0);
            for (int e = rows->row[row]; e < rows->row[row + 1]; e++) {
                const int at = rows->hermite[e];
                for (int k = 0; k < 4; k++) s[k] = vd_fma(E[e], r[k * nh + at], s[k]);
            }
            for (int k = 0; k < 4; k++) o[k * rows->n_row] = s[k];
        }
    for (; ab < n; ab++)
        for (int row = 0; row < rows->n_row; row++) {
            vd s = add ? out[ab * rows->n_row + row] : vd_set(0);
            for (int e = rows->row[row]; e < rows->row[row + 1]; e++)
                s = vd_fma(E[e], half[ab * nh + rows->hermite[e]], s);
            out[ab * rows->n_row + row] = s;
        }
}

/* R of any order, in place from one auxiliary order to the next as in hermite.c. */
static void coulomb_loop(vd *R, const vd *F, int l, vd X, vd Y, vd Z)
{
    const vd  d[3] = {X, Y, Z};
    const int s[3] = {FM_STRIDE_T, FM_STRIDE_U, 1};
    for (int n = l; n >= 0; n--) {
        for (int sum = l - n; sum > 0; sum--)
            for (int t = 0; t <= sum; t++)
                for (int u = 0; u <= sum - t; u++) {
                    const int o[3] = {t, u, sum - t - u}, x = o[2] ? 2 : o[1] ? 1 : 0;
                    vd       *r = R + t * FM_STRIDE_T + u * FM_STRIDE_U + o[2];
                    vd        y = d[x] * r[-s[x]];
                    if (o[x] > 1) y = vd_fma(vd_set(o[x] - 1), r[-2 * s[x]], y);
                    *r = y;
                }
        R[0] = F[n];
    }
}

/* F_0..F_l(T), each multiplied by f (-2 alpha)^m. */
static void boys(vd *F, int l, vd T, vd f, vd alpha)
{
    const vl is_far = T >= (double)FM_BOYS_END;
    int      far    = 0;
    int32_t  at[FM_ERI_LANES];
    for (int k = 0; k < VEC; k++) far |= is_far[k] != 0;

    const vd near = vd_min(T, vd_set(FM_BOYS_END - 1e-9));
    vd_floor_index(at, near * 8.0);
    vd middle;
    for (int k = 0; k < VEC; k++) middle[k] = (at[k] + 0.5) * 0.125;
    for (int k = 0; k < VEC; k++) at[k] *= FM_BOYS_TERMS;
    const vd      d = near - middle;
    const double *t = fm__boys_table[l][0];
    vd            y = vd_gather(t + FM_BOYS_TERMS - 1, at);
    for (int k = FM_BOYS_TERMS - 2; k >= 0; k--) y = vd_fma(y, d, vd_gather(t + k, at));
    F[l] = y;
    if (l > 0 || far) {
        const vd e = vd_exp_minus(vd_min(T, vd_set(700)));
        for (int m = l; m > 0; m--) F[m - 1] = vd_fma(2.0 * T, F[m], e) * (1.0 / (2 * m - 1));
        if (far) {
            const vd r = vd_rsqrt(vd_select(is_far, T, vd_set(FM_BOYS_END))), half = 0.5 * r * r;
            vd       G = 0.88622692545275801365 * r;
            F[0]       = vd_select(is_far, G, F[0]);
            for (int m = 0; m < l; m++) {
                G        = ((2 * m + 1) * G - e) * half;
                F[m + 1] = vd_select(is_far, G, F[m + 1]);
            }
        }
    }
    for (int m = 0; m <= l; m++, f *= -2.0 * alpha) F[m] *= f;
}

/* Broadcast through the ket's code, of which one lane is kept. */
static void bra_written(double *E, const pair_functions *f, const double *prim, double factor,
                        vd *scratch)
{
    vd pa[3], pb[3];
    for (int x = 0; x < 3; x++) {
        pa[x] = vd_set(prim[FM_PRIM_PA + x]);
        pb[x] = vd_set(prim[FM_PRIM_PB + x]);
    }
    const vd h = vd_set(prim[FM_PRIM_H]);
    f->expand(scratch, pa, pb, h, h, vd_set(factor));
    for (int k = 0; k < f->n; k++) E[k] = scratch[k][0];
}

static int entries_of(const fm_pair_class *c)
{
    return c->n_stored ? c->n_stored : functions_of(c)->n;
}

static void begin_bra(fm_eri_work *w, int bra, int prim)
{
    const fm_pair_list   *list = w->list;
    const fm_pair_class  *c    = &list->class[list->of[bra]];
    const pair_functions *f    = functions_of(c);
    const int             n = entries_of(c), combos = fm_class_combos(c);
    w->bra        = bra;
    w->first_prim = prim < 0 ? 0 : prim;
    w->n_prim     = prim < 0 ? list->n_prim[bra] : 1;
    for (int p = 0; p < w->n_prim; p++)
        for (int m = 0; m < combos; m++) {
            const double *rec = list->prim + list->prim_at[bra] +
                                (size_t)(w->first_prim + p) * (size_t)c->prim_step;
            double *E = w->bra_E + (size_t)(p * combos + m) * (size_t)n;
            if (f)
                bra_written(E, f, rec, rec[FM_PRIM_FACTOR + m], (vd *)w->ket_E);
            else
                for (int k = 0; k < n; k++)
                    E[k] = rec[FM_PRIM_FACTOR + m] * rec[FM_PRIM_FACTOR + combos + k];
        }
}

/* Where the lanes' primitive number k lies; lanes that have fewer get factor 0. */
typedef struct {
    int32_t at[FM_ERI_LANES];
    vd      factor;
    double  mag; /* the largest */
} ket_prim;

static void ket_prim_init(ket_prim *kp, const fm_eri_work *w, const fm_pair_class *c,
                          const int32_t *ket, const double *factor, int k)
{
    *kp = (ket_prim){.mag = 0};
    for (int lane = 0; lane < VEC; lane++) {
        const int has    = k < w->list->n_prim[ket[lane]];
        kp->at[lane]     = w->list->prim_at[ket[lane]] + (has ? k * c->prim_step : 0);
        kp->factor[lane] = has ? factor[lane] : 0;
        if (has) kp->mag = fmax(kp->mag, w->list->mag[w->list->mag_at[ket[lane]] + k]);
    }
}

static void ket_expand(vd *E, const fm_eri_work *w, const fm_pair_class *c, const pair_functions *f,
                       const ket_prim *kp, int combo)
{
    const double *prim = w->list->prim;
    const vd      k    = kp->factor * vd_gather(prim + FM_PRIM_FACTOR + combo, kp->at);
    if (f) {
        vd pa[3], pb[3], h = vd_set(0);
        for (int x = 0; x < 3 && c->l_a > 0; x++) pa[x] = vd_gather(prim + FM_PRIM_PA + x, kp->at);
        for (int x = 0; x < 3 && c->l_b > 0; x++) pb[x] = vd_gather(prim + FM_PRIM_PB + x, kp->at);
        if (c->l_a > 0) h = vd_gather(prim + FM_PRIM_H, kp->at);
        f->expand(E, pa, pb, h, -h, k);
        return;
    }
    const double *stored  = prim + FM_PRIM_FACTOR + fm_class_combos(c);
    const vd      sign[2] = {k, -k};
    for (int e = 0; e < c->n_stored; e++)
        E[e] = sign[c->rows.order[e] & 1] * vd_gather(stored + e, kp->at);
}

/* half[combo][ab][q] over the bra's primitives, for one primitive of each ket; how many
 * of the bra's were worth it */
static int bra_half(fm_eri_work *w, const fm_pair_class *b, const pair_functions *f,
                    const fm_pair_class *c, const ket_prim *kp)
{
    const double *prim = w->list->prim, *rec = prim + w->list->prim_at[w->bra];
    const double *mag = w->list->mag + w->list->mag_at[w->bra];
    const int combos = fm_class_combos(b), n = entries_of(b), l = b->l_a + b->l_b + c->l_a + c->l_b;
    const int size = fm_class_products(b) * c->n_hermite;
    const vd  q    = vd_gather(prim + FM_PRIM_P, kp->at);
    vd        Q[3], F[FM_COULOMB_L + 1];
    const int *offset = offset_of[c->l_a + c->l_b];
    int        p;
    for (int x = 0; x < 3; x++) Q[x] = vd_gather(prim + FM_PRIM_CENTRE + x, kp->at);
    for (p = 0; p < w->n_prim; p++) {
        if (mag[w->first_prim + p] * kp->mag < w->cut) break;
        const double *s = rec + (size_t)(w->first_prim + p) * (size_t)b->prim_step;
        const vd      X = s[1] - Q[0], Y = s[2] - Q[1], Z = s[3] - Q[2];
        const vd      r = vd_rsqrt(s[0] + q), alpha = s[0] * q * r * r;
        boys(F, l, alpha * vd_fma(X, X, vd_fma(Y, Y, Z * Z)), r, alpha);
        if (l <= L_WRITTEN)
            coulomb[l]((vd *)w->R, F, X, Y, Z);
        else
            coulomb_loop((vd *)w->R, F, l, X, Y, Z);
        for (int m = 0; m < combos; m++) {
            const double *E    = w->bra_E + (size_t)(p * combos + m) * (size_t)n;
            vd           *half = (vd *)w->half + m * size;
            if (f)
                f->bra(half, (vd *)w->R, E, offset, c->n_hermite, p > 0);
            else
                bra_loop(half, (vd *)w->R, E, offset, c->n_hermite, p > 0, &b->rows);
        }
    }
    return p;
}

static void batch(fm_eri_work *w, int class, const int32_t *ket, const double *factor, int prim)
{
    const fm_pair_list   *list = w->list;
    const fm_pair_class  *b = &list->class[list->of[w->bra]], *c = &list->class[class];
    const pair_functions *fb = functions_of(b), *fc = functions_of(c);
    const int             nab = fm_class_products(b), ncd = fm_class_products(c);
    const int             mb = fm_class_combos(b), mc = fm_class_combos(c);
    int                   most = 0, add = 0;
    for (int lane = 0; lane < VEC; lane++)
        if (list->n_prim[ket[lane]] > most) most = list->n_prim[ket[lane]];
    for (int k = prim < 0 ? 0 : prim; k < (prim < 0 ? most : prim + 1); k++) {
        ket_prim kp;
        ket_prim_init(&kp, w, c, ket, factor, k);
        if (bra_half(w, b, fb, c, &kp) == 0) continue;
        for (int s = 0; s < mc; s++) {
            ket_expand((vd *)w->ket_E, w, c, fc, &kp, s);
            for (int m = 0; m < mb; m++) {
                const vd *half = (vd *)w->half + m * nab * c->n_hermite;
                vd       *out  = (vd *)w->out + (m * mc + s) * nab * ncd;
                if (fc)
                    fc->ket(out, half, (vd *)w->ket_E, nab, add);
                else
                    ket_loop(out, half, (vd *)w->ket_E, nab, add, &c->rows, c->n_hermite);
            }
        }
        add = 1;
    }
    if (!add) memset(w->out, 0, (size_t)(mb * mc * nab * ncd) * sizeof(vd));
}

const fm_eri_kernel ERI_KERNEL = {ERI_ISA, ERI_NAME, VEC, begin_bra, batch};
