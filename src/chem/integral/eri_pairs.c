/* SPDX-License-Identifier: Apache-2.0 */
/* Made in two passes: every pair with every primitive worth keeping, in order of class;
 * then, with bounds known, the same sorted and cut. */
#include "chem/integral/eri_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/integral/eri_classes.h"
#include "chem/integral/eri_kernel.h"

/* Primitives whose factor is below this part of the shell's largest are never looked at. */
static const double DEAD = 1e-20;

typedef struct {
    int i, j; /* shells, the one of higher l first */
    int class;
    int    from; /* number in the raw list */
    double bound;
} draft;

static void list_free(fm_pair_list *l)
{
    for (int k = 0; k < l->n_class; k++) fm_hermite_rows_fini(&l->class[k].rows);
    free(l->class);
    free(l->of);
    free(l->prim);
    free(l->numbers);
    free(l->is_ket);
    *l = (fm_pair_list){0};
}

void fm_pairs_fini(fm_pair_list *list) { list_free(list); }

/* All arrays by pair in one piece each for integers and doubles. */
static fm_status list_arrays(fm_pair_list *l, int n_pair, size_t n_prim, size_t prim_doubles)
{
    const size_t n = (size_t)(n_pair ? n_pair : 1);
    int32_t     *x = calloc(9 * n, sizeof *x);
    l->of          = x;
    l->numbers     = calloc(n + n_prim + 1, sizeof *l->numbers);
    l->prim        = calloc(prim_doubles + 1, sizeof *l->prim);
    if (!x || !l->numbers || !l->prim)
        return fm_fail(FM_E_OOM, "no memory for %d shell pairs", n_pair);
    l->shell_a    = x + n;
    l->shell_b    = x + 2 * n;
    l->function_a = x + 3 * n;
    l->function_b = x + 4 * n;
    l->product    = x + 5 * n;
    l->prim_at    = x + 6 * n;
    l->n_prim     = x + 7 * n;
    l->mag_at     = x + 8 * n;
    l->bound      = l->numbers;
    l->mag        = l->numbers + n;
    l->n_pair     = n_pair;
    return FM_OK;
}

static int is_first(const fm_shell *a, const fm_shell *b)
{
    return a->l != b->l ? a->l > b->l : a->n_contr >= b->n_contr;
}

static int same_class(const fm_pair_class *c, const fm_shell *a, const fm_shell *b)
{
    return c->l_a == a->l && c->l_b == b->l && c->n_contr_a == a->n_contr &&
           c->n_contr_b == b->n_contr && (a->l < 2 || c->is_pure == a->is_pure) &&
           c->most_prim == a->n_prim * b->n_prim;
}

static fm_status class_of(fm_pair_list *l, const fm_shell *a, const fm_shell *b, int *out)
{
    for (*out = 0; *out < l->n_class; ++*out)
        if (same_class(&l->class[*out], a, b)) return FM_OK;
    fm_pair_class *more = realloc(l->class, (size_t)(l->n_class + 1) * sizeof *more);
    if (!more) return fm_fail(FM_E_OOM, "no memory for classes of shell pairs");
    l->class         = more;
    fm_pair_class *c = &l->class[l->n_class];
    *c               = (fm_pair_class){.l_a = a->l, .l_b = b->l, .is_pure = a->l < 2 || a->is_pure};
    c->n_contr_a     = a->n_contr;
    c->n_contr_b     = b->n_contr;
    c->n_a           = fm_components(a->l, a->is_pure);
    c->n_b           = fm_components(b->l, b->is_pure);
    c->n_hermite     = fm_hermites(a->l + b->l);
    c->most_prim     = a->n_prim * b->n_prim;
    if (!fm_pair_is_written(a->l, b->l, c->is_pure)) {
        FM_TRY(fm_hermite_rows_init(&c->rows, a->l, b->l, c->is_pure));
        c->n_stored = c->rows.n;
    }
    c->prim_step = FM_PRIM_FACTOR + fm_class_combos(c) + c->n_stored;
    l->n_class++;
    return FM_OK;
}

/* Light classes first: by angular momentum, then by contraction. */
static double class_weight(const fm_pair_class *c)
{
    return (c->l_a + c->l_b) * 1e9 + c->n_a * c->n_b * 1e6 + fm_class_combos(c) * 1e3 +
           c->most_prim;
}

static int by_weight(const void *a, const void *b)
{
    const double x = class_weight(a), y = class_weight(b);
    return (x > y) - (x < y);
}

static int by_class(const void *a, const void *b)
{
    const draft *x = a, *y = b;
    if (x->class != y->class) return x->class - y->class;
    if (x->bound != y->bound) return x->bound < y->bound ? 1 : -1;
    return x->i != y->i ? x->i - y->i : x->j - y->j;
}

