/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of this family. */
#ifndef FM_LLM_KERNEL_LATENT_INTERNAL_H
#define FM_LLM_KERNEL_LATENT_INTERNAL_H

#include "llm/kernel/latent/latent.h"

fm_latent_pack_fn  fm__latent_pack_bf16_ref, fm__latent_pack_f32_ref;
fm_latent_pack_fn  fm__latent_pack_bf16_avx2, fm__latent_pack_bf16_avx512;
fm_latent_score_fn fm__latent_score_bf16_ref, fm__latent_score_f32_ref;
fm_latent_score_fn fm__latent_score_bf16_avx2;
fm_latent_score_fn fm__latent_score_bf16_avx512, fm__latent_score_bf16_amx;
fm_latent_weigh_fn fm__latent_weigh_bf16_ref, fm__latent_weigh_f32_ref;
fm_latent_weigh_fn fm__latent_weigh_bf16_avx512;
fm_latent_value_fn fm__latent_value_bf16_ref, fm__latent_value_f32_ref;
fm_latent_value_fn fm__latent_value_bf16_avx2;
fm_latent_value_fn fm__latent_value_bf16_avx512, fm__latent_value_bf16_amx;

/* A pair of bf16 in one lane. */
static inline float fm__first_of_pair(uint32_t pair)
{
    return fm_f32_from_bits(pair << 16);
}
static inline float fm__second_of_pair(uint32_t pair)
{
    return fm_f32_from_bits(pair & 0xffff0000u);
}

static inline int fm__whole_steps(int n)
{
    return (n + FM_LATENT_STEP - 1) / FM_LATENT_STEP * FM_LATENT_STEP;
}

#endif
