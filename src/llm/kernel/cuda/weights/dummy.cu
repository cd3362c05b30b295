/* SPDX-License-Identifier: Apache-2.0 */
/* Every thread makes 16 bytes at a time where it can: the memory decides the speed. */
#include "llm/kernel/cuda/weights/dummy.h"

#include "llm/kernel/cuda/ptx/launch.cuh"
#include "llm/load/dummy.h"

enum { THREADS = 256 };

static const int64_t most_blocks = 132 * 16; /* then each takes several turns */

FM_DEVICE void make(float *out, uint32_t u, const fm_cuda_dummy_args &a)
{
    *out = fm_dummy_f32(u, a.centre, a.step);
}

FM_DEVICE void make(fm_bf16 *out, uint32_t u, const fm_cuda_dummy_args &a)
{
    *out = fm_bf16_of_f32(fm_dummy_f32(u, a.centre, a.step));
}

FM_DEVICE void make(fm_fp8 *out, uint32_t u, const fm_cuda_dummy_args &)
{
    *out = fm_dummy_fp8(u);
}

/* WIDE elements of one row at a time. */
template <class T, int WIDE> FM_KERNEL(THREADS) make_values(const fm_cuda_dummy_args a)
{
    const int64_t per_row = a.k / WIDE, n = a.n * per_row, stride = (int64_t)gridDim.x * THREADS;
    for (int64_t w = (int64_t)blockIdx.x * THREADS + threadIdx.x; w < n; w += stride) {
        const int64_t   r = w / per_row, c = w % per_row * WIDE;
        const uint64_t  i = (uint64_t)((a.row0 + r) * a.cols + a.col0 + c);
        __align__(16) T value[WIDE];
#pragma unroll
        for (int j = 0; j < WIDE; j++) make(&value[j], fm_rng_u32(a.key, i + (uint64_t)j), a);
        T *to = (T *)a.dst + (r / a.group * a.spread + r % a.group + a.first) * a.ld + c;
        if (WIDE == 1)
            *to = value[0];
        else
            *(uint4 *)to = *(const uint4 *)value;
    }
}

template <class T> static fm_status start(const fm_cuda_dummy_args *a, fm_stream stream)
{
    const int      wide = 16 / (int)sizeof(T);
    const bool     fits = a->k % wide == 0 && a->ld % wide == 0 && (uintptr_t)a->dst % 16 == 0;
    const int64_t  n = a->n * (fits ? a->k / wide : a->k), blocks = (n + THREADS - 1) / THREADS;
    const unsigned grid = (unsigned)(blocks < most_blocks ? blocks : most_blocks);
    if (n == 0) return FM_OK;
    if (fits)
        FM_LAUNCH((make_values<T, 16 / (int)sizeof(T)>), grid, THREADS, 0, stream, *a);
    else
        FM_LAUNCH((make_values<T, 1>), grid, THREADS, 0, stream, *a);
    return fm_cuda_launched("make_values");
}

fm_status fm_cuda_dummy(const fm_cuda_dummy_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->n >= 0 && a->k >= 0 && a->group > 0 && a->spread >= a->group);
    FM_BUG_UNLESS(a->type == FM_F32 || a->type == FM_BF16 || a->type == FM_FP8);
    if (a->type == FM_F32) return start<float>(a, stream);
    return a->type == FM_BF16 ? start<fm_bf16>(a, stream) : start<fm_fp8>(a, stream);
}