static double largest_coef(const fm_shell *s, int prim)
{
    double top = 0;
    for (int c = 0; c < s->n_contr; c++) top = fmax(top, fabs(s->coef[c * s->n_prim + prim]));
    return top;
}

static int is_alive(const fm_shell *a, int p, const fm_shell *b, int q)
{
    const double x = a->exponent[p], y = b->exponent[q], sum = x + y;
    double       d2 = 0;
    for (int k = 0; k < 3; k++) d2 += (a->xyz[k] - b->xyz[k]) * (a->xyz[k] - b->xyz[k]);
    const double size = largest_coef(a, p) * largest_coef(b, q) * exp(-x * y / sum * d2);
    return size / sum > DEAD;
}

static int alive(const fm_shell *a, const fm_shell *b)
{
    int n = 0;
    for (int p = 0; p < a->n_prim; p++)
        for (int q = 0; q < b->n_prim; q++) n += is_alive(a, p, b, q);
    return n;
}

static void write_record(double *r, const fm_pair_class *c, const fm_shell *a, int p,
                         const fm_shell *b, int q)
{
    fm_gauss_pair g;
    fm_gauss_product(&g, a->xyz, a->exponent[p], c->n_stored ? a->l : 0, b->xyz, b->exponent[q],
                     c->n_stored ? b->l : 0);
    const double f = g.pre * sqrt(2) * pow(acos(-1), 1.25) / g.p * (a == b ? 0.5 : 1);
    r[FM_PRIM_P]   = g.p;
    r[FM_PRIM_H]   = 0.5 / g.p;
    for (int x = 0; x < 3; x++) {
        r[FM_PRIM_CENTRE + x] = g.P[x];
        r[FM_PRIM_PA + x]     = g.P[x] - a->xyz[x];
        r[FM_PRIM_PB + x]     = g.P[x] - b->xyz[x];
    }
    for (int s = 0; s < a->n_contr; s++)
        for (int t = 0; t < b->n_contr; t++)
            r[FM_PRIM_FACTOR + s * b->n_contr + t] =
                f * a->coef[s * a->n_prim + p] * b->coef[t * b->n_prim + q];
    if (c->n_stored) fm_hermite_rows_fill(&c->rows, r + FM_PRIM_FACTOR + fm_class_combos(c), &g);
}

static void place(fm_pair_list *l, int at, const fm_basis *b, const draft *d)
{
    l->of[at]         = d->class;
    l->shell_a[at]    = d->i;
    l->shell_b[at]    = d->j;
    l->function_a[at] = b->shell[d->i].first;
    l->function_b[at] = b->shell[d->j].first;
}

/* Runs of classes, products, records. */
static void number(fm_pair_list *l)
{
    size_t prim = 0, mag = 0;
    l->n_product = 0;
    for (int k = 0; k < l->n_class; k++) l->class[k].n_pair = 0;
    for (int at = 0; at < l->n_pair; at++) {
        fm_pair_class *c = &l->class[l->of[at]];
        if (c->n_pair++ == 0) c->first = at;
        l->product[at] = l->n_product;
        l->prim_at[at] = (int32_t)prim;
        l->mag_at[at]  = (int32_t)mag;
        l->n_product += fm_class_combos(c) * fm_class_products(c);
        prim += (size_t)l->n_prim[at] * (size_t)c->prim_step;
        mag += (size_t)l->n_prim[at];
    }
}

static fm_status raw_list(fm_pair_list *l, const fm_basis *b, draft *d, int n)
{
    size_t prims = 0, doubles = 0;
    for (int k = 0; k < n; k++) {
        const size_t m = (size_t)alive(&b->shell[d[k].i], &b->shell[d[k].j]);
        prims += m;
        doubles += m * (size_t)l->class[d[k].class].prim_step;
    }
    if (doubles >= INT32_MAX) return fm_fail(FM_E_NOSUP, "too many shell pairs: %d", n);
    FM_TRY(list_arrays(l, n, prims, doubles));
    for (int k = 0; k < n; k++) {
        place(l, k, b, &d[k]);
        l->n_prim[k] = alive(&b->shell[d[k].i], &b->shell[d[k].j]);
    }
    number(l);
#pragma omp parallel for schedule(dynamic, 16)
    for (int k = 0; k < n; k++) {
        const fm_shell      *s = &b->shell[d[k].i], *t = &b->shell[d[k].j];
        const fm_pair_class *c = &l->class[d[k].class];
        double              *r = l->prim + l->prim_at[k];
        for (int p = 0; p < s->n_prim; p++)
            for (int q = 0; q < t->n_prim; q++)
                if (is_alive(s, p, t, q)) {
                    write_record(r, c, s, p, t, q);
                    r += c->prim_step;
                }
    }
    return FM_OK;
}

