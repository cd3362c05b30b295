/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt's side of linear.h as plain loops, for tests without a GPU: the chain
 * of k16 steps that the emulator's tensor cores make. */
#include "base/number.h"
#include "emulator/call.h"
#include "llm/kernel/cuda/linear/linear.h"

struct fm_cuda_lt {
    char nothing;
};

static fm_cuda_lt only;

fm_status fm_cuda_lt_create(fm_cuda_lt **out, void *workspace, size_t workspace_bytes)
{
    FM_BUG_UNLESS((uintptr_t)workspace % FM_CUDA_LT_ALIGN == 0);
    (void)workspace_bytes;
    *out = &only;
    return FM_OK;
}

void fm_cuda_lt_destroy(fm_cuda_lt *lt)
{
    (void)lt;
}

fm_status fm_cuda_lt_plan(fm_cuda_lt *lt, const fm_cuda_linear_args *a)
{
    FM_BUG_UNLESS(lt == &only);
    return a->scale ? fm_fail(FM_E_NOSUP, "e4m3 weights") : FM_OK;
}

static double product(const fm_cuda_linear_args *a, int b, int i, int j, int k)
{
    const uint16_t *x = a->x + b * a->x_stride + (int64_t)i * a->ldx;
    const uint16_t *w = (const uint16_t *)a->w + b * a->w_stride;
    return (double)fm_f32_of_bf16(x[k]) *
           fm_f32_of_bf16(w[a->by_k ? (int64_t)k * a->ldw + j : (int64_t)j * a->ldw + k]);
}

static float dot(const fm_cuda_linear_args *a, int b, int i, int j)
{
    float s = 0;
    for (int k0 = 0; k0 < a->k; k0 += 16) {
        double step = 0;
        for (int k = k0; k < k0 + 16 && k < a->k; k++) step += product(a, b, i, j, k);
        s = (float)(s + step);
    }
    return s;
}

static void multiply(const void *args)
{
    const fm_cuda_linear_args *a = args;
    for (int b = 0; b < a->n_batch; b++)
        for (int i = 0; i < a->m; i++)
            for (int j = 0; j < a->n; j++) {
                const int64_t at = b * a->y_stride + (int64_t)i * a->ldy + j;
                const float   s  = dot(a, b, i, j);
                if (a->y_bf16)
                    ((uint16_t *)a->y)[at] = fm_bf16_of_f32(s);
                else
                    ((float *)a->y)[at] = s + (a->accumulate ? ((float *)a->y)[at] : 0);
            }
}

fm_status fm_cuda_lt_run(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    (void)stream;
    FM_TRY(fm_cuda_lt_plan(lt, a));
    fm_emu_call(multiply, a, sizeof *a);
    return FM_OK;
}
