/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fock/screen.h"

#include <math.h>
#include <stdlib.h>

static const double COULOMB_WEIGHT = 40;

static double block_top(const double *D, int n, const fm_shell *a, const fm_shell *b)
{
    double top = 0;
    for (int s = 0; s < fm_shell_functions(a); s++)
        for (int t = 0; t < fm_shell_functions(b); t++)
            top = fmax(top, fabs(D[(size_t)(a->first + s) * (size_t)n + (size_t)(b->first + t)]));
    return top;
}

static void fill(fm_screen *s, const fm_basis *b, int n_density, const double *const *D)
{
    const int n = s->n_shell;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double top = 0;
            for (int d = 0; d < n_density; d++)
                top = fmax(top, block_top(D[d], b->n_function, &b->shell[i], &b->shell[j]));
            s->D_shell[i * n + j] = top;
            s->D_top[i]           = fmax(s->D_top[i], top);
        }
    for (int k = 0; k < s->list->n_pair; k++) {
        s->D_pair[k] = COULOMB_WEIGHT * s->D_shell[s->list->shell_a[k] * n + s->list->shell_b[k]];
        s->D_most    = fmax(s->D_most, s->D_pair[k]);
    }
}

fm_status fm_screen_init(fm_screen *s, const fm_pair_list *list, const fm_basis *b, int n_density,
                         const double *const *D, int has_K, double tol)
{
    const size_t n = (size_t)b->n_shell;
    fm_screen    x = {.list = list, .n_shell = b->n_shell, .has_K = has_K, .tol = tol};
    x.D_shell      = calloc(n * n, sizeof *x.D_shell);
    x.D_top        = calloc(n, sizeof *x.D_top);
    x.D_pair       = calloc((size_t)list->n_pair + 1, sizeof *x.D_pair);
    if (!x.D_shell || !x.D_top || !x.D_pair) {
        fm_screen_fini(&x);
        return fm_fail(FM_E_OOM, "no memory for the bounds of a density");
    }
    fill(&x, b, n_density, D);
    *s = x;
    return FM_OK;
}

void fm_screen_fini(fm_screen *s)
{
    free(s->D_shell);
    free(s->D_top);
    free(s->D_pair);
    *s = (fm_screen){0};
}

double fm_screen_row(const fm_screen *s, double *row, int bra)
{
    const double *a   = s->D_shell + (size_t)s->list->shell_a[bra] * (size_t)s->n_shell;
    const double *b   = s->D_shell + (size_t)s->list->shell_b[bra] * (size_t)s->n_shell;
    double        top = 0;
    for (int k = 0; k < s->n_shell; k++) {
        row[k] = !s->has_K ? 0 : a[k] > b[k] ? a[k] : b[k];
        top    = row[k] > top ? row[k] : top;
    }
    return top;
}

/* Kets of a class that a bra may have: all of lighter classes, those up to itself of its own. */
static int last_ket(const fm_pair_list *l, int bra, int class)
{
    return l->of[bra] == class ? bra + 1 : l->class[class].first + l->class[class].n_pair;
}

static int count_above(const double *bound, int n, double least) /* bound falls */
{
    int low = 0, high = n;
    while (low < high) {
        const int mid = (low + high) / 2;
        if (bound[mid] >= least)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int fm_screen_at_most(const fm_screen *s, int bra, int class, double weight)
{
    const fm_pair_list *l     = s->list;
    const int           first = l->class[class].first;
    return count_above(l->bound + first, last_ket(l, bra, class) - first,
                       s->tol / (l->bound[bra] * weight));
}

int fm_screen_kets(const fm_screen *s, int32_t *kets, int bra, int class, const double *row,
                   double row_top)
{
    const fm_pair_list *l   = s->list;
    const double        own = s->D_pair[bra], weight = fmax(s->D_most, row_top),
                 least = s->tol / l->bound[bra];
    const int first = l->class[class].first, n = fm_screen_at_most(s, bra, class, weight);
    int       kept = 0;
    for (int k = first; k < first + n; k++) {
        const double x = row[l->shell_a[k]], y = row[l->shell_b[k]], z = s->D_pair[k];
        double       w = x > y ? x : y;
        w              = w > z ? w : z;
        w              = w > own ? w : own;
        kets[kept]     = k;
        kept += l->bound[k] * w >= least;
    }
    return kept;
}