/* sqrt of the largest (ij|ij), of the whole pair or one pair of primitives. */
static double diagonal(const fm_eri_kernel *kernel, fm_eri_work *w, int pair, int prim)
{
    const fm_pair_class *c      = &w->list->class[w->list->of[pair]];
    const int            combos = fm_class_combos(c), n = fm_class_products(c);
    int32_t              ket[FM_ERI_LANES];
    double               factor[FM_ERI_LANES] = {1}, top = 0;
    for (int k = 0; k < FM_ERI_LANES; k++) ket[k] = pair;
    kernel->begin_bra(w, pair, prim);
    kernel->batch(w, w->list->of[pair], ket, factor, prim);
    for (int m = 0; m < combos; m++)
        for (int k = 0; k < n; k++)
            top = fmax(
                top, w->out[(size_t)(((m * combos + m) * n + k) * n + k) * (size_t)kernel->lanes]);
    return sqrt(top) * (w->list->shell_a[pair] == w->list->shell_b[pair] ? 2 : 1);
}

static fm_status find_bounds(fm_pair_list *l, const fm_eri_kernel *kernel)
{
    int failed = 0;
#pragma omp parallel
    {
        fm_eri_work w  = {0};
        const int   ok = fm_eri_work_init(&w, l) == FM_OK;
        if (!ok) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp for schedule(dynamic, 64)
        for (int k = 0; k < l->n_pair; k++) {
            if (!ok || l->n_prim[k] == 0) continue;
            l->bound[k] = diagonal(kernel, &w, k, FM_ERI_ALL_PRIMITIVES);
            for (int p = 0; p < l->n_prim[k]; p++)
                l->mag[l->mag_at[k] + p] =
                    l->n_prim[k] == 1 ? l->bound[k] : diagonal(kernel, &w, k, p);
        }
        fm_eri_work_fini(&w);
    }
    return failed ? fm_fail(FM_E_OOM, "no memory for the bounds of shell pairs") : FM_OK;
}

typedef struct {
    int    prim;
    double mag;
} ranked;

static int by_mag(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->mag != y->mag) return x->mag < y->mag ? 1 : -1;
    return x->prim - y->prim;
}

/* Primitives of a raw pair worth keeping, strongest first, at least one; *rank has room for all. */
static int rank_primitives(ranked *rank, const fm_pair_list *raw, int pair, double least)
{
    const int all = raw->n_prim[pair];
    int       n   = 1;
    for (int p = 0; p < all; p++) rank[p] = (ranked){p, raw->mag[raw->mag_at[pair] + p]};
    qsort(rank, (size_t)all, sizeof *rank, by_mag);
    while (n < all && rank[n].mag >= least) n++;
    return n;
}

static fm_status final_list(fm_pair_list *l, const fm_pair_list *raw, const fm_basis *b,
                            const draft *d, int n, double least)
{
    size_t  prims = 0, doubles = 0;
    int     most = 1;
    ranked *rank;
    for (int k = 0; k < raw->n_pair; k++)
        if (raw->n_prim[k] > most) most = raw->n_prim[k];
    if (!(rank = malloc((size_t)most * sizeof *rank)))
        return fm_fail(FM_E_OOM, "no memory for primitives");
    for (int k = 0; k < n; k++) {
        const size_t m = (size_t)rank_primitives(rank, raw, d[k].from, least);
        prims += m;
        doubles += m * (size_t)l->class[d[k].class].prim_step;
    }
    const fm_status rc = list_arrays(l, n, prims, doubles);
    for (int k = 0; k < n && rc == FM_OK; k++) {
        place(l, k, b, &d[k]);
        l->bound[k]  = d[k].bound;
        l->n_prim[k] = rank_primitives(rank, raw, d[k].from, least);
    }
    if (rc == FM_OK) number(l);
    for (int k = 0; k < n && rc == FM_OK; k++) {
        const size_t step = (size_t)l->class[d[k].class].prim_step;
        rank_primitives(rank, raw, d[k].from, least);
        for (int p = 0; p < l->n_prim[k]; p++) {
            l->mag[l->mag_at[k] + p] = rank[p].mag;
            memcpy(l->prim + l->prim_at[k] + (size_t)p * step,
                   raw->prim + raw->prim_at[d[k].from] + (size_t)rank[p].prim * step,
                   step * sizeof *l->prim);
            l->prim[(size_t)l->prim_at[k] + (size_t)p * step + FM_PRIM_MAG] = rank[p].mag;
        }
    }
    free(rank);
    return rc;
}

