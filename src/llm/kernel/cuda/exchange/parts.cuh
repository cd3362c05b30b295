/* SPDX-License-Identifier: Apache-2.0 */
/* fm_share_of() of weights/shard.h, on the device. */
#ifndef FM_LLM_KERNEL_CUDA_EXCHANGE_PARTS_CUH
#define FM_LLM_KERNEL_CUDA_EXCHANGE_PARTS_CUH

#include "llm/kernel/cuda/exchange/columns.h"
#include "llm/kernel/cuda/ptx/launch.cuh"

typedef struct {
    int begin, end;
} fm__span;

/* Part `part` in columns. */
FM_DEVICE fm__span fm__part_at(const fm_cuda_parts &p, int part)
{
    const int64_t blocks = (p.n + p.unit - 1) / p.unit;
    const int64_t begin  = blocks * part / p.n_part * p.unit,
                  end    = blocks * (part + 1) / p.n_part * p.unit;
    fm__span      s;
    s.begin = (int)(begin < p.n ? begin : p.n) * p.width;
    s.end   = (int)(end < p.n ? end : p.n) * p.width;
    return s;
}

/* The part that has thing i: the last that begins at its block or before. */
FM_DEVICE int fm__part_with(const fm_cuda_parts &p, int i)
{
    const int64_t blocks = (p.n + p.unit - 1) / p.unit;
    return (int)(((int64_t)(i / p.unit + 1) * p.n_part - 1) / blocks);
}

FM_DEVICE fm__span fm__shared_span(fm__span a, fm__span b)
{
    fm__span s;
    s.begin = a.begin > b.begin ? a.begin : b.begin;
    s.end   = a.end < b.end ? a.end : b.end;
    if (s.end < s.begin) s.end = s.begin;
    return s;
}

#endif
