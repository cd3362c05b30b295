/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tune/gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascending.h"

enum { MOST_POINTS = 240, FIT_POINTS = 72 };

typedef struct {
    double length[FM_TUNE_MAX_PARAM];
    double noise; /* of the variance */
} shape;

typedef struct {
    const fm_space *space;
    double         *at; /* [n, space->n] places on the scales; NaN: does not exist */
    double         *y;  /* [n] mean 0 */
    int             n;
    shape           shape;
    double         *chol;   /* [n, n] lower triangle of K = L L^T */
    double         *weight; /* [n] K^-1 y */
    double          variance;
} process;

static double matern52(double r2)
{
    const double r = sqrt(5 * r2);
    return (1 + r + r * r / 3) * exp(-r);
}

static int is_unordered(const fm_param *p) { return p->kind == FM_PARAM_CHOICE && !p->ordered; }

/* So that distances are differences: a choice with an order has its first and last at 0 and 1. */
static void place(double *out, const fm_space *s, const fm_point *p)
{
    for (int i = 0; i < s->n; i++) {
        const fm_param *a = &s->param[i];
        const double    v = p->v[i];
        if (isnan(v) || is_unordered(a))
            out[i] = v;
        else if (a->kind == FM_PARAM_CHOICE)
            out[i] = a->n_choice > 1 ? v / (a->n_choice - 1) : 0;
        else
            out[i] = fm_param_unit(a, v);
    }
}

static double distance(const fm_param *p, double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) != isnan(b);
    return is_unordered(p) ? a != b : a - b;
}

static double covariance(const process *g, const double *a, const double *b)
{
    double r2 = 0;
    for (int i = 0; i < g->space->n; i++) {
        const double d = distance(&g->space->param[i], a[i], b[i]) / g->shape.length[i];
        r2 += d * d;
    }
    return matern52(r2);
}

/* Four partial sums, so that the additions of one do not wait for another's. */
static double dot(const double *a, const double *b, int n)
{
    double s[4] = {0};
    int    k    = 0;
    for (; k + 4 <= n; k += 4)
        for (int j = 0; j < 4; j++) s[j] += a[k + j] * b[k + j];
    for (; k < n; k++) s[0] += a[k] * b[k];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* L of a[n, n] in place; 0: not positive definite. */
static int cholesky(double *a, int n)
{
    for (int j = 0; j < n; j++) {
        for (int i = j; i < n; i++) {
            const double sum = a[i * n + j] - dot(&a[i * n], &a[j * n], j);
            if (i == j && sum <= 0) return 0;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    }
    return 1;
}

static void solve_lower(const double *l, double *x, int n) /* L x = b */
{
    for (int i = 0; i < n; i++) x[i] = (x[i] - dot(&l[i * n], x, i)) / l[i * n + i];
}

static void solve_upper(const double *l, double *x, int n) /* L^T x = b */
{
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) x[i] -= l[k * n + i] * x[k];
        x[i] /= l[i * n + i];
    }
}

static const double *row(const process *g, int i)
{
    return g->at + (size_t)i * (size_t)g->space->n;
}

/* Fits to the shape; 0: it cannot be. */
static int condition(process *g)
{
    const int n = g->n;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) g->chol[i * n + j] = covariance(g, row(g, i), row(g, j));
        g->chol[i * n + i] = 1 + g->shape.noise;
    }
    if (!cholesky(g->chol, n)) return 0;
    memcpy(g->weight, g->y, (size_t)n * sizeof *g->y);
    solve_lower(g->chol, g->weight, n);
    double quadratic = 0;
    for (int i = 0; i < n; i++) quadratic += g->weight[i] * g->weight[i];
    solve_upper(g->chol, g->weight, n);
    g->variance = quadratic / n > 1e-12 ? quadratic / n : 1e-12;
    return 1;
}

static double log_normal(double x, double middle, double width)
{
    const double z = log(x / middle) / width;
    return -0.5 * z * z;
}

/* Logarithm of marginal likelihood times prior, constants aside. */
static double evidence(process *g)
{
    if (!condition(g)) return -INFINITY;
    double sum = -0.5 * g->n * log(g->variance);
    for (int i = 0; i < g->n; i++) sum -= log(g->chol[i * g->n + i]);
    for (int i = 0; i < g->space->n; i++) sum += log_normal(g->shape.length[i], 0.5, 0.9);
    return sum + log_normal(g->shape.noise, 0.003, 2.0);
}

/* Tries a factor and its inverse on one number of the shape. */
static void improve(process *g, double *x, double factor, double *best)
{
    const double was  = *x;
    double       keep = was;
    for (int k = 0; k < 2; k++) {
        *x              = k ? was / factor : was * factor;
        const double ev = evidence(g);
        if (ev <= *best) continue;
        *best = ev;
        keep  = *x;
    }
    *x = keep;
}

/* Lengths and noise from the first FIT_POINTS, the mean and variance from all. */
static void fit(process *g)
{
    static const double factor[] = {2.5, 1.6, 1.25, 1.6, 1.25};
    const int           n        = g->n;
    if (n > FIT_POINTS) g->n = FIT_POINTS;
    for (int i = 0; i < g->space->n; i++) g->shape.length[i] = 0.5;
    g->shape.noise = 0.003;
    double best    = evidence(g);
    for (size_t f = 0; f < sizeof factor / sizeof factor[0]; f++) {
        for (int i = 0; i < g->space->n; i++) improve(g, &g->shape.length[i], factor[f], &best);
        improve(g, &g->shape.noise, factor[f] * factor[f], &best);
    }
    g->n = n;
    while (!condition(g)) g->shape.noise = 10 * g->shape.noise + 1e-8;
}

