/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "llm/sample/sample_internal.h"

enum { LANES = 16 };

/* A logit of +inf leaves no probability to finite ones. */
static double certain(float *x, float *w, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        w[i] = x[i] == INFINITY;
        x[i] = x[i] == INFINITY ? 0 : INFINITY;
        sum += (double)w[i];
    }
    return sum;
}

/* One block: x -> d, w = exp(-d), added to the lanes of the sum. */
static inline void block(float *restrict x, float *restrict w, double *restrict lane, float max,
                         float temperature)
{
    for (int j = 0; j < LANES; j++) x[j] = fm__distance(x[j], max, temperature);
    for (int j = 0; j < LANES; j++) w[j] = fm__at_most_far(x[j]);
    for (int j = 0; j < LANES; j++) w[j] = fm__exp_minus(w[j]);
    for (int j = 0; j < LANES; j++) lane[j] += (double)w[j];
}

double fm__distances(float *x, float *w, int n, float max, float temperature)
{
    if (max == INFINITY) return certain(x, w, n);

    double lane[LANES] = {0}, sum = 0;
    int    i = 0;
    for (; i + LANES <= n; i += LANES) block(x + i, w + i, lane, max, temperature);
    for (; i < n; i++) {
        x[i] = fm__distance(x[i], max, temperature);
        w[i] = fm__exp_minus(fm__at_most_far(x[i]));
        sum += (double)w[i];
    }
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}
