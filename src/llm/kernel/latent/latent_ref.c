/* SPDX-License-Identifier: Apache-2.0 */
/* The definition, in plain C.  Loops over lanes are innermost and of fixed
 * length, so that the compiler's copies for each level are vectors; that is
 * enough for F32, which is there for comparisons. */
#include <string.h>

#include "llm/kernel/latent/latent_internal.h"
#include "base/clones.h"

enum { LANES = FM_LATENT_LANES, COLUMNS = 16 };

void fm__latent_pack_bf16_ref(void *restrict dst, const void *const *restrict q, int heads,
                              int width)
{
    uint32_t *to = dst;
    memset(to, 0, (size_t)width * LANES * sizeof(fm_bf16));
    for (int h = 0; h < heads; h++)
        for (int d = 0; d < width; d += 2)
            memcpy(&to[d / 2 * LANES + h], (const fm_bf16 *)q[h] + d, sizeof *to);
}

void fm__latent_pack_f32_ref(void *restrict dst, const void *const *restrict q, int heads,
                             int width)
{
    float *to = dst;
    memset(to, 0, (size_t)width * LANES * sizeof *to);
    for (int h = 0; h < heads; h++)
        for (int d = 0; d < width; d++) to[d * LANES + h] = ((const float *)q[h])[d];
}

FM_CLONES void fm__latent_score_bf16_ref(float *restrict score, const void *restrict q,
                                         const void *const *restrict row, int n, int width)
{
    for (int t = 0; t < n; t++, score += LANES) {
        const uint32_t *pair       = q;
        const fm_bf16  *token      = row[t];
        float           sum[LANES] = {0};
        for (int d = 0; d < width; d += 2, pair += LANES) {
            const float a = fm_f32_of_bf16(token[d]), b = fm_f32_of_bf16(token[d + 1]);
            for (int h = 0; h < LANES; h++)
                sum[h] += fm__first_of_pair(pair[h]) * a + fm__second_of_pair(pair[h]) * b;
        }
        memcpy(score, sum, sizeof sum);
    }
}

FM_CLONES void fm__latent_score_f32_ref(float *restrict score, const void *restrict q,
                                        const void *const *restrict row, int n, int width)
{
    for (int t = 0; t < n; t++, score += LANES) {
        const float *lane       = q;
        const float *token      = row[t];
        float        sum[LANES] = {0};
        for (int d = 0; d < width; d++, lane += LANES)
            for (int h = 0; h < LANES; h++) sum[h] += lane[h] * token[d];
        memcpy(score, sum, sizeof sum);
    }
}

FM_CLONES static void add_bf16(float *restrict z, const uint32_t *restrict p,
                               const void *const *restrict row, int n, int at)
{
    float sum[COLUMNS] = {0};
    for (int t = 0; t < n; t += 2, p += LANES) {
        const fm_bf16 *even = (const fm_bf16 *)row[t] + at, *odd = (const fm_bf16 *)row[t + 1] + at;
        const float    a = fm__first_of_pair(*p), b = fm__second_of_pair(*p);
        for (int d = 0; d < COLUMNS; d++)
            sum[d] += a * fm_f32_of_bf16(even[d]) + b * fm_f32_of_bf16(odd[d]);
    }
    memcpy(z + at, sum, sizeof sum);
}

void fm__latent_value_bf16_ref(float *restrict z, const void *restrict p,
                               const void *const *restrict row, int n, int heads, int width)
{
    for (int h = 0; h < heads; h++)
        for (int at = 0; at < width; at += COLUMNS)
            add_bf16(z + (size_t)h * (size_t)width, (const uint32_t *)p + h, row, n, at);
}

FM_CLONES static void add_f32(float *restrict z, const float *restrict p,
                              const void *const *restrict row, int n, int at)
{
    float sum[COLUMNS] = {0};
    for (int t = 0; t < n; t++, p += LANES) {
        const float *token = (const float *)row[t] + at;
        for (int d = 0; d < COLUMNS; d++) sum[d] += *p * token[d];
    }
    memcpy(z + at, sum, sizeof sum);
}

void fm__latent_value_f32_ref(float *restrict z, const void *restrict p,
                              const void *const *restrict row, int n, int heads, int width)
{
    for (int h = 0; h < heads; h++)
        for (int at = 0; at < width; at += COLUMNS)
            add_f32(z + (size_t)h * (size_t)width, (const float *)p + h, row, n, at);
}
