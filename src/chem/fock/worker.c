/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fock/worker.h"

#include <stdlib.h>
#include <string.h>

const fm_digest_kernel *fm_digest_pick(fm_isa isa)
{
    if (isa >= FM_ISA_AVX512) return &fm__digest_avx512;
    return isa == FM_ISA_AVX2 ? &fm__digest_avx2 : &fm__digest_ref;
}

static int largest_class(const fm_pair_list *l)
{
    int n = 1;
    for (int c = 0; c < l->n_class; c++)
        if (l->class[c].n_pair > n) n = l->class[c].n_pair;
    return n;
}

fm_status fm_worker_init(fm_worker *w, const fm_pair_list *list, const fm_basis *b, fm_keep *keep,
                         fm_isa isa)
{
    *w = (fm_worker){.eri = fm_eri_kernel_pick(isa), .digest = fm_digest_pick(isa), .keep = keep};
    w->row   = calloc((size_t)b->n_shell + 1, sizeof *w->row);
    w->kets  = malloc((size_t)(largest_class(list) + FM_ERI_LANES) * 2 * sizeof *w->kets);
    w->fixed = w->kets + largest_class(list) + FM_ERI_LANES;
    for (int d = 0; d < FM_MAX_DENSITY; d++) w->sum[d].n = b->n_function;
    if (!w->row || !w->kets) return fm_fail(FM_E_OOM, "no memory for a thread of the Fock build");
    return fm_eri_work_init(&w->work, list);
}

static void sum_free(fm_digest *g)
{
    free(g->J_product);
    free(g->K);
    free(g->D_a);
    *g = (fm_digest){.n = g->n};
}

void fm_worker_fini(fm_worker *w)
{
    for (int d = 0; d < FM_MAX_DENSITY; d++) sum_free(&w->sum[d]);
    fm_eri_work_fini(&w->work);
    free(w->row);
    free(w->kets);
    *w = (fm_worker){0};
}

/* Most functions of a shell, products of a pair. */
static int widest(const fm_pair_list *l)
{
    int n = 1;
    for (int c = 0; c < l->n_class; c++) {
        const fm_pair_class *k = &l->class[c];
        if (k->n_contr_a * k->n_a > n) n = k->n_contr_a * k->n_a;
        if (k->n_contr_b * k->n_b > n) n = k->n_contr_b * k->n_b;
    }
    return n;
}

static fm_status sum_make(fm_digest *g, const fm_pair_list *l)
{
    if (g->J_product) return FM_OK;
    const size_t n = (size_t)g->n, wide = (size_t)widest(l), row = (n * wide + 7) / 8 * 8;
    g->J_product = malloc((size_t)(l->n_product + 1) * sizeof *g->J_product);
    g->K         = malloc(n * n * sizeof *g->K);
    g->D_a       = aligned_alloc(64, (4 * row + wide * wide * FM_ERI_LANES) * sizeof *g->D_a);
    if (!g->J_product || !g->K || !g->D_a)
        return fm_fail(FM_E_OOM, "no memory for the sums of a thread of the Fock build");
    g->D_b   = g->D_a + row;
    g->K_a   = g->D_b + row;
    g->K_b   = g->K_a + row;
    g->J_bra = g->K_b + row;
    return FM_OK;
}

fm_status fm_worker_begin(fm_worker *w, int n_density, int has_K)
{
    const fm_pair_list *l = w->work.list;
    w->n_density          = n_density;
    w->n_quartet          = 0;
    w->n_cached           = 0;
    for (int d = 0; d < n_density; d++) {
        fm_digest *g = &w->sum[d];
        FM_TRY(sum_make(g, l));
        g->has_K = has_K;
        memset(g->J_product, 0, (size_t)l->n_product * sizeof *g->J_product);
        if (has_K) memset(g->K, 0, (size_t)g->n * (size_t)g->n * sizeof *g->K);
    }
    return FM_OK;
}

static void digest_all(fm_worker *w, int class, const int32_t *kets)
{
    for (int d = 0; d < w->n_density; d++) w->digest->batch(&w->sum[d], &w->work, class, kets);
}

