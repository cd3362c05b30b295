/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fock/fock.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chem/fock/fixed_sum.h"
#include "chem/fock/tasks.h"
#include "chem/fock/worker.h"
#include "comm/counter.h"

struct fm_fock {
    const fm_basis *b;
    fm_comm        *comm;
    int             n_thread;
    fm_pair_list    list;
    fm_keep         keep;
    fm_worker      *worker;    /* [n_thread] owned */
    fm_counter     *counter;   /* owned; NULL with one rank */
    double         *D_product; /* [FM_MAX_DENSITY][products] owned */
    fm_fock_stats   last;
};

/* A build under way. */
typedef struct {
    fm_fock             *f;
    int                  n_density;
    const double *const *D;
    fm_screen            screen;
    fm_tasks             tasks;
    double               J_scale[FM_MAX_DENSITY], K_scale[FM_MAX_DENSITY];
    atomic_llong         next; /* task, with one rank */
} build;

static fm_status open_workers(fm_fock *f, fm_isa isa)
{
    f->worker = calloc((size_t)f->n_thread, sizeof *f->worker);
    if (!f->worker) return fm_fail(FM_E_OOM, "no memory for %d threads", f->n_thread);
    for (int t = 0; t < f->n_thread; t++)
        FM_TRY(fm_worker_init(&f->worker[t], &f->list, f->b, &f->keep, isa));
    f->D_product =
        malloc((size_t)FM_MAX_DENSITY * (size_t)(f->list.n_product + 1) * sizeof(double));
    return f->D_product ? FM_OK : fm_fail(FM_E_OOM, "no memory for densities by shell pair");
}

fm_status fm_fock_open(fm_fock **out, const fm_basis *b, const fm_fock_options *opt, fm_comm *comm)
{
    const fm_isa isa = fm_cpu_isa();
    fm_status    rc  = FM_OK;
    fm_fock     *f   = calloc(1, sizeof *f);
    if (!f) return fm_fail(FM_E_OOM, "no memory for the Fock build");
    *f = (fm_fock){.b = b, .comm = comm, .n_thread = opt->n_thread > 0 ? opt->n_thread : 1};
    FM_GO(fm_pairs_init(&f->list, b, opt->tol, fm_eri_kernel_pick(isa)));
    FM_GO(fm_keep_init(&f->keep, &f->list, opt->cache_bytes, 10 * opt->tol));
    FM_GO(open_workers(f, isa));
    if (comm->n_rank > 1) FM_GO(fm_counter_open(&f->counter, comm));
    *out = f;
    f    = NULL;
out:
    fm_fock_close(f);
    return rc;
}

void fm_fock_close(fm_fock *f)
{
    if (!f) return;
    for (int t = 0; f->worker && t < f->n_thread; t++) fm_worker_fini(&f->worker[t]);
    fm_counter_close(f->counter);
    fm_keep_fini(&f->keep);
    fm_pairs_fini(&f->list);
    free(f->worker);
    free(f->D_product);
    free(f);
}

typedef struct { /* a product's two functions */
    int i, j;
} function_pair;

/* Calls for every product of every pair: its number in arrays by product, its functions. */
#define FOR_PRODUCTS(list, at, fp)                                                                 \
    for (int pair_ = 0, at = 0; pair_ < (list)->n_pair; pair_++)                                   \
        for (int p_ = 0, n_ = products_of((list), pair_); p_ < n_; p_++, at++)                     \
            for (int once_ = 1; once_;)                                                            \
                for (const function_pair fp = functions_of((list), pair_, p_); once_; once_ = 0)

static int products_of(const fm_pair_list *l, int pair)
{
    const fm_pair_class *c = &l->class[l->of[pair]];
    return fm_class_combos(c) * fm_class_products(c);
}

static function_pair functions_of(const fm_pair_list *l, int pair, int p)
{
    const fm_pair_class *c     = &l->class[l->of[pair]];
    const int            combo = p / fm_class_products(c), ab = p % fm_class_products(c);
    return (function_pair){l->function_a[pair] + combo / c->n_contr_b * c->n_a + ab / c->n_b,
                           l->function_b[pair] + combo % c->n_contr_b * c->n_b + ab % c->n_b};
}

