/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/gemm/gemm.h"

#include "base/status.h"
#include "llm/kernel/gemm/gemm_internal.h"

static const fm_pack all[] = {
    {FM_ISA_AVX512, fm__across_bf16_avx512, fm__across_f32_avx512, fm__along_bf16_avx512,
     fm__along_f32_avx512},
    {FM_ISA_REF, fm__across_bf16_ref, fm__across_f32_ref, fm__along_bf16_ref, fm__along_f32_ref},
};

const fm_pack *fm_pack_all(size_t *count)
{
    *count = sizeof all / sizeof *all;
    return all;
}

const fm_pack *fm_pack_pick(void)
{
    const fm_pack *v = all;
    while (v->isa > fm_cpu_isa()) v++; /* stops at ref */
    return v;
}

static void across_fp8(fm_fp8 *restrict dst, const void *const row[FM_PANEL], int k)
{
    const int end = (int)fm_round_up((size_t)k, FM__BLOCK);
    for (int p = 0; p < end; p++)
        for (int j = 0; j < FM_PANEL; j++) {
            const fm_fp8 *from    = row[j];
            dst[fm__at_fp8(j, p)] = from && p < k ? from[p] : 0;
        }
}

void fm_pack_panel(void *restrict dst, const void *const row[FM_PANEL], fm_dtype w, int k)
{
    FM_BUG_UNLESS(w == FM_BF16 || w == FM_FP8 || w == FM_F32);
    if (w == FM_BF16) fm_pack_pick()->across_bf16(dst, row, FM_PANEL, k);
    if (w == FM_F32) fm_pack_pick()->across_f32(dst, row, FM_PANEL, k);
    if (w == FM_FP8) across_fp8(dst, row, k);
}
