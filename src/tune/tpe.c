/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tune/tpe.h"

#include <math.h>
#include <stdlib.h>

#include "base/ascending.h"

enum { MOST_GOOD = 25, N_DRAW = 24 };

/* One parameter's density: a kernel at every observation, and one that covers
 * the whole range with the weight of a single observation. */
typedef struct {
    double *at;    /* [n] ascending places in [0, 1]; choices without an order: indices */
    double *width; /* [n] */
    double *scale; /* [n] so that a kernel, cut off at 0 and 1, integrates to 1 */
    int     n;
} density;

typedef struct {
    const fm_study *study;
    int            *by_loss; /* [n] indices of trials, best first */
    int             n_good;
} division;

typedef struct {
    double loss;
    int    trial;
} ranked;

static int by_loss(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->loss != y->loss ? (x->loss > y->loss) - (x->loss < y->loss) : x->trial - y->trial;
}

static int n_good(int n)
{
    const int good = (int)ceil(0.2 * n);
    return good < 2 ? 2 : good > MOST_GOOD ? MOST_GOOD : good;
}

static fm_status divide(division *d, const fm_study *s)
{
    double *loss = malloc((size_t)s->n * sizeof *loss);
    ranked *list = malloc((size_t)s->n * sizeof *list);
    *d           = (division){s, malloc((size_t)s->n * sizeof *d->by_loss), n_good(s->n)};
    const int ok = loss && list && d->by_loss;
    if (ok) {
        fm_study_losses(s, loss);
        for (int i = 0; i < s->n; i++) list[i] = (ranked){loss[i], i};
        qsort(list, (size_t)s->n, sizeof *list, by_loss);
        for (int i = 0; i < s->n; i++) d->by_loss[i] = list[i].trial;
    }
    free(list);
    free(loss);
    return ok ? FM_OK : fm_fail(FM_E_OOM, "trials");
}

static int is_unordered(const fm_param *p) { return p->kind == FM_PARAM_CHOICE && !p->ordered; }

static double normal_below(double z) { return 0.5 * erfc(-z * M_SQRT1_2); }

/* A kernel is as wide as the larger gap to its neighbours, within limits. */
static void set_widths(density *d)
{
    const double least = 1.0 / (d->n + 1 < 100 ? d->n + 1 : 100);
    for (int i = 0; i < d->n; i++) {
        const double left  = d->at[i] - (i ? d->at[i - 1] : 0);
        const double right = (i + 1 < d->n ? d->at[i + 1] : 1) - d->at[i];
        const double gap   = left > right ? left : right;
        const double width = gap < least ? least : gap;
        const double inside =
            normal_below((1 - d->at[i]) / width) - normal_below(-d->at[i] / width);
        d->width[i] = width;
        d->scale[i] = 1 / (width * 2.5066282746310002 * (inside > 1e-12 ? inside : 1e-12));
    }
}

static fm_status fill(density *out, const division *d, int param, int from, int to)
{
    const fm_param *p = &d->study->space->param[param];
    out->at           = malloc((size_t)(to - from + 1) * sizeof(double));
    out->width        = malloc((size_t)(to - from + 1) * sizeof(double));
    out->scale        = malloc((size_t)(to - from + 1) * sizeof(double));
    if (!out->at || !out->width || !out->scale) return fm_fail(FM_E_OOM, "densities");
    for (int i = from; i < to; i++) {
        const double v = d->study->trial[d->by_loss[i]].at.v[param];
        if (!isnan(v)) out->at[out->n++] = is_unordered(p) ? v : fm_param_unit(p, v);
    }
    fm_sort_ascending(out->at, (size_t)out->n);
    set_widths(out);
    return FM_OK;
}

static double density_at(const density *d, const fm_param *p, double value)
{
    if (is_unordered(p)) {
        double count = 1.0 / p->n_choice;
        for (int i = 0; i < d->n; i++) count += d->at[i] == value;
        return count / (d->n + 1);
    }
    const double x   = fm_param_unit(p, value);
    double       sum = 1;
    for (int i = 0; i < d->n; i++) {
        const double z = (x - d->at[i]) / d->width[i];
        sum += d->scale[i] * exp(-0.5 * z * z);
    }
    return sum / (d->n + 1);
}

static void density_fini(density *d)
{
    free(d->at);
    free(d->width);
    free(d->scale);
}

/* Adds one parameter's share to the logarithms of both densities. */
static fm_status add_param(double *in_good, double *in_rest, const division *d, int param,
                           const fm_candidates *c)
{
    const fm_param *p    = &d->study->space->param[param];
    density         good = {0}, rest = {0};
    fm_status       rc = fill(&good, d, param, 0, d->n_good);
    if (rc == FM_OK) rc = fill(&rest, d, param, d->n_good, d->study->n);
    for (int i = 0; rc == FM_OK && i < c->n; i++) {
        const double v = c->point[i].v[param];
        if (isnan(v)) continue;
        in_good[i] += log(density_at(&good, p, v));
        in_rest[i] += log(density_at(&rest, p, v));
    }
    density_fini(&good);
    density_fini(&rest);
    return rc;
}

/* Candidates drawn from the density of the good (the largest of the logarithm plus
 * Gumbel noise) get the ratio as their score, all others nothing. */
static void score_drawn(double *score, double *in_good, const double *in_rest, int n, fm_mt *random)
{
    double *key = malloc((size_t)n * sizeof *key);
    FM_BUG_UNLESS(key != NULL);
    for (int i = 0; i < n; i++) {
        key[i]   = in_good[i] - log(-log(fm_mt_double(random) * (1 - 2e-12) + 1e-12));
        score[i] = -INFINITY;
    }
    for (int k = 0; k < N_DRAW && k < n; k++) {
        int best = 0;
        for (int i = 1; i < n; i++)
            if (key[i] > key[best]) best = i;
        key[best]   = -INFINITY;
        score[best] = in_good[best] - in_rest[best];
    }
    free(key);
}

fm_status fm_tpe_score(double *score, const fm_study *s, const fm_candidates *c, fm_mt *random)
{
    division  d       = {0};
    fm_status rc      = divide(&d, s);
    double   *in_good = calloc((size_t)c->n, sizeof *in_good);
    double   *in_rest = calloc((size_t)c->n, sizeof *in_rest);
    if (rc == FM_OK && (!in_good || !in_rest)) rc = fm_fail(FM_E_OOM, "candidates");
    for (int i = 0; rc == FM_OK && i < s->space->n; i++) rc = add_param(in_good, in_rest, &d, i, c);
    if (rc == FM_OK) score_drawn(score, in_good, in_rest, c->n, random);
    free(in_good);
    free(in_rest);
    free(d.by_loss);
    return rc;
}
