/* SPDX-License-Identifier: Apache-2.0 */
/* A run of dummy values (dummy.h has the rule), plain and with AVX-512: the
 * same bits, at the speed of the memory they go to. */
#ifndef FM_LLM_LOAD_DUMMY_INTERNAL_H
#define FM_LLM_LOAD_DUMMY_INTERNAL_H

#include "llm/load/dummy.h"

/* Elements i … i+n-1, all with the same upper half of their index. */
typedef struct {
    uint32_t stream;       /* fm__dummy_stream(key, i) */
    uint32_t i, n;         /* i: the lower half */
    float    centre, step; /* not for FP8 */
} fm__dummy_run;

/* What fm_rng_u32(key, i) mixes into all i with the same upper half. */
static inline uint32_t fm__dummy_stream(uint64_t key, uint64_t i)
{
    return fm_mix32((uint32_t)key ^ fm_mix32((uint32_t)(i >> 32) ^ (uint32_t)(key >> 32)));
}

static inline uint32_t fm__dummy_u32(uint32_t stream, uint32_t i)
{
    return fm_mix32(i * 0x9e3779b9u + stream);
}

typedef void fm__dummy_fn(void *restrict dst, const fm__dummy_run *run);
fm__dummy_fn fm__dummy_f32_ref, fm__dummy_bf16_ref, fm__dummy_fp8_ref;
fm__dummy_fn fm__dummy_int4_ref; /* i and n are even */
fm__dummy_fn fm__dummy_bf16_avx512, fm__dummy_fp8_avx512;

#endif
