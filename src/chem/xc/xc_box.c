/* SPDX-License-Identifier: Apache-2.0 */
/* One box: functions, density, functional, and its part of V. */
#include <stdlib.h>
#include <string.h>

#include "chem/xc/xc_internal.h"

fm_status fm__xc_thread_init(fm__xc_thread *t, const fm_xc *x)
{
    const size_t n       = (size_t)x->basis->n_function;
    const size_t live    = fm_product_stride(x->boxes.max_function);
    const size_t n_value = fm_functional_has_gradient(x->functional) ? 4 : 1;
    const size_t value   = live * FM_BOX_STRIDE;
    const size_t orbital = (live * n + 7) / 8 * 8, total = (n * n + 7) / 8 * 8;
    const size_t all = (n_value + 2) * value + live * FM_BOX + n * FM_BOX_STRIDE + orbital +
                       live * live + (size_t)x->n_spin * total;

    memset(t, 0, sizeof *t);
    double *at = t->block = aligned_alloc(64, (all * sizeof(double) + 63) / 64 * 64);
    t->run                = malloc(((size_t)x->basis->n_shell + 1) * sizeof *t->run);
    if (!at || !t->run)
        return fm_fail(FM_E_OOM, "%zu bytes for a thread's boxes", all * sizeof(double));
    for (size_t d = 0; d < n_value; d++, at += value) t->chi.value[d] = at;
    t->X          = at, at += value;
    t->Y          = at, at += value;
    t->Y_by_point = at, at += live * FM_BOX;
    t->psi        = at, at += n * FM_BOX_STRIDE;
    t->C          = at, at += orbital;
    t->U          = at, at += live * live;
    for (int s = 0; s < x->n_spin; s++, at += total) {
        t->total[s] = at;
        memset(at, 0, n * n * sizeof(double));
    }
    return FM_OK;
}

void fm__xc_thread_fini(fm__xc_thread *t)
{
    free(t->block);
    free(t->run);
}

static void eval_functions(const fm_xc *x, fm__xc_thread *t, int box)
{
    const fm_boxes *b = &x->boxes;
    const size_t    p = (size_t)box * FM_BOX;
    x->kernels->eval(&t->chi,
                     &(fm_ao_box){.basis          = x->basis,
                                  .angular        = x->angular,
                                  .shell          = b->shell + b->first[box],
                                  .n_shell        = b->first[box + 1] - b->first[box],
                                  .x              = b->x + p,
                                  .y              = b->y + p,
                                  .z              = b->z + p,
                                  .wants_gradient = fm_functional_has_gradient(x->functional)});
}

/* Rows of C for the functions of the box, [n][n_occ]. */
static void gather_orbitals(const fm_xc *x, fm__xc_thread *t, int box, const double *C, int n_occ)
{
    const fm_boxes *b  = &x->boxes;
    double         *to = t->C;
    for (int i = b->first[box]; i < b->first[box + 1]; i++) {
        const fm_shell *s = &x->basis->shell[b->shell[i]];
        const size_t    n = (size_t)fm_shell_functions(s) * (size_t)n_occ;
        memcpy(to, C + (size_t)s->first * (size_t)n_occ, n * sizeof(double));
        to += n;
    }
}

/* rho and its gradient of one spin; X = chi D by way of the occupied orbitals. */
static void spin_density(const fm_xc *x, fm__xc_thread *t, int box, const double *C, int n_occ,
                         fm__box_points *out)
{
    const int n       = x->boxes.n_function[box],
              n_value = fm_functional_has_gradient(x->functional) ? 4 : 1;
    if (n_occ == 0) {
        memset(out, 0, (size_t)n_value * sizeof *out);
        return;
    }
    gather_orbitals(x, t, box, C, n_occ);
    x->products->multiply(&(fm_product){.n_row    = n_occ, /* psi[o][p] = sum_f C[f][o] chi[f][p] */
                                        .n_column = FM_BOX,
                                        .n_k      = n,
                                        .A        = t->C,
                                        .row      = 1,
                                        .column   = (size_t)n_occ,
                                        .B        = t->chi.value[0],
                                        .b_stride = FM_BOX_STRIDE,
                                        .out      = t->psi,
                                        .out_stride = FM_BOX_STRIDE});
    x->products->multiply(&(fm_product){.n_row      = n, /* X[f][p] = sum_o C[f][o] psi[o][p] */
                                        .n_column   = FM_BOX,
                                        .n_k        = n_occ,
                                        .A          = t->C,
                                        .row        = (size_t)n_occ,
                                        .column     = 1,
                                        .B          = t->psi,
                                        .b_stride   = FM_BOX_STRIDE,
                                        .out        = t->X,
                                        .out_stride = FM_BOX_STRIDE});
    x->kernels->contract(out, n_value, &t->chi, t->X, n);
    const double occupation = x->n_spin == 1 ? 2 : 1;
    for (int d = 0; d < n_value; d++)
        for (int p = 0; p < FM_BOX; p++) out[d][p] *= d == 0 ? occupation : 2 * occupation;
}

static double dot_gradients(fm__box_points *a, fm__box_points *b, int p)
{
    return a[1][p] * b[1][p] + a[2][p] * b[2][p] + a[3][p] * b[3][p];
}

