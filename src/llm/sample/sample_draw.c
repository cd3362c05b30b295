/* SPDX-License-Identifier: Apache-2.0 */
/* A draw in proportion to the weights.  Every token i gets a number u_i in
 * (0,1) that depends on seed, position and id alone, and the largest
 * log w_i - log(-log u_i) wins (Gumbel), which is the smallest -log(u_i)/w_i:
 * so a token's fate depends on no other token's, and filtering one out leaves
 * the rest of the race as it was. */
#include <float.h>
#include <math.h>

#include "llm/sample/sample_internal.h"

static int kept(const fm__draw_params *p, int i)
{
    const float d = p->distance[i];
    if (p->weight[i] < p->min_weight) return 0;
    return d < p->cut.distance || (d == p->cut.distance && i <= p->cut.id);
}

int32_t fm__draw(const fm__draw_params *p)
{
    const uint64_t stream = fm__stream(p->seed, p->position);
    double         best   = DBL_MAX;
    int32_t        id     = 0;
    for (int i = 0; i < p->n; i++) {
        const double u = fm__uniform(stream, i);
        const double w = (double)p->weight[i];
        /* -log u >= 1 - u: nearly all tokens lose here, before any logarithm. */
        if ((1 - u) * (1 - 0x1p-40) >= best * w || !kept(p, i)) continue;
        const double t = -log(u) / w;
        if (t < best) best = t, id = i;
    }
    return id;
}
