/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/gemm/gemm.h"

#include "llm/kernel/gemm/gemm_few.h"
#include "llm/kernel/gemm/gemm_internal.h"

/* AMX has no f32 product: that column falls back to AVX-512.  Rows of one level have the same bits. */
static const fm_gemm all[] = {
    {FM_ISA_AMX, 1, fm__gemm_bf16_amx, fm__gemm_fp8_amx, fm__gemm_int4_amx, fm__gemm_f32_avx512, fm__telling_bf16_amx, fm__telling_fp8_amx, fm__telling_int4_amx, fm__gemm_scaled_amx, fm__widen_vbmi},
    {FM_ISA_AVX512, 1, fm__gemm_bf16_avx512, fm__gemm_fp8_vbmi, fm__gemm_int4_avx512, fm__gemm_f32_avx512, NULL, NULL, NULL, fm__gemm_scaled_vbmi, fm__widen_vbmi},
    {FM_ISA_AVX512, 0, fm__gemm_bf16_avx512, fm__gemm_fp8_avx512, fm__gemm_int4_avx512, fm__gemm_f32_avx512, NULL, NULL, NULL, fm__gemm_scaled_avx512, NULL},
    {FM_ISA_AVX2, 0, fm__gemm_bf16_avx2, fm__gemm_fp8_avx2, fm__gemm_int4_avx2, fm__gemm_f32_avx2, NULL, NULL, NULL, fm__gemm_scaled_avx2, NULL},
    {FM_ISA_REF, 0, fm__gemm_bf16_ref, fm__gemm_fp8_ref, fm__gemm_int4_ref, fm__gemm_f32_ref, NULL, NULL, NULL, fm__gemm_scaled_ref, NULL},
};

const fm_gemm *fm_gemm_all(size_t *count)
{
    *count = sizeof all / sizeof *all;
    return all;
}

int fm_gemm_runs_here(const fm_gemm *g)
{
    return fm_cpu_detects(g->isa) && (!g->vbmi || fm_cpu_has_vbmi());
}

const fm_gemm *fm_gemm_pick(void)
{
    const fm_gemm *v = all;
    while (v->isa > fm_cpu_isa() || !fm_gemm_runs_here(v)) v++; /* stops at ref */
    return v;
}

fm_gemm_few_fn *fm_gemm_few(const fm_gemm *g)
{
    return g->bf16 == fm__gemm_bf16_avx512 ? fm__gemm_few_avx512 : NULL;
}

fm_gemm_few_fp8_fn *fm_gemm_few_fp8(const fm_gemm *g)
{
    if (g->bf16 == fm__gemm_bf16_amx) return fm__gemm_few_fp8_amx;
    return g->bf16 == fm__gemm_bf16_avx512 && g->vbmi ? fm__gemm_few_fp8_vbmi : NULL;
}
