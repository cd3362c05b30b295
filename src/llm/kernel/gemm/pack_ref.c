/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of the panels made on the fly: each place asks for its value. */
#include "llm/kernel/gemm/gemm_internal.h"

void fm__across_bf16_ref(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    fm_bf16  *panel = dst;
    const int k     = (int)fm_round_up((size_t)n, FM__BLOCK);
    for (int j = 0; j < FM_PANEL; j++) {
        const fm_bf16 *row = j < m ? rows[j] : NULL;
        for (int p = 0; p < k; p++) panel[fm__at_bf16(j, p)] = row && p < n ? row[p] : 0;
    }
}

void fm__across_fp8_ref(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    fm_fp8   *panel = dst;
    const int k     = (int)fm_round_up((size_t)n, FM__BLOCK);
    for (int j = 0; j < FM_PANEL; j++) {
        const fm_fp8 *row = j < m ? rows[j] : NULL;
        for (int p = 0; p < k; p++) panel[fm__at_fp8(j, p)] = row && p < n ? row[p] : 0;
    }
}

void fm__across_f32_ref(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    float    *panel = dst;
    const int k     = (int)fm_round_up((size_t)n, FM__BLOCK);
    for (int j = 0; j < FM_PANEL; j++) {
        const float *row = j < m ? rows[j] : NULL;
        for (int p = 0; p < k; p++) panel[fm__at_f32(j, p)] = row && p < n ? row[p] : 0;
    }
}

void fm__along_bf16_ref(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    const int k = (int)fm_round_up((size_t)m, FM__BLOCK);
    for (int p = 0; p < k; p++) {
        const fm_bf16 *row = p < m ? rows[p] : NULL;
        for (int j = 0; j < n; j++) {
            fm_bf16 *panel = (fm_bf16 *)dst + (size_t)(j / FM_PANEL) * FM_PANEL * (size_t)k;

            panel[fm__at_bf16(j % FM_PANEL, p)] = row ? row[j] : 0;
        }
    }
}

void fm__along_f32_ref(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    const int k = (int)fm_round_up((size_t)m, FM__BLOCK);
    for (int p = 0; p < k; p++) {
        const float *row = p < m ? rows[p] : NULL;
        for (int j = 0; j < n; j++) {
            float *panel = (float *)dst + (size_t)(j / FM_PANEL) * FM_PANEL * (size_t)k;

            panel[fm__at_f32(j % FM_PANEL, p)] = row ? row[j] : 0;
        }
    }
}
