/* SPDX-License-Identifier: Apache-2.0 */
/* The second reading, of rows that are cut or want log-probabilities: the sum of
 * weights, and how many tokens are near the best one. */
#include "llm/kernel/cuda/sample/sample.cuh"

FM_DEVICE void take_token(fm__rings *r, float distance)
{
    const fm__u64 w = fm__fixed(fm__weight(distance));
    r->z += w;
#pragma unroll
    for (int k = 0; k < FM__RINGS; k++)
        if (distance < fm__ring(k)) r->n[k]++, r->sum[k] += w;
}

FM_KERNEL(FM__ROW_THREADS) weigh_parts(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    __shared__ fm__rings part[FM__ROW_WARPS];
    fm__row_begin();
    const int row = (int)blockIdx.y, begin = (int)blockIdx.x * s.part,
              end            = min(begin + s.part, a.vocab);
    const fm_cuda_sampling h = a.how[row];
    if (!fm__needs_rings(h, a.vocab)) return;
    const fm__u64 best = fm__best_of_row(s, row).key;
    const fm__row x    = fm__row_of(a, row, h, best);
    fm__rings     r    = {};
    for (int i = begin + 4 * (int)threadIdx.x; best && i < end; i += 4 * FM__ROW_THREADS) {
        const float4 v = fm__logits4(x.logits, i, x.vocab); /* what is not there weighs nothing */
        take_token(&r, fm__distance_in(x, v.x));
        take_token(&r, fm__distance_in(x, v.y));
        take_token(&r, fm__distance_in(x, v.z));
        take_token(&r, fm__distance_in(x, v.w));
    }
    r = fm__rings_of_warp(r);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = r;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    r = threadIdx.x < FM__ROW_WARPS ? part[threadIdx.x] : fm__rings{};
    r = fm__rings_of_warp(r);
    if (threadIdx.x == 0) s.rings[(size_t)row * (size_t)s.n_part + blockIdx.x] = r;
}

fm_status fm__sample_weigh(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                           fm_stream stream)
{
    const dim3 parts((unsigned)s->n_part, (unsigned)a->n_row);
    FM_LAUNCH_EARLY(weigh_parts, parts, FM__ROW_THREADS, 0, stream, *a, *s);
    return fm_cuda_launched("weigh_parts");
}
