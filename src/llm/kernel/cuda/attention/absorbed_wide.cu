/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads: which way its keys come, and its launch. */
#include "llm/kernel/cuda/attention/absorbed_copy.cuh"
#include "llm/kernel/cuda/attention/absorbed_wide.cuh"
#include "llm/kernel/cuda/attention/mla_internal.h"
#include "llm/kernel/cuda/variants.h"

/* Boxes need one warp of each stage's. */
template <class S>
FM_DEVICE void run_feeders(const fm_mla_absorbed_args &a, const wide_layout &m,
                           const wide_maps &maps)
{
    const int warp = __shfl_sync(FM_WARP, (int)(threadIdx.x - USERS) / 32, 0); /* of all lanes */
    if (!S::boxes)          run_copies<S>(a, m, warp / FEEDER_WARPS);
    else if (warp % 2 == 0) run_boxes<S>(a, m, maps, warp / FEEDER_WARPS);
}

/* Some warps multiply, the others fill shared memory. */
template <class S>
FM_KERNEL(WIDE_THREADS, 1)
attend_wide(const fm_mla_absorbed_args a, const __grid_constant__ fm_tile_map keys,
            const __grid_constant__ fm_tile_map queries, int box)
{
    FM_SHARED_BYTES(memory);
    const wide_layout m(memory);
    const int         group = __shfl_sync(FM_WARP, (int)threadIdx.x / GROUP, 0); /* of all lanes */
    wide_barriers_begin<S>(m);
    if (!a.settled) fm_grid_wait();
    if (group == USERS / GROUP) {
        fm_registers_down<FEEDER_REGISTERS>();
        run_feeders<S>(a, m, {&keys, &queries, box});
    } else {
        fm_registers_up<USER_REGISTERS>();
        if (group == 0) run_users<S, 0>(a, m);
        else            run_users<S, 1>(a, m);
    }
    if (S::blocks > 1) fm_cluster_sync(); /* none leaves before the others */
}

/* Two groups of heads see the same keys: a cluster of two reads them once. */
enum { TWO = fm_cluster_of(2) };

typedef wide_shape<false, true, 1>   boxes;
typedef wide_shape<false, true, TWO> boxes_for_two;
typedef wide_shape<true, true, 1>    byte_boxes;
typedef wide_shape<true, true, TWO>  byte_boxes_for_two;
typedef wide_shape<false, false, 1>  any_pages;
typedef wide_shape<true, false, 1>   any_bytes;

static int shared_bytes(void)
{
    unsigned char *const base = (unsigned char *)1024; /* any address: only the end counts */
    return (int)(wide_layout(base).end() - base);
}

fm_status fm__mla_absorbed_wide_init(void)
{
    FM_CUDA(fm_allow_shared(attend_wide<boxes>, shared_bytes()));
    FM_CUDA(fm_allow_shared(attend_wide<boxes_for_two>, shared_bytes()));
    FM_CUDA(fm_allow_shared(attend_wide<byte_boxes>, shared_bytes()));
    FM_CUDA(fm_allow_shared(attend_wide<byte_boxes_for_two>, shared_bytes()));
    FM_CUDA(fm_allow_shared(attend_wide<any_pages>, shared_bytes()));
    FM_CUDA(fm_allow_shared(attend_wide<any_bytes>, shared_bytes()));
    return FM_OK;
}

/* Keys that lie one behind the other whatever the page, so that a box has no gap. */
static int box_of(int page_size, int most)
{
    int box = 1;
    while (box < most && page_size % (2 * box) == 0) box *= 2;
    return box;
}

template <class S> static fm_status launch(const fm_mla_absorbed_args *a, fm_stream stream)
{
    const int64_t  q_bytes = FM_MLA_WIDTH_MAX * 2, key_bytes = q_bytes / (S::bytes ? 2 : 1);
    const int64_t  slots = (int64_t)1 << 31;
    const int      box = box_of(a->cache.page_size, KEYS);
    const unsigned grid = (unsigned)(a->n_sm / S::blocks * S::blocks);
    fm_tile_map    keys = {}, queries = {};
    if (S::boxes) {
        FM_TRY(fm_tile_map_rows(&keys, a->cache.latent, slots, key_bytes, key_bytes, box));
        FM_TRY(fm_tile_map_rows(&queries, a->q, (int64_t)a->rows.max_row * a->n_head, q_bytes,
                                q_bytes, WIDE_HEADS));
    }
    FM_LAUNCH_CLUSTER(attend_wide<S>, grid, WIDE_THREADS, S::blocks, shared_bytes(), stream, *a,
                      keys, queries, box);
    return fm_cuda_launched("mla wide");
}

template <class ONE, class BOTH>
static fm_status launch_boxes(const fm_mla_absorbed_args *a, fm_stream stream)
{
    const int groups = (a->n_head + WIDE_HEADS - 1) / WIDE_HEADS;
    const int shares = groups % TWO == 0 && a->n_sm >= TWO &&
                       !fm_cuda_leaves_out(FM_VARIANT_ATTEND_TWO);
    return shares ? launch<BOTH>(a, stream) : launch<ONE>(a, stream);
}

fm_status fm__mla_absorbed_wide(const fm_mla_absorbed_args *a, fm_stream stream)
{
    const bool bytes = a->cache.e4m3;
    if (a->cache.page_size % 8 || fm_cuda_leaves_out(FM_VARIANT_ATTEND_BOXES))
        return bytes ? launch<any_bytes>(a, stream) : launch<any_pages>(a, stream);
    return bytes ? launch_boxes<byte_boxes, byte_boxes_for_two>(a, stream)
                 : launch_boxes<boxes, boxes_for_two>(a, stream);
}
