/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of many heads: which way its keys come, and its launch. */
#include "llm/kernel/cuda/mla_absorbed_copy.cuh"
#include "llm/kernel/cuda/mla_absorbed_wide.cuh"
#include "llm/kernel/cuda/mla_internal.h"

/* Some warps multiply, the others fill shared memory. */
template <class S>
FM_KERNEL(WIDE_THREADS, 1)
attend_wide(const fm_mla_absorbed_args a, const __grid_constant__ fm_tile_map keys,
            const __grid_constant__ fm_tile_map queries, int box)
{
    FM_SHARED_BYTES(memory);
    const wide_layout m(memory);
    wide_barriers_begin<S>(m);
    if (!a.settled) fm_grid_wait();
    if (threadIdx.x >= USERS) {
        fm_registers_down<FEEDER_REGISTERS>();
        if (!S::boxes)                           run_feed<S>(a, m);
        else if (threadIdx.x / 32 == USERS / 32) ask_for_all(a, m, {&keys, &queries, box});
    } else {
        fm_registers_up<USER_REGISTERS>();
        run_users<S>(a, m);
    }
}

typedef wide_shape<false, true>  boxes;
typedef wide_shape<false, false> any_pages;
typedef wide_shape<true, false>  any_bytes;

static int shared_bytes(void)
{
    unsigned char *const base = (unsigned char *)1024; /* any address: only the end counts */
    return (int)(wide_layout(base).end() - base);
}

fm_status fm__mla_absorbed_wide_init(void)
{
    FM_CUDA(fm_allow_shared(attend_wide<boxes>, shared_bytes()));
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
    const int64_t row = FM_MLA_WIDTH_MAX * 2, slots = (int64_t)1 << 31;
    const int     box = box_of(a->cache.page_size, KEYS);
    fm_tile_map   keys = {}, queries = {};
    if (S::boxes) {
        FM_TRY(fm_tile_map_rows(&keys, a->cache.latent, slots, row, row, box));
        FM_TRY(fm_tile_map_rows(&queries, a->q, (int64_t)a->rows.max_row * a->n_head, row, row,
                                WIDE_HEADS));
    }
    FM_LAUNCH_EARLY(attend_wide<S>, (unsigned)a->n_sm, WIDE_THREADS, shared_bytes(), stream, *a,
                    keys, queries, box);
    return fm_cuda_launched("mla wide");
}

fm_status fm__mla_absorbed_wide(const fm_mla_absorbed_args *a, fm_stream stream)
{
    if (a->cache.e4m3) return launch<any_bytes>(a, stream);
    return a->cache.page_size % 8 ? launch<any_pages>(a, stream) : launch<boxes>(a, stream);
}
