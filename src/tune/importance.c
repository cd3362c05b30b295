/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/importance.h"

#include <math.h>
#include <string.h>

#include "tune/forest.h"

enum { N_SAMPLE = 160, N_VALUE = 12 };

static double variance(const double *x, int n)
{
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    for (int i = 0; i < n; i++) square += (x[i] - sum / n) * (x[i] - sum / n);
    return n ? square / n : 0;
}

static int n_values(const fm_param *p)
{
    const int64_t n = fm_param_n_value(p);
    return n && n < N_VALUE ? (int)n : N_VALUE;
}

static double value_of(const fm_param *p, int k, int n)
{
    const int64_t count = fm_param_n_value(p);
    return count == n ? fm_param_nth(p, k) : fm_param_value(p, (k + 0.5) / n);
}

/* Mean over the sample with parameter i set to x, where it exists. */
static double marginal(const fm_forest *f, const fm_space *s, const fm_point *sample, int i,
                       double x)
{
    double sum = 0;
    int    n   = 0;
    for (int k = 0; k < N_SAMPLE; k++) {
        if (isnan(sample[k].v[i])) continue;
        fm_point p = sample[k];
        p.v[i]     = x;
        fm_point_settle(s, &p);
        sum += fm_forest_predict(f, &p);
        n++;
    }
    return n ? sum / n : 0;
}

static double effect(const fm_forest *f, const fm_space *s, const fm_point *sample, int i)
{
    double    at[N_VALUE];
    const int n     = n_values(&s->param[i]);
    int       exist = 0;
    for (int k = 0; k < n; k++) at[k] = marginal(f, s, sample, i, value_of(&s->param[i], k, n));
    for (int k = 0; k < N_SAMPLE; k++) exist += !isnan(sample[k].v[i]);
    return variance(at, n) * exist / N_SAMPLE;
}

fm_status fm_importance(double *share, const fm_study *s)
{
    fm_forest *f = NULL;
    fm_point   sample[N_SAMPLE];
    double     predicted[N_SAMPLE];
    fm_mt      random;
    memset(share, 0, (size_t)s->space->n * sizeof *share);
    FM_TRY(fm_forest_create(&f, s));
    fm_mt_seed_python(&random, 2);
    fm_status rc = FM_OK;
    for (int k = 0; k < N_SAMPLE && rc == FM_OK; k++) {
        rc = fm_point_random(s->space, &random, &sample[k]);
        if (rc == FM_OK) predicted[k] = fm_forest_predict(f, &sample[k]);
    }
    const double total = rc == FM_OK ? variance(predicted, N_SAMPLE) : 0;
    for (int i = 0; total > 0 && i < s->space->n; i++) {
        share[i] = effect(f, s->space, sample, i) / total;
        if (share[i] > 1) share[i] = 1;
    }
    fm_forest_destroy(f);
    return rc;
}