/* |J_ij| <= Q_ij sum Q_kl |D_kl|;  |K_ik| <= |Q_i| |D| |Q_k| with Euclidean norms. */
static void find_scales(build *u, int d, const double *D_product)
{
    const fm_pair_list *l       = &u->f->list;
    const int           n       = u->f->b->n_function;
    double              coulomb = 0, top = 0, norm = 0, row = 0;
    double             *rows = calloc((size_t)n + 1, sizeof *rows);
    FOR_PRODUCTS(l, at, fp)
    {
        const double q = l->bound[pair_];
        coulomb += 2 * q * fabs(D_product[at]);
        top = fmax(top, q);
        if (rows) rows[fp.i] += q * q;
        if (rows && fp.i != fp.j) rows[fp.j] += q * q;
    }
    for (size_t k = 0; k < (size_t)n * (size_t)n; k++) norm += u->D[d][k] * u->D[d][k];
    for (int i = 0; i < n; i++) row = fmax(row, rows ? rows[i] : n * top * top);
    free(rows);
    u->J_scale[d] = fm_fixed_scale(2 * top * coulomb);
    u->K_scale[d] = fm_fixed_scale(2 * row * sqrt(norm));
}

static void order_density(build *u, int d)
{
    const fm_pair_list *l           = &u->f->list;
    double             *out         = u->f->D_product + (size_t)d * (size_t)(l->n_product + 1);
    const int           n           = u->f->b->n_function;
    FOR_PRODUCTS(l, at, fp) out[at] = u->D[d][(size_t)fp.i * (size_t)n + (size_t)fp.j];
    find_scales(u, d, out);
}

static fm_status next_task(build *u, long long *number)
{
    if (u->f->counter) return fm_counter_next(u->f->counter, number);
    *number = atomic_fetch_add(&u->next, 1);
    return FM_OK;
}

static fm_status work(build *u, fm_worker *w)
{
    const fm_fock *f = u->f;
    long long      t;
    FM_TRY(fm_worker_begin(w, u->n_density, u->screen.has_K));
    for (int d = 0; d < u->n_density; d++) {
        w->sum[d].D_product = f->D_product + (size_t)d * (size_t)(f->list.n_product + 1);
        w->sum[d].J_scale   = u->J_scale[d];
        w->sum[d].K_scale   = u->K_scale[d];
    }
    w->cut      = u->screen.tol / fmax(u->screen.D_most, 1e-30);
    w->keep_cut = f->keep.tol * 0.01;
    for (;;) {
        FM_TRY(next_task(u, &t));
        if (t >= u->tasks.n) return FM_OK;
        for (int bra = u->tasks.task[t].first; bra < u->tasks.task[t].end; bra++)
            fm_worker_bra(w, &u->screen, bra, u->D);
    }
}

/* All threads; the first failure is the rank's. */
static fm_status run_threads(build *u)
{
    fm_fock  *f  = u->f;
    fm_status rc = FM_OK;
#pragma omp parallel num_threads(f->n_thread)
    {
        fm_worker      *w    = &f->worker[omp_get_thread_num()];
        const double    t0   = fm_now();
        const fm_status mine = work(u, w);
        w->busy_s            = fm_now() - t0;
        if (mine != FM_OK) {
#pragma omp critical
            rc = mine;
        }
    }
    return rc;
}

/* Threads' sums into the first's. */
static void add_threads(build *u, int d)
{
    fm_fock     *f = u->f;
    const size_t n = (size_t)f->b->n_function, nJ = (size_t)f->list.n_product,
                 nK = u->screen.has_K ? n * n : 0;
    for (int t = 1; t < f->n_thread; t++) {
        const fm_digest *from = &f->worker[t].sum[d], *to = &f->worker[0].sum[d];
#pragma omp parallel for num_threads(f->n_thread)
        for (size_t k = 0; k < nJ; k++) to->J_product[k] += from->J_product[k];
#pragma omp parallel for num_threads(f->n_thread)
        for (size_t k = 0; k < nK; k++) to->K[k] += from->K[k];
    }
}

