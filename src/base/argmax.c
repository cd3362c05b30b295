/* SPDX-License-Identifier: Apache-2.0 */
#include "base/argmax.h"

#include <math.h>

#include "base/clones.h"

enum { LANES = 64 };

/* Independent lanes, so that the compiler may use vector maxima; a comparison
 * with NaN is false and keeps what was there. */
FM_CLONES static float largest(const float *x, int n)
{
    float m[LANES];
    int   i = 0;
    for (int j = 0; j < LANES; j++) m[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
    for (int j = 0; i + j < n; j++) m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) m[j] = m[j + half] > m[j] ? m[j + half] : m[j];
    return m[0];
}

/* The first index of `value`, which x contains; blocks without it are skipped as a whole. */
FM_CLONES static int find(const float *x, int n, float value)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        int is_here = 0;
        for (int j = 0; j < LANES; j++) is_here |= x[i + j] == value;
        if (is_here) break;
    }
    while (x[i] != value) i++;
    return i;
}

/* Conditional moves: which number is the largest so far cannot be predicted. */
static int largest_of_few(const float *x, int n)
{
    float best = -INFINITY;
    int   at   = 0;
    for (int i = 0; i < n; i++) {
        const int is_more = x[i] > best;
        best              = is_more ? x[i] : best;
        at                = is_more ? i : at;
    }
    return at;
}

int fm_argmax(const float *x, int n)
{
    if (n < LANES) return largest_of_few(x, n);
    const float best = largest(x, n);
    return best == -INFINITY ? 0 : find(x, n, best);
}
