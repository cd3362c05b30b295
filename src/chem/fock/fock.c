/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fock/fock.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chem/integral/eri_ref.h"

typedef struct {
    int             i, j;
    double          bound; /* sqrt of the largest (ij|ij) */
    fm_hermite_pair h;
} pair;

struct fm_fock {
    const fm_basis *b;
    fm_comm        *comm;
    int             n_thread;
    int             n_pair;
    pair           *pair;
    size_t          scratch;
    fm_fock_stats   last;
};

static double bound_of(const fm_hermite_pair *h, double *out, double *scratch)
{
    double top = 0;
    fm_eri_ref(out, h, h, scratch);
    for (int k = 0; k < h->n_product; k++) top = fmax(top, out[k * h->n_product + k]);
    return sqrt(top);
}

static fm_status make_pair(fm_fock *f, pair *p)
{
    FM_TRY(fm_hermite_pair_init(&p->h, &f->b->shell[p->i], &f->b->shell[p->j]));
    double *work =
        malloc((fm_eri_ref_scratch(&p->h, &p->h) + (size_t)p->h.n_product * p->h.n_product) *
               sizeof *work);
    if (!work) return fm_fail(FM_E_OOM, "no memory for a shell pair's bound");
    p->bound = bound_of(&p->h, work, work + (size_t)p->h.n_product * p->h.n_product);
    free(work);
    return FM_OK;
}

fm_status fm_fock_open(fm_fock **out, const fm_basis *b, const fm_fock_options *opt, fm_comm *comm)
{
    fm_fock *f = calloc(1, sizeof *f);
    if (!f) return fm_fail(FM_E_OOM, "no memory for the Fock build");
    *f      = (fm_fock){.b = b, .comm = comm, .n_thread = opt->n_thread > 0 ? opt->n_thread : 1};
    f->pair = calloc((size_t)b->n_shell * (size_t)(b->n_shell + 1) / 2, sizeof *f->pair);
    if (!f->pair) {
        fm_fock_close(f);
        return fm_fail(FM_E_OOM, "no memory for %d shell pairs", b->n_shell);
    }
    for (int i = 0; i < b->n_shell; i++)
        for (int j = 0; j <= i; j++) {
            pair *p = &f->pair[f->n_pair++];
            p->i    = i;
            p->j    = j;
        }
    fm_status rc = FM_OK;
#pragma omp parallel for schedule(dynamic, 8) num_threads(f->n_thread)
    for (int k = 0; k < f->n_pair; k++)
        if (make_pair(f, &f->pair[k]) != FM_OK) rc = FM_E_OOM;
    if (rc != FM_OK) {
        fm_fock_close(f);
        return fm_fail(rc, "no memory for shell pairs");
    }
    *out = f;
    return FM_OK;
}

void fm_fock_close(fm_fock *f)
{
    if (!f) return;
    for (int k = 0; k < f->n_pair; k++) fm_hermite_pair_fini(&f->pair[k].h);
    free(f->pair);
    free(f);
}

static double largest(const fm_fock *f, const double *D, int i, int j)
{
    const fm_shell *a = &f->b->shell[i], *b = &f->b->shell[j];
    double          top = 0;
    for (int s = 0; s < fm_shell_functions(a); s++)
        for (int t = 0; t < fm_shell_functions(b); t++)
            top = fmax(top, fabs(D[(size_t)(a->first + s) * f->b->n_function + b->first + t]));
    return top;
}

static void digest(const fm_fock *f, const double *D, double *J, double *K, const pair *p,
                   const pair *q, const double *eri)
{
    const fm_shell *sh = f->b->shell, *a = &sh[p->i], *b = &sh[p->j], *c = &sh[q->i],
                   *d = &sh[q->j];
    const int    n    = f->b->n_function;
    const double same = (p->i == p->j ? 0.5 : 1) * (q->i == q->j ? 0.5 : 1) * (p == q ? 0.5 : 1);
    for (int w = a->first; w < a->first + fm_shell_functions(a); w++)
        for (int x = b->first; x < b->first + fm_shell_functions(b); x++)
            for (int y = c->first; y < c->first + fm_shell_functions(c); y++)
                for (int z = d->first; z < d->first + fm_shell_functions(d); z++) {
                    const double v = same * *eri++;
                    J[w * n + x] += 2 * v * D[y * n + z];
                    J[y * n + z] += 2 * v * D[w * n + x];
                    if (!K) continue;
                    K[w * n + y] += v * D[x * n + z];
                    K[w * n + z] += v * D[x * n + y];
                    K[x * n + y] += v * D[w * n + z];
                    K[x * n + z] += v * D[w * n + y];
                }
}

static double weight(const double *Dmax, int n, const pair *p, const pair *q)
{
    double w = fmax(4 * Dmax[p->i * n + p->j], 4 * Dmax[q->i * n + q->j]);
    w        = fmax(w, fmax(Dmax[p->i * n + q->i], Dmax[p->i * n + q->j]));
    return fmax(w, fmax(Dmax[p->j * n + q->i], Dmax[p->j * n + q->j]));
}

static void symmetrise(double *M, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) M[i * n + j] = M[j * n + i] = M[i * n + j] + M[j * n + i];
}

fm_status fm_fock_build(fm_fock *f, int n_density, const double *const *D, double *const *J,
                        double *const *K, double tol)
{
    const int    n = f->b->n_function, ns = f->b->n_shell;
    const size_t nn    = (size_t)n * n;
    long long    count = 0;
    double      *Dmax  = calloc((size_t)ns * ns, sizeof *Dmax);
    for (int i = 0; i < ns; i++)
        for (int j = 0; j < ns; j++)
            for (int d = 0; d < n_density; d++)
                Dmax[i * ns + j] = fmax(Dmax[i * ns + j], largest(f, D[d], i, j));
    for (int d = 0; d < n_density; d++) {
        memset(J[d], 0, nn * sizeof(double));
        if (K) memset(K[d], 0, nn * sizeof(double));
    }
#pragma omp parallel num_threads(f->n_thread) reduction(+ : count)
    {
        double *Jt   = calloc(nn * n_density, sizeof *Jt),
               *Kt   = K ? calloc(nn * n_density, sizeof *Kt) : NULL;
        double *work = malloc(2000000 * sizeof *work), *eri = malloc(100000 * sizeof *eri);
#pragma omp for schedule(dynamic, 1)
        for (int k = f->n_pair - 1; k >= 0; k--)
            for (int m = 0; m <= k; m++) {
                const pair *p = &f->pair[k], *q = &f->pair[m];
                if (p->bound * q->bound * weight(Dmax, ns, p, q) < tol) continue;
                fm_eri_ref(eri, &p->h, &q->h, work);
                count++;
                for (int d = 0; d < n_density; d++)
                    digest(f, D[d], Jt + d * nn, Kt ? Kt + d * nn : NULL, p, q, eri);
            }
#pragma omp critical
        for (int d = 0; d < n_density; d++)
            for (size_t x = 0; x < nn; x++) {
                J[d][x] += Jt[d * nn + x];
                if (K) K[d][x] += Kt[d * nn + x];
            }
        free(Jt);
        free(Kt);
        free(work);
        free(eri);
    }
    for (int d = 0; d < n_density; d++) {
        symmetrise(J[d], n);
        if (K) symmetrise(K[d], n);
    }
    free(Dmax);
    f->last.n_quartet = count;
    return FM_OK;
}

fm_fock_stats fm_fock_last(const fm_fock *f) { return f->last; }