/* One batch of kets[from ..], of n; w->kets has a vector's room after its end. */
static void compute(fm_worker *w, int class, const int32_t *kets, int from, int n)
{
    double factor[FM_ERI_LANES];
    for (int lane = 0; lane < w->eri->lanes; lane++)
        factor[lane] = from + lane >= n ? 0 : kets[from + lane] == w->work.bra ? 0.5 : 1;
    w->eri->batch(&w->work, class, kets + from, factor, FM_ERI_ALL_PRIMITIVES);
}

static void pad(int32_t *kets, int n, int lanes)
{
    for (int k = n; k < n + lanes; k++) kets[k] = kets[n - 1];
}

static void run_kets(fm_worker *w, int class, int32_t *kets, int n)
{
    w->work.cut = w->cut;
    pad(kets, n, w->eri->lanes);
    for (int k = 0; k < n; k += w->eri->lanes) {
        compute(w, class, kets, k, n);
        digest_all(w, class, kets + k);
    }
    w->n_quartet += n;
}

static size_t batch_doubles(const fm_worker *w, int class)
{
    const fm_pair_list  *l = w->work.list;
    const fm_pair_class *b = &l->class[l->of[w->work.bra]], *c = &l->class[class];
    return (size_t)(fm_class_products(b) * fm_class_combos(b)) *
           (size_t)(fm_class_products(c) * fm_class_combos(c)) * (size_t)w->eri->lanes;
}

/* Every fixed batch of a bra into the cache, while there is room. */
static double *keep_batches(fm_worker *w, int class, int32_t *kets, int n)
{
    const size_t one   = batch_doubles(w, class);
    const int    lanes = w->eri->lanes, n_batch = (n + lanes - 1) / lanes;
    double      *room = fm_keep_room(w->keep, w->work.bra, class, one * (size_t)n_batch);
    for (int k = 0; room && k < n_batch; k++) {
        compute(w, class, kets, k * lanes, n);
        memcpy(room + (size_t)k * one, w->work.out, one * sizeof *room);
    }
    return room;
}

/* A fixed batch is digested as a whole if one of its kets survives; live[n_live] rises. */
static void run_fixed(fm_worker *w, int class, const int32_t *live, int n_live, int n)
{
    const int     first = w->work.list->class[class].first, lanes = w->eri->lanes;
    const size_t  one = batch_doubles(w, class);
    double       *own = w->work.out, *kept = fm_keep_find(w->keep, w->work.bra, class);
    const double *before = kept;
    w->work.cut          = w->keep_cut;
    for (int k = 0; k < n; k++) w->fixed[k] = first + k;
    pad(w->fixed, n, lanes);
    if (!kept) kept = keep_batches(w, class, w->fixed, n);
    for (int k = 0, x = 0; x < n_live; k += lanes) {
        const int hits = x;
        while (x < n_live && live[x] < first + k + lanes) x++;
        if (x == hits) continue;
        if (kept)
            w->work.out = kept + (size_t)(k / lanes) * one;
        else
            compute(w, class, w->fixed, k, n);
        digest_all(w, class, w->fixed + k);
        w->work.out = own;
    }
    w->n_quartet += n_live;
    if (before) w->n_cached += n_live;
}

/* The kets that survive: those in fixed batches, then the others. */
static void run_class(fm_worker *w, int class, int n)
{
    const int fixed = fm_keep_fixed(w->keep, w->work.bra, class);
    const int end   = w->work.list->class[class].first + fixed;
    int       m     = 0;
    while (m < n && w->kets[m] < end) m++;
    if (m > 0) run_fixed(w, class, w->kets, m, fixed);
    if (m < n) run_kets(w, class, w->kets + m, n - m);
}

void fm_worker_bra(fm_worker *w, const fm_screen *s, int bra, const double *const *D)
{
    const fm_pair_list *l     = s->list;
    const double        top   = fm_screen_row(s, w->row, bra);
    int                 begun = 0;
    for (int class = l->of[bra]; class >= 0; class --) {
        const int n = fm_screen_kets(s, w->kets, bra, class, w->row, top);
        if (n == 0) continue;
        if (!begun) {
            w->eri->begin_bra(&w->work, bra, FM_ERI_ALL_PRIMITIVES);
            for (int d = 0; d < w->n_density; d++) w->digest->begin_bra(&w->sum[d], l, bra, D[d]);
            begun = 1;
        }
        run_class(w, class, n);
    }
    for (int d = 0; begun && d < w->n_density; d++) w->digest->end_bra(&w->sum[d], l, bra);
}
