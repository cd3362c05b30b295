/* SPDX-License-Identifier: Apache-2.0 */
/* The definition: plain C, one product after the other in ascending k.  Weights
 * are made f32 once for all rows, 128 k at a time. */
#include "llm/kernel/gemm/gemm_internal.h"

typedef float slice[FM__SCALE_K][FM_PANEL];

/* sum[j] += x[p] * w[p][j], p ascending */
static void add(float sum[FM_PANEL], const fm_bf16 *x, float (*w)[FM_PANEL], int k)
{
    for (int p = 0; p < k; p++) {
        const float a = fm_f32_of_bf16(x[p]);
        for (int j = 0; j < FM_PANEL; j++) sum[j] += a * w[p][j];
    }
}

void fm__gemm_bf16_ref(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    const fm_bf16 *panel = w;
    slice          wide;
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int from = 0; from < k; from += FM__SCALE_K) {
        const int n = fm__least(FM__SCALE_K, k - from);
        for (int p = 0; p < n; p++)
            for (int j = 0; j < FM_PANEL; j++)
                wide[p][j] = fm_f32_of_bf16(panel[fm__at_bf16(j, from + p)]);
        for (int i = 0; i < m; i++)
            add(c + (size_t)i * FM_PANEL, (const fm_bf16 *)x[i] + from, wide, n);
    }
}

/* Each 128 of k are summed by themselves, then scaled. */
void fm__gemm_scaled_ref(float *restrict c, const void *const *restrict x,
                         const float *const *restrict x_scale, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    const fm_fp8 *panel = w;
    slice         wide;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int from = 0; from < k; from += FM__SCALE_K, scale += 2) {
        const int n = fm__least(FM__SCALE_K, k - from);
        for (int p = 0; p < n; p++)
            for (int j = 0; j < FM_PANEL; j++)
                wide[p][j] = fm_f32_of_fp8(panel[fm__at_fp8(j, from + p)]);
        for (int i = 0; i < m; i++) {
            const float by       = fm__factor_of_row(x_scale, i, from / FM__SCALE_K);
            float part[FM_PANEL] = {0}, *sum = c + (size_t)i * FM_PANEL;
            add(part, (const fm_bf16 *)x[i] + from, wide, n);
            for (int j = 0; j < FM_PANEL; j++) sum[j] += by * scale[j / FM__HALF] * part[j];
        }
    }
}

void fm__gemm_fp8_ref(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    fm__gemm_scaled_ref(c, x, NULL, w, scale, m, k);
}

static float int4_at(const char *group, int j, int k)
{
    const int code = (unsigned char)group[fm__at_int4(j, k)] >> (k % 4 > 1 ? 4 : 0) & 15;
    return (float)(code < 8 ? code : code - 16);
}

/* The same with groups of 32 k and a scale for each output. */
void fm__gemm_int4_ref(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    slice wide;
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int from = 0; from < k; from += FM__GROUP_K) {
        const char    *group  = fm__group_at(w, from);
        const fm_bf16 *factor = fm__group_scales(group);
        for (int p = 0; p < FM__GROUP_K; p++)
            for (int j = 0; j < FM_PANEL; j++) wide[p][j] = int4_at(group, j, p);
        for (int i = 0; i < m; i++) {
            float part[FM_PANEL] = {0}, *sum = c + (size_t)i * FM_PANEL;
            add(part, (const fm_bf16 *)x[i] + from, wide, FM__GROUP_K);
            for (int j = 0; j < FM_PANEL; j++) sum[j] += fm_f32_of_bf16(factor[j]) * part[j];
        }
    }
}

void fm__gemm_f32_ref(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    const float *panel = w;
    (void)scale;
    for (int i = 0; i < m; i++) {
        const float *row           = x[i];
        float        sum[FM_PANEL] = {0};
        for (int p = 0; p < k; p++)
            for (int j = 0; j < FM_PANEL; j++) sum[j] += row[p] * panel[fm__at_f32(j, p)];
        memcpy(c + (size_t)i * FM_PANEL, sum, sizeof sum);
    }
}
