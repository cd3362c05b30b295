/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/xc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "chem/xc/xc_internal.h"

/* Decks' defaults, NWChem's, leave out more than these: up to 3e-9 hartree a water
 * molecule.  Here the difference in time is small. */
#define TOL_RHO_MOST 1e-12
#define TOL_AO_LEAST 18.0

static fm_status make_angular(fm_xc *x)
{
    x->angular = malloc(2 * (FM_L_MAX + 1) * sizeof *x->angular);
    if (!x->angular) return fm_fail(FM_E_OOM, "angular functions");
    for (int is_pure = 0; is_pure < 2; is_pure++)
        for (int l = 0; l <= FM_L_MAX; l++)
            fm_angular_init(&x->angular[is_pure * (FM_L_MAX + 1) + l], l, is_pure);
    return FM_OK;
}

static double cost_of(const fm_xc *x, int box)
{
    const double n = x->boxes.n_function[box];
    return n * (n + 200);
}

/* A rank takes neighbouring boxes with its share of the cost: they have most of
 * their functions in common, so the part of V they add to stays in the cache. */
static void share_boxes(fm_xc *x)
{
    double all = 0, before = 0;
    for (int i = 0; i < x->boxes.n_box; i++) all += cost_of(x, i);
    x->first_box = x->n_my_box = 0;
    for (int i = 0; i < x->boxes.n_box; i++) {
        const double cost  = cost_of(x, i);
        const double place = all > 0 ? (before + 0.5 * cost) / all * x->comm->n_rank : 0;
        const int    owner = place < x->comm->n_rank ? (int)place : x->comm->n_rank - 1;
        before += cost;
        if (owner != x->comm->rank) continue;
        if (x->n_my_box++ == 0) x->first_box = i;
    }
}

fm_status fm_xc_open(fm_xc **out, const fm_molecule *m, const fm_basis *b, const fm_xc_options *opt,
                     fm_comm *comm)
{
    fm_status   rc    = FM_OK;
    fm_grid     grid  = {0};
    fm_molecule atoms = *m;
    fm_xc      *x     = calloc(1, sizeof *x);
    if (!x) return fm_fail(FM_E_OOM, "exchange-correlation");
    x->basis = b, x->opt = *opt, x->comm = comm;
    x->opt.n_thread = opt->n_thread > 0 ? opt->n_thread : 1;
    x->opt.tol_rho  = fmin(opt->tol_rho, TOL_RHO_MOST);
    x->opt.tol_ao   = fmax(opt->tol_ao, TOL_AO_LEAST);
    x->n_spin       = opt->is_polarised ? 2 : 1;
    x->kernels      = fm_ao_kernels_pick();
    x->products     = fm_product_kernels_pick();
    FM_GO(fm_functional_open(&x->functional, &opt->mix, opt->is_polarised));
    FM_GO(make_angular(x));
    if (opt->without_images) atoms.grid_turn = NULL;
    FM_GO(fm_grid_init(&grid, &atoms, b, opt->level,
                       opt->has_cutoff_level ? opt->cutoff_level : opt->level, x->opt.n_thread));
    x->n_point = grid.n_point;
    FM_GO(fm_boxes_init(&x->boxes, &grid, b, x->opt.tol_ao));
    share_boxes(x);
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

/* Boxes a thread takes at once: neighbours, but enough portions to even out. */
static int portion(const fm_xc *x)
{
    const int n = x->n_my_box / (16 * x->opt.n_thread);
    return n < 1 ? 1 : n > 16 ? 16 : n;
}

static void run_boxes(fm_xc *x, fm__xc_thread *t, const fm__xc_orbitals *o)
{
#pragma omp parallel num_threads(x->opt.n_thread)
    {
        fm__xc_thread *own = &t[omp_get_thread_num()];
#pragma omp for schedule(dynamic, portion(x))
        for (int i = x->first_box; i < x->first_box + x->n_my_box; i++)
            fm__xc_box(x, own, i, o, pair_of(x, i));
    }
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
