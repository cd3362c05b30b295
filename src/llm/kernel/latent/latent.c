/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/latent/latent.h"

#include "llm/kernel/latent/latent_internal.h"

#define F32_REF                                                                                    \
    {                                                                                              \
        fm__latent_pack_f32_ref, fm__latent_score_f32_ref, fm__latent_weigh_f32_ref,               \
            fm__latent_value_f32_ref                                                               \
    }

static const fm_latent all[] = {
    {FM_ISA_AMX,
     {fm__latent_pack_bf16_avx512, fm__latent_score_bf16_amx, fm__latent_weigh_bf16_avx512,
      fm__latent_value_bf16_amx},
     F32_REF},
    {FM_ISA_AVX512,
     {fm__latent_pack_bf16_avx512, fm__latent_score_bf16_avx512, fm__latent_weigh_bf16_avx512,
      fm__latent_value_bf16_avx512},
     F32_REF},
    {FM_ISA_AVX2,
     {fm__latent_pack_bf16_avx2, fm__latent_score_bf16_avx2, fm__latent_weigh_bf16_ref,
      fm__latent_value_bf16_avx2},
     F32_REF},
    {FM_ISA_REF,
     {fm__latent_pack_bf16_ref, fm__latent_score_bf16_ref, fm__latent_weigh_bf16_ref,
      fm__latent_value_bf16_ref},
     F32_REF},
};

const fm_latent *fm_latent_all(size_t *count)
{
    *count = sizeof all / sizeof *all;
    return all;
}

const fm_latent *fm_latent_pick(void)
{
    const fm_latent *v = all;
    while (v->isa > fm_cpu_isa()) v++; /* stops at ref */
    return v;
}