/* The mean at a point; its covariances stay in `work`. */
static double mean_at(const process *g, const double *at, double *work)
{
    for (int i = 0; i < g->n; i++) work[i] = covariance(g, at, row(g, i));
    return dot(work, g->weight, g->n);
}

/* The standard deviation there, from what mean_at() left. */
static double deviation(const process *g, double *work)
{
    solve_lower(g->chol, work, g->n);
    const double explained = dot(work, work, g->n);
    return sqrt(g->variance * (explained < 1 ? 1 - explained : 1e-12));
}

static double expected_improvement(double best, double mean, double sd)
{
    const double z = (best - mean) / sd;
    return (best - mean) * 0.5 * erfc(-z * M_SQRT1_2) + sd * exp(-0.5 * z * z) / 2.5066282746310002;
}

/* ---- losses into targets ---- */

static void centre(double *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += y[i];
    for (int i = 0; i < n; i++) y[i] -= sum / n;
}

/* Distances from the best in units of the median distance: as they are up to the median,
 * logarithmic beyond, so that a few very bad trials do not bend the rest. */
static void transform(double *y, int n, double *work)
{
    memcpy(work, y, (size_t)n * sizeof *y);
    fm_sort_ascending(work, (size_t)n);
    const double best = work[0], half = work[n / 2] - work[0], all = work[n - 1] - work[0];
    const double unit = half > 0 ? half : all > 0 ? all : 1;
    for (int i = 0; i < n; i++) {
        const double t = (y[i] - best) / unit;
        y[i]           = t <= 1 ? t : 1 + log(t);
    }
    centre(y, n);
}

typedef struct {
    double          loss;
    const fm_point *at;
} target;

static int by_loss(const void *a, const void *b)
{
    const target *x = a, *y = b;
    return x->loss != y->loss ? (x->loss > y->loss) - (x->loss < y->loss)
                              : (x->at > y->at) - (x->at < y->at);
}

/* Of the sorted list the best half of FIT_POINTS comes first, then the same number evenly from the
 * rest: these decide about the lengths. */
static void put_in_order(process *g, const target *sorted)
{
    const int half = FIT_POINTS / 2, rest = g->n - half;
    char     *used  = calloc((size_t)g->n, 1);
    int      *order = malloc((size_t)g->n * sizeof *order), n = 0;
    FM_BUG_UNLESS(used && order);
    for (int i = 0; i < half && i < g->n; i++) used[order[n++] = i] = 1;
    for (int k = 0; rest > half && k < half; k++) used[order[n++] = half + k * rest / half] = 1;
    for (int i = 0; i < g->n; i++)
        if (!used[i]) order[n++] = i;
    for (int i = 0; i < g->n; i++) {
        place(g->at + (size_t)i * (size_t)g->space->n, g->space, sorted[order[i]].at);
        g->y[i] = sorted[order[i]].loss;
    }
    free(order);
    free(used);
}

/* All trials, or of many the latest: the good regions are where they lie. */
static fm_status gather(process *g, const fm_study *s)
{
    const int    from = s->n > MOST_POINTS ? s->n - MOST_POINTS : 0;
    const size_t n    = (size_t)(s->n - from);
    double      *loss = malloc((size_t)s->n * sizeof *loss);
    target      *list = malloc(n * sizeof *list);
    *g                = (process){.space = s->space, .n = (int)n};
    g->at             = malloc(n * (size_t)s->space->n * sizeof *g->at);
    g->y              = malloc(n * sizeof *g->y);
    g->weight         = malloc(n * sizeof *g->weight);
    g->chol           = malloc(n * n * sizeof *g->chol);
    const int ok      = loss && list && g->at && g->y && g->weight && g->chol;
    if (ok) {
        fm_study_losses(s, loss);
        for (size_t i = 0; i < n; i++)
            list[i] = (target){loss[from + (int)i], &s->trial[from + (int)i].at};
        qsort(list, n, sizeof *list, by_loss);
        put_in_order(g, list);
        transform(g->y, g->n, g->weight);
    }
    free(list);
    free(loss);
    return ok ? FM_OK : fm_fail(FM_E_OOM, "Gaussian process");
}

static void process_fini(process *g)
{
    free(g->at);
    free(g->y);
    free(g->weight);
    free(g->chol);
}

/* The smallest mean at a point that was tried: with noise, less lucky than the
 * smallest value. */
static double best_mean(const process *g, double *work)
{
    double best = INFINITY;
    for (int i = 0; i < g->n; i++) best = fmin(best, mean_at(g, row(g, i), work));
    return best;
}

/* A candidate that would lose even with the largest deviation there can be scores nothing. */
static void score_all(double *score, const process *g, const fm_candidates *c, double *work)
{
    const double best = best_mean(g, work), most = sqrt(g->variance);
    double       top = 0, at[FM_TUNE_MAX_PARAM];
    for (int i = 0; i < c->n; i++) {
        place(at, g->space, &c->point[i]);
        const double mean = mean_at(g, at, work);
        score[i]          = expected_improvement(best, mean, most);
        if (score[i] <= top) {
            score[i] = 0;
            continue;
        }
        score[i] = expected_improvement(best, mean, deviation(g, work));
        if (score[i] > top) top = score[i];
    }
}

fm_status fm_gp_score(double *score, const fm_study *s, const fm_candidates *c, fm_mt *random)
{
    process   g;
    fm_status rc = gather(&g, s);
    (void)random;
    if (rc == FM_OK) {
        double *work = malloc((size_t)g.n * sizeof *work);
        FM_BUG_UNLESS(work != NULL);
        fit(&g);
        score_all(score, &g, c, work);
        free(work);
    }
    process_fini(&g);
    return rc;
}
