/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/xc.h"

#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <omp.h>

#include "chem/xc/xc_internal.h"

static fm_status make_angular(fm_xc *x)
{
    x->angular = malloc(2 * (FM_L_MAX + 1) * sizeof *x->angular);
    if (!x->angular) return fm_fail(FM_E_OOM, "angular functions");
    for (int is_pure = 0; is_pure < 2; is_pure++)
        for (int l = 0; l <= FM_L_MAX; l++)
            fm_angular_init(&x->angular[is_pure * (FM_L_MAX + 1) + l], l, is_pure);
    return FM_OK;
}

typedef struct {
    double cost;
    int    box;
} costed;

static int by_cost(const void *a, const void *b)
{
    const costed *u = a, *v = b;
    if (u->cost != v->cost) return u->cost < v->cost ? 1 : -1;
    return u->box - v->box;
}

/* Each box, costliest first, goes to the rank with the least to do so far. */
static fm_status share_boxes(fm_xc *x)
{
    const int n_box = x->boxes.n_box, n_rank = x->comm->n_rank;
    costed   *order = malloc(((size_t)n_box + 1) * sizeof *order);
    double   *load  = calloc((size_t)n_rank, sizeof *load);
    x->mine         = malloc(((size_t)n_box + 1) * sizeof *x->mine);
    if (!order || !load || !x->mine) {
        free(order);
        free(load);
        return fm_fail(FM_E_OOM, "boxes of ranks");
    }
    for (int i = 0; i < n_box; i++) {
        const double n = x->boxes.n_function[i];
        order[i]       = (costed){n * (n + 200), i};
    }
    qsort(order, (size_t)n_box, sizeof *order, by_cost);
    for (int i = 0; i < n_box; i++) {
        int least = 0;
        for (int r = 1; r < n_rank; r++)
            if (load[r] < load[least]) least = r;
        load[least] += order[i].cost;
        if (least == x->comm->rank) x->mine[x->n_mine++] = order[i].box;
    }
    free(order);
    free(load);
    return FM_OK;
}

fm_status fm_xc_open(fm_xc **out, const fm_molecule *m, const fm_basis *b, const fm_xc_options *opt,
                     fm_comm *comm)
{
    fm_status rc   = FM_OK;
    fm_grid   grid = {0};
    fm_xc    *x    = calloc(1, sizeof *x);
    if (!x) return fm_fail(FM_E_OOM, "exchange-correlation");
    x->basis = b, x->opt = *opt, x->comm = comm;
    x->opt.n_thread = opt->n_thread > 0 ? opt->n_thread : 1;
    x->n_spin       = opt->is_polarised ? 2 : 1;
    x->kernels      = fm_ao_kernels_pick();
    FM_GO(fm_functional_open(&x->functional, &opt->mix, opt->is_polarised));
    FM_GO(make_angular(x));
    FM_GO(fm_grid_init(&grid, m, b, opt->level, x->opt.n_thread));
    x->n_point = grid.n_point;
    FM_GO(fm_boxes_init(&x->boxes, &grid, b, opt->tol_ao));
    FM_GO(share_boxes(x));
    const size_t n = (size_t)b->n_function;
    x->n_sum       = (size_t)x->n_spin * (n * (n + 1) / 2) + 2 * (size_t)x->boxes.n_box;
    x->sums        = malloc((x->n_sum + 1) * sizeof *x->sums);
    if (!x->sums) rc = fm_fail(FM_E_OOM, "sums of exchange-correlation");
out:
    fm_grid_fini(&grid);
    if (rc == FM_OK)
        *out = x;
    else
        fm_xc_close(x);
    return rc;
}

void fm_xc_close(fm_xc *x)
{
    if (!x) return;
    fm_functional_close(x->functional);
    free(x->angular);
    fm_boxes_fini(&x->boxes);
    free(x->mine);
    free(x->sums);
    free(x);
}

int fm_xc_points(const fm_xc *x) { return x->n_point; }

static double *pair_of(fm_xc *x, int box)
{
    return x->sums + x->n_sum - 2 * (size_t)x->boxes.n_box + 2 * (size_t)box;
}

/* U + U^T of this rank's threads, packed by rows of the lower triangle. */
static void add_threads(fm_xc *x, const fm__xc_thread *t)
{
    const size_t n = (size_t)x->basis->n_function;
    for (int s = 0; s < x->n_spin; s++) {
        double *packed = x->sums + (size_t)s * (n * (n + 1) / 2);
#pragma omp parallel for schedule(dynamic, 8) num_threads(x->opt.n_thread)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++) {
                double sum = 0;
                for (int k = 0; k < x->opt.n_thread; k++)
                    sum += t[k].total[s][i * n + j] + t[k].total[s][j * n + i];
                packed[i * (i + 1) / 2 + j] = sum;
            }
    }
}

static void unpack(const fm_xc *x, double *const *V)
{
    const size_t n = (size_t)x->basis->n_function;
    for (int s = 0; s < x->n_spin; s++) {
        const double *packed = x->sums + (size_t)s * (n * (n + 1) / 2);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++)
                V[s][i * n + j] = V[s][j * n + i] = packed[i * (i + 1) / 2 + j];
    }
}

static void run_boxes(fm_xc *x, fm__xc_thread *t, const fm__xc_orbitals *o)
{
    const int before = openblas_get_num_threads();
    openblas_set_num_threads(1); /* threads are ours: one box each */
#pragma omp parallel num_threads(x->opt.n_thread)
    {
        fm__xc_thread *own = &t[omp_get_thread_num()];
#pragma omp for schedule(dynamic)
        for (int i = 0; i < x->n_mine; i++)
            fm__xc_box(x, own, x->mine[i], o, pair_of(x, x->mine[i]));
    }
    openblas_set_num_threads(before);
}

static fm_status compute_sums(fm_xc *x, const fm__xc_orbitals *o)
{
    fm_status      rc = FM_OK;
    fm__xc_thread *t  = aligned_alloc(64, (size_t)x->opt.n_thread * sizeof *t);
    if (!t) return fm_fail(FM_E_OOM, "threads of exchange-correlation");
    memset(t, 0, (size_t)x->opt.n_thread * sizeof *t);
    for (int i = 0; i < x->opt.n_thread; i++) FM_GO(fm__xc_thread_init(&t[i], x));
    run_boxes(x, t, o);
    add_threads(x, t);
out:
    for (int i = 0; i < x->opt.n_thread; i++) fm__xc_thread_fini(&t[i]);
    free(t);
    return rc;
}

fm_status fm_xc_build(fm_xc *x, const double *const *C, const int *n_occ, double *const *V,
                      fm_xc_result *out)
{
    memset(x->sums, 0, x->n_sum * sizeof *x->sums);
    if (!fm_functional_is_empty(x->functional)) {
        FM_TRY(compute_sums(x, &(fm__xc_orbitals){C, n_occ}));
        FM_TRY(fm_all_reduce_f64(x->comm, x->sums, x->n_sum));
    }
    unpack(x, V);
    *out = (fm_xc_result){0};
    for (int i = 0; i < x->boxes.n_box; i++) {
        out->energy += pair_of(x, i)[0];
        out->electrons += pair_of(x, i)[1];
    }
    return FM_OK;
}
