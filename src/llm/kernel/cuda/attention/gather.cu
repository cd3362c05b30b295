/* SPDX-License-Identifier: Apache-2.0 */
/* The cached tokens of prompt spans, out of their pages into one array that a
 * matrix product can expand.  A warp copies a token. */
#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/attention/tile.cuh"

enum { WARPS = 8 };

/* The last span that begins at or before `row` of the scratch. */
FM_DEVICE int span_of(const int32_t *key0, int n_span, int row)
{
    int low = 0, high = n_span;
    while (high - low > 1) {
        const int mid = (low + high) / 2;
        if (key0[mid] <= row) low = mid;
        else                  high = mid;
    }
    return low;
}

FM_DEVICE uint2 widen(uint32_t bytes, float scale)
{
    uint32_t v[2];
    fm_bf16x4_of_e4m3x4(v, bytes);
    return make_uint2(
        fm_bf16x2_of_f32(fm_f32_of_bf16_lo(v[0]) * scale, fm_f32_of_bf16_hi(v[0]) * scale),
        fm_bf16x2_of_f32(fm_f32_of_bf16_lo(v[1]) * scale, fm_f32_of_bf16_hi(v[1]) * scale));
}

template <bool E4M3> FM_KERNEL(WARPS * 32, 4) gather(const fm_mla_gather_args a)
{
    fm_grid_wait();
    const int n_span = min(*a.spans.n_span, a.spans.max_span), lane = threadIdx.x & 31;
    const int n_key = min(a.spans.key0[n_span], a.max_key), width = a.cache.width;
    for (int row = blockIdx.x * WARPS + (threadIdx.x >> 5); row < n_key; row += gridDim.x * WARPS) {
        const int      s     = span_of(a.spans.key0, n_span, row);
        const int32_t *table = a.cache.page + (int64_t)a.spans.span[s].table * a.cache.max_page;
        const int      pos   = a.spans.key_begin + row - a.spans.key0[s];
        const int64_t  slot  = fm__slot(table, a.cache.page_size, pos);
        uint16_t      *to    = a.latent + (int64_t)row * width;
        if (E4M3) {
            const uint32_t *from =
                (const uint32_t *)((const uint8_t *)a.cache.latent + slot * width);
            const float     scale = a.cache.slot_scale ? a.cache.slot_scale[slot] : a.cache.scale;
            for (int c = lane; c < width / 4; c += 32) ((uint2 *)to)[c] = widen(from[c], scale);
        } else {
            const uint4 *from = (const uint4 *)((const uint16_t *)a.cache.latent + slot * width);
            for (int c = lane; c < width / 8; c += 32) ((uint4 *)to)[c] = from[c];
        }
    }
}

extern "C" fm_status fm_cuda_mla_gather(const fm_mla_gather_args *a, fm_stream stream)
{
    if (a->cache.width % 32 || a->cache.page_size < 1)
        return fm_fail(FM_E_NOSUP, "attention: cached width %d, page size %d", a->cache.width,
                       a->cache.page_size);
    if (a->max_key < 1) return FM_OK;
    const int blocks = (a->max_key + WARPS - 1) / WARPS, most = 1024;
    if (a->cache.e4m3)
        FM_LAUNCH(gather<true>, blocks < most ? blocks : most, WARPS * 32, 0, stream, *a);
    else
        FM_LAUNCH(gather<false>, blocks < most ? blocks : most, WARPS * 32, 0, stream, *a);
    return fm_cuda_launched("mla gather");
}
