/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fock/keep.h"

#include <stdlib.h>

/* Multiply-adds that a byte must save: reading it from memory takes as long as about one. */
static const double LEAST_SAVED = 1.5;

typedef struct {
    int    at; /* bra's class * n_class + ket's */
    double saved, bytes;
} candidate;

static size_t batch_doubles(const fm_pair_class *b, const fm_pair_class *c)
{
    return (size_t)(fm_class_products(b) * fm_class_combos(b)) *
           (size_t)(fm_class_products(c) * fm_class_combos(c)) * FM_ERI_LANES;
}

static double saved_per_byte(const fm_pair_class *b, const fm_pair_class *c)
{
    return fm_batch_cost(b, c) / (double)(batch_doubles(b, c) * sizeof(double));
}

/* Kets of a class that a bra may have. */
static int kets_of(const fm_pair_list *l, int bra, int class)
{
    return l->of[bra] == class ? bra + 1 - l->class[class].first : l->class[class].n_pair;
}

int fm_keep_fixed(const fm_keep *k, int bra, int class)
{
    const fm_pair_list *l = k->list;
    if (!k->is_kept || !k->is_kept[l->of[bra] * l->n_class + class]) return 0;
    const double *bound = l->bound + l->class[class].first, least = k->tol / l->bound[bra];
    int           low = 0, high = kets_of(l, bra, class);
    while (low < high) {
        const int mid = (low + high) / 2;
        if (bound[mid] >= least)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int by_saving(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->saved != y->saved) return x->saved < y->saved ? 1 : -1;
    return x->at - y->at;
}

/* Bytes of all batches of a pair of classes. */
static double bytes_of(const fm_keep *k, int b, int c)
{
    const fm_pair_class *bra = &k->list->class[b];
    double               n   = 0;
    for (int p = bra->first; p < bra->first + bra->n_pair; p++)
        n += (fm_keep_fixed(k, p, c) + FM_ERI_LANES - 1) / FM_ERI_LANES;
    return n * (double)(batch_doubles(bra, &k->list->class[c]) * sizeof(double));
}

/* Marks with 1 what is cut into fixed batches, with 2 what memory goes to. */
static void choose(fm_keep *k, candidate *list, double bytes)
{
    const fm_pair_list *l = k->list;
    int                 n = 0;
    for (int b = 0; b < l->n_class; b++)
        for (int c = 0; c < l->n_class; c++) {
            const double saved = saved_per_byte(&l->class[b], &l -> class[c]);
            if (!l->is_ket[b * l->n_class + c] || saved < LEAST_SAVED) continue;
            k->is_kept[b * l->n_class + c] = 1;
            list[n++] = (candidate){b * l->n_class + c, saved, bytes_of(k, b, c)};
        }
    qsort(list, (size_t)n, sizeof *list, by_saving);
    for (int x = 0; x < n && bytes > 0; bytes -= list[x++].bytes) k->is_kept[list[x].at] = 2;
}

fm_status fm_keep_init(fm_keep *k, const fm_pair_list *list, size_t bytes, double tol)
{
    const size_t n = (size_t)list->n_class;
    k->list        = list;
    k->tol         = tol;
    atomic_init(&k->left, bytes);
    if (bytes == 0) return FM_OK;
    candidate *candidates = malloc((n * n + 1) * sizeof *candidates);
    k->is_kept            = calloc(n * n + 1, 1);
    k->batches            = calloc((size_t)list->n_pair * n + 1, sizeof *k->batches);
    if (!candidates || !k->is_kept || !k->batches) {
        free(candidates);
        return fm_fail(FM_E_OOM, "no memory for the cache of integrals");
    }
    choose(k, candidates, (double)bytes);
    free(candidates);
    return FM_OK;
}

void fm_keep_fini(fm_keep *k)
{
    for (size_t x = 0; k->batches && x < (size_t)k->list->n_pair * (size_t)k->list->n_class; x++)
        free(k->batches[x]);
    free(k->batches);
    free(k->is_kept);
    k->batches = NULL;
    k->is_kept = NULL;
}

double *fm_keep_room(fm_keep *k, int bra, int class, size_t doubles)
{
    const size_t bytes = (doubles * sizeof(double) + 63) / 64 * 64; /* as aligned_alloc wants it */
    size_t       left  = atomic_load(&k->left);
    if (k->is_kept[k->list->of[bra] * k->list->n_class + class] < 2) return NULL;
    do {
        if (left < bytes) return NULL;
    } while (!atomic_compare_exchange_weak(&k->left, &left, left - bytes));
    return k->batches[(size_t)bra * (size_t)k->list->n_class + (size_t) class] =
               aligned_alloc(64, bytes);
}
