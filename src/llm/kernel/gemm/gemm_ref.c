/* SPDX-License-Identifier: Apache-2.0 */
/* The definition: plain C, one product after the other in ascending k. */
#include "llm/kernel/gemm/gemm_internal.h"

void fm__gemm_bf16_ref(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    (void)scale;
    const fm_bf16 *panel = w;
    for (int i = 0; i < m; i++) {
        const fm_bf16 *row           = x[i];
        float          sum[FM_PANEL] = {0};
        for (int p = 0; p < k; p++) {
            const float a = fm_f32_of_bf16(row[p]);
            for (int j = 0; j < FM_PANEL; j++)
                sum[j] += a * fm_f32_of_bf16(panel[fm__at_bf16(j, p)]);
        }
        memcpy(c + (size_t)i * FM_PANEL, sum, sizeof sum);
    }
}

/* Each 128 of k are summed by themselves, then scaled. */
void fm__gemm_fp8_ref(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    const fm_fp8 *panel = w;
    for (int i = 0; i < m; i++) {
        const fm_bf16 *row           = x[i];
        float          sum[FM_PANEL] = {0};
        for (int p0 = 0; p0 < k; p0 += FM__SCALE_K) {
            const float *s              = scale + p0 / FM__SCALE_K * 2;
            const int    end            = fm__least(p0 + FM__SCALE_K, k);
            float        part[FM_PANEL] = {0};
            for (int p = p0; p < end; p++) {
                const float a = fm_f32_of_bf16(row[p]);
                for (int j = 0; j < FM_PANEL; j++)
                    part[j] += a * fm_f32_of_fp8(panel[fm__at_fp8(j, p)]);
            }
            for (int j = 0; j < FM_PANEL; j++) sum[j] += s[j / FM__HALF] * part[j];
        }
        memcpy(c + (size_t)i * FM_PANEL, sum, sizeof sum);
    }
}

void fm__gemm_f32_ref(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    (void)scale;
    const float *panel = w;
    for (int i = 0; i < m; i++) {
        const float *row           = x[i];
        float        sum[FM_PANEL] = {0};
        for (int p = 0; p < k; p++)
            for (int j = 0; j < FM_PANEL; j++) sum[j] += row[p] * panel[fm__at_f32(j, p)];
        memcpy(c + (size_t)i * FM_PANEL, sum, sizeof sum);
    }
}
