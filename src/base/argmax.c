/* SPDX-License-Identifier: Apache-2.0 */
#include "base/argmax.h"

#include <math.h>

enum { LANES = 32, BLOCK = 4096 };

/* Independent lanes, so that the compiler may use vector maxima; a comparison
 * with NaN is false and keeps what was there. */
static float block_max(const float *x, int n)
{
    float m[LANES], best = -INFINITY;
    for (int j = 0; j < LANES; j++) m[j] = -INFINITY;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
    for (; i < n; i++) best = x[i] > best ? x[i] : best;
    for (int j = 0; j < LANES; j++) best = m[j] > best ? m[j] : best;
    return best;
}

int fm_argmax(const float *x, int n)
{
    float best = -INFINITY;
    int   at   = 0;
    for (int b = 0; b < n; b += BLOCK) {
        const float m = block_max(x + b, n - b < BLOCK ? n - b : BLOCK);
        if (m > best) best = m, at = b;
    }
    if (best == -INFINITY) return 0;
    while (x[at] != best) at++;
    return at;
}
