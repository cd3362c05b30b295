/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax weights with the heads as lanes: maxima and sums run down the keys,
 * and no step crosses lanes. */
#include <math.h>
#include <string.h>

#include "llm/kernel/latent/latent_internal.h"
#include "base/clones.h"
#include "llm/kernel/rows/exp.h"

enum { LANES = FM_LATENT_LANES };

/* A NaN is passed over here; its own weight will be NaN. */
FM_CLONES static void largest(float *restrict max, const float *restrict score, int n, float scale)
{
    float top[LANES];
    for (int h = 0; h < LANES; h++) top[h] = -INFINITY;
    for (int t = 0; t < n; t++, score += LANES)
        for (int h = 0; h < LANES; h++) top[h] = score[h] > top[h] ? score[h] : top[h];
    for (int h = 0; h < LANES; h++) max[h] = top[h] * scale;
}

FM_CLONES static void weigh(float *restrict score, int n, float scale, const float *restrict max,
                            float *restrict sum)
{
    float all[LANES] = {0};
    for (int t = 0; t < n; t++, score += LANES)
        for (int h = 0; h < LANES; h++) {
            score[h] = fm_exp(score[h] * scale - max[h]);
            all[h] += score[h];
        }
    memcpy(sum, all, sizeof all);
}

FM_CLONES static void round_pairs(uint32_t *restrict p, const float *restrict w, int n)
{
    for (int t = 0; t < n; t += 2, w += 2 * LANES, p += LANES)
        for (int h = 0; h < LANES; h++)
            p[h] = fm_bf16_of_f32(w[h]) | (uint32_t)fm_bf16_of_f32(w[LANES + h]) << 16;
}

/* Scores to weights; those behind n are zeros. */
static void weigh_in_place(float *restrict score, int n, float scale, float *restrict max,
                           float *restrict sum)
{
    largest(max, score, n, scale);
    weigh(score, n, scale, max, sum);
    memset(score + n * LANES, 0, (size_t)(fm__whole_steps(n) - n) * LANES * sizeof *score);
}

void fm__latent_weigh_bf16_ref(void *restrict p, float *restrict score, int n, float scale,
                               float max[FM_LATENT_LANES], float sum[FM_LATENT_LANES])
{
    weigh_in_place(score, n, scale, max, sum);
    round_pairs(p, score, fm__whole_steps(n));
}

void fm__latent_weigh_f32_ref(void *restrict p, float *restrict score, int n, float scale,
                              float max[FM_LATENT_LANES], float sum[FM_LATENT_LANES])
{
    weigh_in_place(score, n, scale, max, sum);
    memcpy(p, score, (size_t)fm__whole_steps(n) * LANES * sizeof *score);
}
