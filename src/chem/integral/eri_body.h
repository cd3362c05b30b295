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

/* Loops for the classes without straight-line code: rows of stored coefficients, u sums at a
 * time so that a coefficient is loaded once for all of them; u is a constant where expanded. */

static inline __attribute__((always_inline)) void bra_row(vd *o, const vd *R, const double *E,
                                                          const int *offset, int add,
                                                          const int32_t *at, int n, const int u)
{
    vd        s[10];
    const vd *r[10];
    for (int k = 0; k < u; k++) {
        s[k] = add ? o[k] : vd_set(0);
        r[k] = R + offset[k];
    }
    for (int e = 0; e < n; e++) {
        const vd x = vd_set(E[e]);
        for (int k = 0; k < u; k++) s[k] = vd_fma(x, r[k][at[e]], s[k]);
    }
    for (int k = 0; k < u; k++) o[k] = s[k];
}

static void bra_loop(vd *half, const vd *R, const double *E, const int *offset, int n, int add,
                     const fm_hermite_rows *rows)
{
    for (int row = 0; row < rows->n_row; row++) {
        const int      first = rows->row[row], m = rows->row[row + 1] - first;
        const int32_t *at = rows->offset + first;
        const double  *e  = E + first;
        vd            *o  = half + row * n;
        int            q  = 0;
        for (; q + 10 <= n; q += 10) bra_row(o + q, R, e, offset + q, add, at, m, 10);
        for (; q + 4 <= n; q += 4) bra_row(o + q, R, e, offset + q, add, at, m, 4);
        for (; q < n; q++) bra_row(o + q, R, e, offset + q, add, at, m, 1);
    }
}

/* u products of the bra, `step` vectors apart in out and nh in half */
static inline __attribute__((always_inline)) void ket_row(vd *o, int step, const vd *half, int nh,
                                                          const vd *E, int add, const int32_t *at,
                                                          int n, const int u)
{
    vd s[9];
    for (int k = 0; k < u; k++) s[k] = add ? o[k * step] : vd_set(0);
    for (int e = 0; e < n; e++) {
        const vd  x = E[e];
        const vd *h = half + at[e];
        for (int k = 0; k < u; k++) s[k] = vd_fma(x, h[k * nh], s[k]);
    }
    for (int k = 0; k < u; k++) o[k * step] = s[k];
}

static inline __attribute__((always_inline)) void ket_rows(vd *out, const vd *half, int nh,
                                                           const vd *E, int add,
                                                           const fm_hermite_rows *rows, const int u)
{
    for (int row = 0; row < rows->n_row; row++)
        ket_row(out + row, rows->n_row, half, nh, E + rows->row[row], add,
                rows->hermite + rows->row[row], rows->row[row + 1] - rows->row[row], u);
}

static void ket_loop(vd *out, const vd *half, const vd *E, int n, int add,
                     const fm_hermite_rows *rows, int nh)
{
    int ab = 0;
    for (; ab + 7 <= n; ab += 7)
        ket_rows(out + ab * rows->n_row, half + ab * nh, nh, E, add, rows, 7);
    for (; ab + 3 <= n; ab += 3)
        ket_rows(out + ab * rows->n_row, half + ab * nh, nh, E, add, rows, 3);
    for (; ab < n; ab++) ket_rows(out + ab * rows->n_row, half + ab * nh, nh, E, add, rows, 1);
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

/* Each lane's row of coefficients, one vector per power. */
static inline void boys_rows(vd t[FM_BOYS_TERMS], const double *table, vi at)
{
#if defined(__AVX512F__)
    for (int lane = 0; lane < VEC; lane++) t[lane] = *(const vd *)(table + at[lane]);
    vd_transpose(t);
#else
    for (int k = 0; k < FM_BOYS_TERMS; k++) t[k] = vd_gather(table + k, at);
#endif
}

/* F_l by its table; u runs from -1/2 to 1/2 over an interval */
static inline vd boys_top(int l, vd T)
{
    const vd x = 8.0 * vd_min(T, vd_set(FM_BOYS_END - 1e-9));
    const vi i = vi_of(x), at = i * FM_BOYS_TERMS;
    const vd u = x - vd_of(i) - 0.5, u2 = u * u;
    vd       t[FM_BOYS_TERMS];
    boys_rows(t, fm__boys_table[l][0], at);
    const vd a = vd_fma(u, t[1], t[0]), b = vd_fma(u, t[3], t[2]);
    const vd c = vd_fma(u, t[5], t[4]), d = vd_fma(u, t[7], t[6]);
    return vd_fma(u2 * u2, vd_fma(u2, d, c), vd_fma(u2, b, a));
}

/* The last T that the table serves, and what is beyond: F_0 = sqrt(pi / 4T), then upwards. */
static const double BOYS_LAST = FM_BOYS_END - 1e-9;

static void boys_far(vd *F, int l, vd T, vd e)
{
    const vd r = vd_rsqrt(vd_if_above(T, BOYS_LAST, T, vd_set(FM_BOYS_END))), half = 0.5 * r * r;
    vd       G = 0.88622692545275801365 * r;
    F[0]       = vd_if_above(T, BOYS_LAST, G, F[0]);
    for (int m = 0; m < l; m++) {
        G        = ((double)(2 * m + 1) * G - e) * half;
        F[m + 1] = vd_if_above(T, BOYS_LAST, G, F[m + 1]);
    }
}

/* F_0..F_l(T), each multiplied by f (-2 alpha)^m. */
static inline void boys(vd *F, int l, vd T, vd f, vd alpha)
{
    static const double odd[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23,
                                 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31};
    const int           far   = vd_any_above(T, BOYS_LAST);
    F[l]                      = boys_top(l, T);
    if (l > 0 || far) {
        const vd e = vd_exp_minus(vd_min(T, vd_set(700))), T2 = T + T;
        for (int m = l; m > 0; m--) F[m - 1] = vd_fma(T2, F[m], e) * odd[m - 1];
        if (far) boys_far(F, l, T, e);
    }
    const vd down = -2.0 * alpha;
    for (int m = 0; m <= l; m++, f *= down) F[m] *= f;
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
    vi at;
    vd factor, mag;
} ket_prim;

static inline ket_prim ket_prim_of(const fm_eri_work *w, const fm_pair_class *c, vi at, vi n_prim,
                                   vd factor, int k)
{
    const double *mag = w->list->prim + FM_PRIM_MAG;
    if (c->most_prim == 1) return (ket_prim){at, factor, vd_gather(mag, at)};
    const vd n = vd_of(n_prim), last = vd_min(n - 1.0, vd_set(k));
    const vi mine = at + vi_of(last) * c->prim_step;
    return (ket_prim){mine, vd_if_above(n, k, factor, vd_set(0)), vd_gather(mag, mine)};
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
        if (!vd_any_above(mag[w->first_prim + p] * kp->mag, w->cut)) break;
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
    const vi              kets = *(const vi_loose *)ket, at = vi_gather(list->prim_at, kets);
    const vi              n_prim = vi_gather(list->n_prim, kets);
    int                   most = 1, add = 0;
    for (int lane = 0; lane < VEC && c->most_prim > 1; lane++)
        if (n_prim[lane] > most) most = n_prim[lane];
    for (int k = prim < 0 ? 0 : prim; k < (prim < 0 ? most : prim + 1); k++) {
        const ket_prim kp = ket_prim_of(w, c, at, n_prim, *(const vd_loose *)factor, k);
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
