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

/* Two bytes of a row are four k, whose first pair goes to the lower halves of two bytes. */
static void put_four(uint8_t *to, const uint8_t *from, size_t odd)
{
    const unsigned low = from[0] ^ 0x88u, high = from[1] ^ 0x88u; /* two's complement */
    to[0]   = (uint8_t)((low & 15) | (high & 15) << 4);
    to[odd] = (uint8_t)(low >> 4 | (high & 0xf0));
}

void fm_pack_int4(void *restrict dst, const uint8_t *const row[FM_PANEL],
                  const fm_bf16 *const scale[FM_PANEL], int k)
{
    const size_t odd = fm__at_int4(0, 1);
    FM_BUG_UNLESS(k % FM__GROUP_K == 0);
    memset(dst, 0, fm_panel_bytes(FM_INT4, k));
    for (int p = 0; p < k; p += FM__GROUP_K) {
        char    *group  = (char *)dst + (fm__group_at(dst, p) - (const char *)dst);
        fm_bf16 *factor = (fm_bf16 *)(group + FM__GROUP_BYTES - FM_PANEL * 2);
        for (int j = 0; j < FM_PANEL; j++) {
            if (!row[j]) continue;
            factor[j] = scale[j][p / FM__GROUP_K];
            for (int q = 0; q < FM__GROUP_K; q += 4)
                put_four((uint8_t *)group + fm__at_int4(j, q), row[j] + (p + q) / 2, odd);
        }
    }
}
