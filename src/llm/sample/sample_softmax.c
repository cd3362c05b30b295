/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/number.h"
#include "llm/sample/sample_internal.h"

enum { LANES = 16 };

/* exp(-d) underflows to zero here. */
static inline float at_most_far(float d)
{
    return d < 88.0f ? d : 88.0f;
}

/* exp(-d) for 0 <= d <= 88, to 2 ulp; 0 below the smallest normal number.  Our
 * own, because the C library picks its code by CPU, and the last bit with it. */
static inline float exp_minus(float d)
{
    const float log2e = 0x1.715476p+0f, ln2_hi = 0x1.62e4p-1f, ln2_lo = 0x1.7f7d1cp-20f;
    const float round = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    const float t     = -d * log2e + round;
    const float k     = t - round;
    const float r     = (-d - k * ln2_hi) - k * ln2_lo; /* |r| <= ln2/2 */

    float p = 1.0f / 720;
    p       = p * r + 1.0f / 120;
    p       = p * r + 1.0f / 24;
    p       = p * r + 1.0f / 6;
    p       = p * r + 0.5f;
    p       = p * r + 1.0f;
    p       = p * r + 1.0f;

    /* 2^k; an exponent of -127 is a zero, so the far tail needs no branch. */
    return p * fm_f32_from_bits((fm_bits_of_f32(t) << 23) + 0x3f800000u);
}

/* (max - x)/T, and +inf for what is impossible: -inf and NaN. */
static inline float distance(float x, float max, float temperature)
{
    const float d = (max - x) / temperature;
    return d >= 0 ? d : INFINITY;
}

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
    for (int j = 0; j < LANES; j++) x[j] = distance(x[j], max, temperature);
    for (int j = 0; j < LANES; j++) w[j] = at_most_far(x[j]);
    for (int j = 0; j < LANES; j++) w[j] = exp_minus(w[j]);
    for (int j = 0; j < LANES; j++) lane[j] += (double)w[j];
}

double fm__distances(float *x, float *w, int n, float max, float temperature)
{
    if (max == INFINITY) return certain(x, w, n);

    double lane[LANES] = {0}, sum = 0;
    int    i = 0;
    for (; i + LANES <= n; i += LANES) block(x + i, w + i, lane, max, temperature);
    for (; i < n; i++) {
        x[i] = distance(x[i], max, temperature);
        w[i] = exp_minus(at_most_far(x[i]));
        sum += (double)w[i];
    }
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}
