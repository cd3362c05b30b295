/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fock/tasks.h"

#include <math.h>
#include <stdlib.h>

/* Tasks of a build: enough for any number of threads, few enough for a counter over TCP. */
enum { N_TASK = 4096 };

/* Multiply-adds of a quartet, roughly: transforms, digestion, a fixed part per primitive. */
static double quartet_cost(const fm_pair_class *b, const fm_pair_class *c)
{
    const double ab    = fm_class_products(b) * fm_class_combos(b),
                 cd    = fm_class_products(c) * fm_class_combos(c);
    const double prims = b->mean_prim * c->mean_prim;
    const double half  = ab * b->n_hermite * c->n_hermite * 0.4,
                 whole = ab * cd * c->n_hermite * 0.4;
    return 100 + 6 * ab * cd + c->mean_prim * whole + prims * (100 + half);
}

static double bra_cost(const fm_screen *s, int bra)
{
    const fm_pair_list *l      = s->list;
    const int           own    = l->of[bra];
    double              weight = s->D_most, cost = 1;
    if (s->has_K) weight = fmax(weight, fmax(s->D_top[l->shell_a[bra]], s->D_top[l->shell_b[bra]]));
    for (int c = 0; c < l->n_class; c++)
        if (l->is_ket[own * l->n_class + c])
            cost +=
                fm_screen_at_most(s, bra, c, weight) * quartet_cost(&l->class[own], &l -> class[c]);
    return cost;
}

static int by_cost(const void *a, const void *b)
{
    const fm_task *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
    return x->first - y->first;
}

fm_status fm_tasks_init(fm_tasks *t, const fm_screen *s)
{
    const fm_pair_list *l    = s->list;
    double             *cost = malloc(((size_t)l->n_pair + 1) * sizeof *cost), all = 0;
    fm_tasks            x = {malloc(((size_t)l->n_pair + 1) * sizeof *x.task), 0};
    if (!cost || !x.task) {
        free(cost);
        free(x.task);
        return fm_fail(FM_E_OOM, "no memory for the tasks of a Fock build");
    }
    for (int k = 0; k < l->n_pair; k++) all += cost[k] = bra_cost(s, k);
    for (int k = 0; k < l->n_pair; k++) {
        fm_task *last = x.n ? &x.task[x.n - 1] : NULL;
        if (!last || last->cost + cost[k] > all / N_TASK || l->of[last->first] != l->of[k])
            x.task[x.n++] = (fm_task){k, k + 1, cost[k]};
        else {
            last->end = k + 1;
            last->cost += cost[k];
        }
    }
    qsort(x.task, (size_t)x.n, sizeof *x.task, by_cost);
    free(cost);
    *t = x;
    return FM_OK;
}

void fm_tasks_fini(fm_tasks *t)
{
    free(t->task);
    *t = (fm_tasks){0};
}