/* Entries of a class' Hermite coefficients, roughly. */
static double entries(const fm_pair_class *c) { return 0.5 * fm_class_products(c) * c->n_hermite; }

/* 100 for a Boys function, 60 to gather kets, for each coefficient of a ket 5 to compute or 14
 * to gather. */
double fm_batch_cost(const fm_pair_class *b, const fm_pair_class *c)
{
    const int    l      = b->l_a + b->l_b + c->l_a + c->l_b;
    const double R      = 100 + (l + 1) * (l + 2) * (l + 3) * (l + 4) / 24.0;
    const double bra    = entries(b) * c->n_hermite * fm_class_combos(b);
    const double expand = entries(c) * (c->n_stored ? 14 : 5);
    const double ket    = entries(c) * fm_class_products(b) * fm_class_combos(b);
    return c->mean_prim * (60 + b->mean_prim * (R + bra) + fm_class_combos(c) * (expand + ket));
}

static fm_status choose_roles(fm_pair_list *l)
{
    const size_t n = (size_t)l->n_class;
    l->is_ket      = calloc(n * n + 1, 1);
    if (!l->is_ket) return fm_fail(FM_E_OOM, "no memory for classes of shell pairs");
    for (size_t k = 0; k < n; k++) {
        double prims = 0;
        for (int p = 0; p < l->class[k].n_pair; p++) prims += l->n_prim[l->class[k].first + p];
        l->class[k].mean_prim = l->class[k].n_pair ? prims / l->class[k].n_pair : 1;
    }
    for (size_t b = 0; b < n; b++)
        for (size_t c = 0; c <= b; c++) {
            const int as_is = fm_batch_cost(&l->class[b], &l -> class[c]) <=
                              fm_batch_cost(&l->class[c], &l -> class[b]);
            l->is_ket[as_is ? b * n + c : c * n + b] = 1;
        }
    return FM_OK;
}

static fm_status draft_pairs(fm_pair_list *l, const fm_basis *b, draft *d)
{
    int n = 0;
    for (int i = 0; i < b->n_shell; i++)
        for (int j = 0; j <= i; j++) {
            const int swap = !is_first(&b->shell[i], &b->shell[j]);
            d[n]           = (draft){.i = swap ? j : i, .j = swap ? i : j};
            FM_TRY(class_of(l, &b->shell[d[n].i], &b->shell[d[n].j], &d[n].class));
            n++;
        }
    qsort(l->class, (size_t)l->n_class, sizeof *l->class, by_weight);
    for (int k = 0; k < n; k++)
        FM_TRY(class_of(l, &b->shell[d[k].i], &b->shell[d[k].j], &d[k].class));
    qsort(d, (size_t)n, sizeof *d, by_class);
    return FM_OK;
}

/* Keeps those that can matter beside the strongest pair. */
static int cut_pairs(draft *d, int n, const fm_pair_list *raw, double tol, double *top)
{
    int kept = 0;
    *top     = 0;
    for (int k = 0; k < n; k++) *top = fmax(*top, raw->bound[k]);
    for (int k = 0; k < n; k++) {
        if (raw->bound[k] * *top < 1e-2 * tol) continue;
        d[kept]         = d[k];
        d[kept].from    = k;
        d[kept++].bound = raw->bound[k];
    }
    qsort(d, (size_t)kept, sizeof *d, by_class);
    return kept;
}

fm_status fm_pairs_init(fm_pair_list *list, const fm_basis *b, double tol,
                        const fm_eri_kernel *kernel)
{
    const int    n   = b->n_shell * (b->n_shell + 1) / 2;
    fm_pair_list raw = {0}, l = {0};
    fm_status    rc;
    draft       *d = malloc((size_t)(n ? n : 1) * sizeof *d);
    if (!d) return fm_fail(FM_E_OOM, "no memory for %d shell pairs", n);
    FM_GO(draft_pairs(&raw, b, d));
    FM_GO(raw_list(&raw, b, d, n));
    FM_GO(find_bounds(&raw, kernel));
    double    top;
    const int kept = cut_pairs(d, n, &raw, tol, &top);
    l.class        = raw.class; /* handed over */
    l.n_class      = raw.n_class;
    raw.class      = NULL;
    raw.n_class    = 0;
    FM_GO(final_list(&l, &raw, b, d, kept, top > 0 ? 1e-4 * tol / top : 0));
    FM_GO(choose_roles(&l));
    *list = l;
    l     = (fm_pair_list){0};
out:
    list_free(&raw);
    list_free(&l);
    free(d);
    return rc;
}
