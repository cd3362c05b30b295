/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads: what the two warpgroups have in registers when a part ends,
 * as the answer or as a part of it. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_WIDE_END_CUH
#define FM_LLM_KERNEL_CUDA_ATTENTION_ABSORBED_WIDE_END_CUH

#include "llm/kernel/cuda/attention/absorbed_feed.cuh"

enum { WG_COLUMNS = FM_MLA_LATENT_MAX / 2 };

/* A thread of a warpgroup: its heads are head and head + 8. */
struct wide_place {
    int group, thread, lane, head;
};

/* Of two lanes the lower gets both x, the upper both y. */
template <class T> FM_DEVICE void transpose_pair(T &x, T &y, int lanes)
{
    const bool upper = threadIdx.x & lanes;
    const T    got   = __shfl_xor_sync(FM_WARP, upper ? x : y, lanes);
    if (upper) x = got;
    else       y = got;
}

/* Two neighbouring columns of one head: of the answer, or of a part. */
template <bool WHOLE> FM_DEVICE uint32_t mean_of(const float *z, float f)
{
    return WHOLE ? fm_bf16x2_of_f32(z[0] * f, z[1] * f) : fm_f16x2_of_f32(z[0] * f, z[1] * f);
}

/* A head's columns of this warpgroup.  Four lanes have 32 of them at a time, each two of every
 * eight: they exchange them so that each lane stores eight that are neighbours. */
template <bool WHOLE>
FM_DEVICE void store_mean(uint16_t *to, const wide_place &w, const float *z, float f, bool there)
{
#pragma unroll
    for (int j = 0; j < WG_COLUMNS / 8; j += 4) {
        uint4 x = make_uint4(mean_of<WHOLE>(z + 4 * j, f), mean_of<WHOLE>(z + 4 * j + 4, f),
                             mean_of<WHOLE>(z + 4 * j + 8, f), mean_of<WHOLE>(z + 4 * j + 12, f));
        transpose_pair(x.x, x.y, 1);
        transpose_pair(x.z, x.w, 1);
        transpose_pair(x.x, x.z, 2);
        transpose_pair(x.y, x.w, 2);
        if (there) *(uint4 *)(to + 8 * j + w.lane % 4 * 8) = x;
    }
}

FM_DEVICE void end_part(const fm_mla_absorbed_args &a, int unit, int group, const wide_place &w,
                        const cursor &at, const float (&z)[WG_COLUMNS / 2], const float max[2],
                        const float total[2])
{
    const bool whole = is_whole(a.rows, at.unit);
    const int  index = whole ? at.unit.row : unit;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int head = group * WIDE_HEADS + w.head + 8 * r;
        if (w.group == 0 && w.lane % 4 == 0 && head < a.n_head)
            store_sum(a, unit, head, max[r], total[r]);
        const int64_t to = ((int64_t)index * a.n_head + head) * FM_MLA_LATENT_MAX +
                           w.group * WG_COLUMNS;
        const float f = 1.0f / total[r];
        if (whole) store_mean<true>(a.z + to, w, z + 2 * r, f, head < a.n_head);
        else       store_mean<false>(a.part_z + to, w, z + 2 * r, f, head < a.n_head);
    }
}

#endif
