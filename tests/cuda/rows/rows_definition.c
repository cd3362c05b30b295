/* SPDX-License-Identifier: Apache-2.0 */
#include "definition.h"
#include "llm/kernel/rows/rows.h"

void right_rmsnorm_f32(float *y, const float *x, const float *w, float eps, int n)
{
    fm_row_rmsnorm(y, FM_F32, x, w, eps, n);
}

void right_rotate(float *x, const float *cos, const float *sin, int n, int interleaved)
{
    fm_row_rotate(x, cos, sin, n, interleaved);
}

void right_scale_add(float *y, const float *x, float a, int n)
{
    fm_row_scale_add(y, x, a, n);
}

void right_quantise(uint16_t *q, float *scale, const uint16_t *x, int n)
{
    fm_row_quantise(q, scale, x, n);
}
