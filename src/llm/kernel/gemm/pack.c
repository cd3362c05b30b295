/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/gemm/gemm.h"

#include "base/status.h"
#include "llm/kernel/gemm/gemm_internal.h"

static const fm_pack all[] = {
    {FM_ISA_AVX512, fm__across_bf16_avx512, fm__across_fp8_avx512, fm__across_f32_avx512,
     fm__along_bf16_avx512, fm__along_f32_avx512},
    {FM_ISA_REF, fm__across_bf16_ref, fm__across_fp8_ref, fm__across_f32_ref, fm__along_bf16_ref,
     fm__along_f32_ref},
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

void fm_pack_panel(void *restrict dst, const void *const row[FM_PANEL], fm_dtype w, int k)
{
    const fm_pack *v = fm_pack_pick();
    FM_BUG_UNLESS(w == FM_BF16 || w == FM_FP8 || w == FM_F32);
    fm_pack_fn *across = w == FM_BF16  ? v->across_bf16
                         : w == FM_FP8 ? v->across_fp8
                                       : v->across_f32;
    across(dst, row, FM_PANEL, k);
}
