/* SPDX-License-Identifier: Apache-2.0 */
#include "definition.h"
#include "llm/load/dummy_internal.h"

void right_dummy(void *dst, int type, uint64_t key, uint64_t i, uint32_t n, float centre,
                 float step)
{
    fm__dummy_fn *fill = type == FM_BF16  ? fm__dummy_bf16_ref
                         : type == FM_FP8 ? fm__dummy_fp8_ref
                                          : fm__dummy_f32_ref;
    fill(dst, &(fm__dummy_run){fm__dummy_stream(key, i), (uint32_t)i, n, centre, step});
}
