/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/forest.h"

#include <math.h>
#include <stdlib.h>

enum { N_TREE = 48, LEAF = 2, DEPTH = 12, N_CUT = 8 };

/* x[param] <= cut goes left, otherwise right; choices without an order: x == cut
 * goes left.  Where the parameter does not exist: right. */
typedef struct {
    int    param; /* -1: a leaf */
    int    left, right;
    double cut;
    double mean;
} node;

typedef struct {
    node *node;
    int   n, cap;
} tree;

struct fm_forest {
    const fm_space *space;
    tree            tree[N_TREE];
};

typedef struct {
    const fm_study *study;
    const double   *loss;
    fm_mt           random;
} grower;

static int goes_left(const fm_space *s, const node *n, const fm_point *p)
{
    const fm_param *a = &s->param[n->param];
    const double    x = p->v[n->param];
    return a->kind == FM_PARAM_CHOICE && !a->ordered ? x == n->cut : x <= n->cut;
}

static int add_node(tree *t, double mean)
{
    if (t->n == t->cap) {
        t->cap      = t->cap ? 2 * t->cap : 32;
        node *grown = realloc(t->node, (size_t)t->cap * sizeof *grown);
        FM_BUG_UNLESS(grown != NULL);
        t->node = grown;
    }
    t->node[t->n] = (node){.param = -1, .mean = mean};
    return t->n++;
}

static double mean_of(const grower *g, const int *at, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += g->loss[at[i]];
    return n ? sum / n : 0;
}

/* Squared error that remains when the trials are divided so; INFINITY: one side is too small. */
static double error_after(const grower *g, const node *by, const int *at, int n)
{
    double sum[2] = {0}, square[2] = {0};
    int    count[2] = {0};
    for (int i = 0; i < n; i++) {
        const int side = goes_left(g->study->space, by, &g->study->trial[at[i]].at);
        sum[side] += g->loss[at[i]];
        square[side] += g->loss[at[i]] * g->loss[at[i]];
        count[side]++;
    }
    if (count[0] < LEAF || count[1] < LEAF) return INFINITY;
    return square[0] - sum[0] * sum[0] / count[0] + square[1] - sum[1] * sum[1] / count[1];
}

/* Cuts at values that occur, over half of the parameters. */
static int best_cut(grower *g, const int *at, int n, node *out)
{
    const fm_space *s    = g->study->space;
    double          best = INFINITY;
    for (int k = 0; k < s->n; k++) {
        if (s->n > 2 && fm_mt_double(&g->random) < 0.3) continue;
        for (int c = 0; c < N_CUT; c++) {
            const int i   = at[fm_mt_python_below(&g->random, (uint32_t)n)];
            node      try = {.param = k, .cut = g->study->trial[i].at.v[k]};
            if (isnan(try.cut)) continue;
            const double e = error_after(g, &try, at, n);
            if (e >= best) continue;
            best = e;
            *out = try;
        }
    }
    return isfinite(best);
}

static int divide(const grower *g, const node *by, int *at, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++)
        if (goes_left(g->study->space, by, &g->study->trial[at[i]].at)) {
            const int swap = at[left];
            at[left++]     = at[i];
            at[i]          = swap;
        }
    return left;
}

static int grow(grower *g, tree *t, int *at, int n, int depth)
{
    node      by;
    const int me = add_node(t, mean_of(g, at, n));
    if (depth == DEPTH || n < 2 * LEAF || !best_cut(g, at, n, &by)) return me;
    const int n_left = divide(g, &by, at, n);
    const int left   = grow(g, t, at, n_left, depth + 1);
    const int right  = grow(g, t, at + n_left, n - n_left, depth + 1);
    by.left          = left;
    by.right         = right;
    by.mean          = t->node[me].mean;
    t->node[me]      = by;
    return me;
}

static void grow_all(fm_forest *f, grower *g, const int *ended, int n, int *at)
{
    for (int k = 0; k < N_TREE; k++) {
        for (int i = 0; i < n; i++) at[i] = ended[fm_mt_python_below(&g->random, (uint32_t)n)];
        (void)grow(g, &f->tree[k], at, n, 0);
    }
}

fm_status fm_forest_create(fm_forest **out, const fm_study *s)
{
    fm_forest *f     = calloc(1, sizeof *f);
    double    *loss  = malloc((size_t)(s->n + 1) * sizeof *loss);
    int       *ended = malloc((size_t)(s->n + 1) * sizeof *ended);
    int       *at    = malloc((size_t)(s->n + 1) * sizeof *at);
    FM_BUG_UNLESS(f && loss && ended && at);
    grower g = {.study = s, .loss = loss};
    int    n = 0;
    for (int i = 0; i < s->n; i++)
        if (s->trial[i].state != FM_TRIAL_RUNNING) ended[n++] = i;
    fm_study_losses(s, loss);
    fm_mt_seed_python(&g.random, 1);
    f->space = s->space;
    if (n >= 4) grow_all(f, &g, ended, n, at);
    free(loss);
    free(ended);
    free(at);
    if (n < 4) {
        fm_forest_destroy(f);
        return fm_fail(FM_E_FULL, "too few trials for a model");
    }
    *out = f;
    return FM_OK;
}

void fm_forest_destroy(fm_forest *f)
{
    for (int k = 0; f && k < N_TREE; k++) free(f->tree[k].node);
    free(f);
}

double fm_forest_predict(const fm_forest *f, const fm_point *p)
{
    double sum = 0;
    for (int k = 0; k < N_TREE; k++) {
        const node *n = f->tree[k].node;
        while (n->param >= 0) n = &f->tree[k].node[goes_left(f->space, n, p) ? n->left : n->right];
        sum += n->mean;
    }
    return sum / N_TREE;
}
