/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/load/dummy_internal.h"

void fm__dummy_f32_ref(void *restrict dst, const fm__dummy_run *run)
{
    float *out = dst;
    for (uint32_t j = 0; j < run->n; j++)
        out[j] = fm_dummy_f32(fm__dummy_u32(run->stream, run->i + j), run->centre, run->step);
}

void fm__dummy_bf16_ref(void *restrict dst, const fm__dummy_run *run)
{
    fm_bf16 *out = dst;
    for (uint32_t j = 0; j < run->n; j++)
        out[j] = fm_bf16_of_f32(
            fm_dummy_f32(fm__dummy_u32(run->stream, run->i + j), run->centre, run->step));
}

void fm__dummy_fp8_ref(void *restrict dst, const fm__dummy_run *run)
{
    fm_fp8 *out = dst;
    for (uint32_t j = 0; j < run->n; j++)
        out[j] = fm_dummy_fp8(fm__dummy_u32(run->stream, run->i + j));
}

void fm__dummy_int4_ref(void *restrict dst, const fm__dummy_run *run)
{
    uint8_t *out = dst;
    for (uint32_t j = 0; j < run->n; j += 2) {
        const uint32_t low  = fm__dummy_u32(run->stream, run->i + j);
        const uint32_t high = fm__dummy_u32(run->stream, run->i + j + 1);
        out[j / 2]          = (uint8_t)(fm_dummy_int4(low) | fm_dummy_int4(high) << 4);
    }
}