/* Fills what libxc takes, leaving out points of negligible density; returns their number. */
static int collect_points(const fm_xc *x, fm__xc_thread *t)
{
    const int two = x->n_spin == 2, gradient = fm_functional_has_gradient(x->functional);
    int       n = 0;
    for (int p = 0; p < FM_BOX; p++) {
        const double up = t->density[0][0][p], down = two ? t->density[1][0][p] : 0;
        if (!(up + down > x->opt.tol_rho)) continue;
        t->kept[n] = p;
        if (two) {
            t->rho[2 * n] = up > 0 ? up : 0, t->rho[2 * n + 1] = down > 0 ? down : 0;
        } else {
            t->rho[n] = up;
        }
        if (gradient && two) {
            t->sigma[3 * n]     = dot_gradients(t->density[0], t->density[0], p);
            t->sigma[3 * n + 1] = dot_gradients(t->density[0], t->density[1], p);
            t->sigma[3 * n + 2] = dot_gradients(t->density[1], t->density[1], p);
        } else if (gradient) {
            t->sigma[n] = dot_gradients(t->density[0], t->density[0], p);
        }
        n++;
    }
    return n;
}

/* w v / 2 for chi, and for grad chi the derivative by the gradient of this spin's density. */
static void find_factors(const fm_xc *x, fm__xc_thread *t, int n, const double *w, int spin)
{
    const int two = x->n_spin == 2;
    memset(t->factor, 0, sizeof t->factor);
    for (int i = 0; i < n; i++) {
        const int p     = t->kept[i];
        t->factor[0][p] = 0.5 * w[p] * t->v_rho[two ? 2 * i + spin : i];
        if (!fm_functional_has_gradient(x->functional)) continue;
        const double same  = 2 * w[p] * t->v_sigma[two ? 3 * i + 2 * spin : i];
        const double other = two ? w[p] * t->v_sigma[3 * i + 1] : 0;
        for (int d = 1; d < 4; d++)
            t->factor[d][p] =
                same * t->density[spin][d][p] + (two ? other * t->density[1 - spin][d][p] : 0);
    }
}

/* Sums are kept as multiples of 2^-44: rounding to them first makes every later
 * addition exact (below 512), so the order of boxes, threads and ranks changes no bit. */
static inline double quantised(double v)
{
    const double shift = 1.5 * 0x1p8;
    return (v + shift) - shift;
}

static void add_rows(double *restrict to, const double *restrict from, int n)
{
    for (int i = 0; i < n; i++) to[i] += quantised(from[i]);
}

static void find_runs(const fm_xc *x, fm__xc_thread *t, int box)
{
    const fm_boxes *b  = &x->boxes;
    int             at = 0;
    t->n_run           = 0;
    for (int i = b->first[box]; i < b->first[box + 1]; i++) {
        const fm_shell *s    = &x->basis->shell[b->shell[i]];
        const int       n    = fm_shell_functions(s);
        fm__run        *last = t->n_run ? &t->run[t->n_run - 1] : NULL;
        if (last && last->in_basis + last->n == s->first)
            last->n += n;
        else
            t->run[t->n_run++] = (fm__run){at, s->first, n};
        at += n;
    }
}

/* U of the box into rows and columns of the whole matrix. */
static void scatter(const fm_xc *x, const fm__xc_thread *t, int box, double *total)
{
    const size_t n    = (size_t)x->basis->n_function;
    const size_t live = fm_product_stride(x->boxes.n_function[box]);
    for (int i = 0; i < t->n_run; i++)
        for (int f = 0; f < t->run[i].n; f++) {
            const double *row = t->U + (size_t)(t->run[i].in_box + f) * live;
            double       *to  = total + (size_t)(t->run[i].in_basis + f) * n;
            for (int j = 0; j < t->n_run; j++)
                add_rows(to + t->run[j].in_basis, row + t->run[j].in_box, t->run[j].n);
        }
}

static void spin_potential(const fm_xc *x, fm__xc_thread *t, int box, int n_kept, int spin)
{
    const int n = x->boxes.n_function[box];
    find_factors(x, t, n_kept, x->boxes.w + (size_t)box * FM_BOX, spin);
    x->kernels->combine(t->Y, t->factor, fm_functional_has_gradient(x->functional) ? 4 : 1, &t->chi,
                        n);
    const int    n_padded = (n + FM_PRODUCT_COLUMNS - 1) / FM_PRODUCT_COLUMNS * FM_PRODUCT_COLUMNS;
    const size_t stride   = fm_product_stride(n);
    x->products->transpose(t->Y_by_point, stride, t->Y, FM_BOX_STRIDE, n_padded, FM_BOX);
    x->products->multiply(&(fm_product){.n_row      = n, /* U[f][g] = sum_p chi[f][p] Y[g][p] */
                                        .n_column   = n_padded,
                                        .n_k        = FM_BOX,
                                        .A          = t->chi.value[0],
                                        .row        = FM_BOX_STRIDE,
                                        .column     = 1,
                                        .B          = t->Y_by_point,
                                        .b_stride   = stride,
                                        .out        = t->U,
                                        .out_stride = stride});
    scatter(x, t, box, t->total[spin]);
}

void fm__xc_box(const fm_xc *x, fm__xc_thread *t, int box, const fm__xc_orbitals *o, double *out)
{
    const double *w = x->boxes.w + (size_t)box * FM_BOX;
    out[0] = out[1] = 0;
    if (x->boxes.n_function[box] == 0) return;
    eval_functions(x, t, box);
    for (int s = 0; s < x->n_spin; s++) {
        spin_density(x, t, box, o->C[s], o->n_occ[s], t->density[s]);
        for (int p = 0; p < FM_BOX; p++) out[1] += w[p] * t->density[s][0][p];
    }
    const int n = collect_points(x, t);
    if (n == 0) return;
    fm_functional_eval(x->functional, n,
                       &(fm_functional_points){t->rho, t->sigma, t->energy, t->v_rho, t->v_sigma},
                       t->scratch);
    for (int i = 0; i < n; i++) out[0] += w[t->kept[i]] * t->energy[i];
    find_runs(x, t, box);
    for (int s = 0; s < x->n_spin; s++) spin_potential(x, t, box, n, s);
}