static void write_J(build *u, int d, double *J)
{
    const fm_pair_list *l = &u->f->list;
    const size_t        n = (size_t)u->f->b->n_function;
    const int64_t      *x = u->f->worker[0].sum[d].J_product;
    memset(J, 0, n * n * sizeof *J);
    FOR_PRODUCTS(l, at, fp) J[(size_t)fp.i * n + (size_t)fp.j] = 2 * (double)x[at] / u->J_scale[d];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) J[i * n + j] = J[j * n + i] = J[i * n + j] + J[j * n + i];
}

static void write_K(build *u, int d, double *K)
{
    const size_t   n = (size_t)u->f->b->n_function;
    const int64_t *x = u->f->worker[0].sum[d].K;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            K[i * n + j] = K[j * n + i] =
                ((double)x[i * n + j] + (double)x[j * n + i]) / u->K_scale[d];
}

static fm_status add_ranks(build *u)
{
    fm_fock     *f = u->f;
    const size_t n = (size_t)f->b->n_function, nJ = (size_t)f->list.n_product,
                 nK = u->screen.has_K ? n * n : 0;
    if (f->comm->n_rank == 1) return FM_OK;
    double *scratch = malloc(2 * (nJ > nK ? nJ : nK) * sizeof *scratch);
    if (!scratch) return fm_fail(FM_E_OOM, "no memory to add up the ranks' sums");
    fm_status rc = FM_OK;
    for (int d = 0; d < u->n_density && rc == FM_OK; d++) {
        rc = fm_fixed_all_reduce(f->comm, f->worker[0].sum[d].J_product, nJ, scratch);
        if (rc == FM_OK && nK)
            rc = fm_fixed_all_reduce(f->comm, f->worker[0].sum[d].K, nK, scratch);
    }
    free(scratch);
    return rc;
}

static void note_times(fm_fock *f, double begin)
{
    double busy = 0;
    f->last     = (fm_fock_stats){0};
    for (int t = 0; t < f->n_thread; t++) {
        busy += f->worker[t].busy_s / f->n_thread;
        f->last.n_quartet += f->worker[t].n_quartet;
        f->last.n_cached += f->worker[t].n_cached;
    }
    f->last.busy_s = busy;
    f->last.wait_s = fmax(0, fm_now() - begin - busy);
}

static fm_status prepare(build *u, int has_K, double tol)
{
    FM_TRY(fm_screen_init(&u->screen, &u->f->list, u->f->b, u->n_density, u->D, has_K, tol));
    FM_TRY(fm_tasks_init(&u->tasks, &u->screen));
    for (int d = 0; d < u->n_density; d++) order_density(u, d);
    if (u->f->counter) fm_counter_reset(u->f->counter);
    return FM_OK;
}

fm_status fm_fock_build(fm_fock *f, int n_density, const double *const *D, double *const *J,
                        double *const *K, double tol)
{
    build     u  = {.f = f, .n_density = n_density, .D = D};
    fm_status rc = FM_OK;
    FM_BUG_UNLESS(n_density >= 1 && n_density <= FM_MAX_DENSITY && tol > 0);
    FM_GO(prepare(&u, K != NULL, tol));
    const double begin = fm_now();
    FM_GO(run_threads(&u));
    FM_GO(fm_barrier(f->comm));
    note_times(f, begin);
    for (int d = 0; d < n_density; d++) add_threads(&u, d);
    FM_GO(add_ranks(&u));
    for (int d = 0; d < n_density; d++) {
        write_J(&u, d, J[d]);
        if (K) write_K(&u, d, K[d]);
    }
out:
    fm_screen_fini(&u.screen);
    fm_tasks_fini(&u.tasks);
    return rc;
}

fm_fock_stats fm_fock_last(const fm_fock *f) { return f->last; }
