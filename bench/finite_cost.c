/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to look at every row of logits for NaN and infinities.
 *
 *     bench_finite_cost [VOCAB [ROUNDS]]      129280 2001
 *
 * The row is in a cache, as it is behind the head; the median of the rounds is printed.  Hold it
 * against the step that bench_trace_cost prints for a model of this vocabulary. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/finite.h"
#include "base/rng.h"
#include "bench/median.h"

int main(int argc, char **argv)
{
    const int n     = argc > 1 ? atoi(argv[1]) : 129280;
    const int round = argc > 2 ? atoi(argv[2]) : 2001;
    if (n < 1 || round < 1) return 2;
    float  *x = malloc((size_t)n * sizeof *x);
    double *s = malloc((size_t)round * sizeof *s);
    if (!x || !s) return 1;
    for (int i = 0; i < n; i++) x[i] = (float)fm_rng_u32(1, (uint64_t)i) * 1e-8f;
    int good = 0;
    for (int i = 0; i < round; i++) {
        const double began = fm_now();
        good += fm_all_finite(x, n);
        s[i] = fm_now() - began;
    }
    printf("a row of %d logits: %.2f us\n", n, 1e6 * fm_median(s, round));
    free(x);
    free(s);
    return good == round ? 0 : 1;
}
