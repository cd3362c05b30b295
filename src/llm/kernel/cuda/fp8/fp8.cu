/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of the E4M3 product that are compiled (fp8.c has the choice). */
#include "llm/kernel/cuda/fp8/tokens.cuh"

template <class S, bool GATED>
FM_KERNEL(S::THREADS, 1)
fp8_product(const fm_cuda_fp8_args a, const __grid_constant__ fm_tile_map w,
            const __grid_constant__ fm_tile_map x)
{
    FM_SHARED_BYTES(bytes);
    const fp8_ring<S> ring = ring_begin<S>(bytes);
    fm_grid_wait();
    fm_grid_release();
    const int n_block = count_blocks<S>(a);
    if (own_group() == S::GROUPS) {
        if (S::IS_DEEP) fm_registers_down<24>();
        bring_tasks<S>(ring, a, n_block, &w, &x);
    } else {
        if (S::IS_DEEP) fm_registers_up<S::REGISTERS>();
        if constexpr (S::BY_TOKEN)
            multiply_tasks_by_token<S, GATED>(ring, a, n_block);
        else
            multiply_tasks<S, GATED>(ring, a, n_block);
    }
    __syncwarp();
    fm_cluster_sync(); /* others may still write here */
}

/* Blocks there can be at most. */
template <class S> static int64_t most_blocks(const fm_cuda_fp8_args &a)
{
    return a.block ? a.max_block : (a.n_row + S::NT - 1) / S::NT;
}

template <class S> struct fp8_kernel {
    static inline int at_once; /* clusters of the device */

    static fm_status init()
    {
        FM_CUDA((fm_allow_shared(fp8_product<S, false>, S::BYTES)));
        if constexpr (S::ROWS % 128 == 0)
            FM_CUDA((fm_allow_shared(fp8_product<S, true>, S::BYTES)));
        FM_CUDA(
            (fm_cluster_count(&at_once, fp8_product<S, false>, S::THREADS, S::CLUSTER, S::BYTES)));
        return FM_OK;
    }
    static int grid_of(const fm_cuda_fp8_args &a)
    {
        const int64_t each  = (a.n + S::ROWS * S::CLUSTER - 1) / (S::ROWS * S::CLUSTER);
        const int64_t tasks = each * most_blocks<S>(a);
        const int     most  = a.n_sm / S::CLUSTER < at_once ? a.n_sm / S::CLUSTER : at_once;
        return (int)(tasks < most ? tasks : most > 0 ? most : 1) * S::CLUSTER;
    }
    template <bool GATED>
    static fm_status start(const fm_cuda_fp8_args &a, const fm_tile_map &w, const fm_tile_map &x,
                           fm_stream stream)
    {
        FM_LAUNCH_CLUSTER((fp8_product<S, GATED>), grid_of(a), S::THREADS, S::CLUSTER, S::BYTES,
                          stream, a, w, x);
        return fm_cuda_launched("fp8_product");
    }
    static fm_status launch(const fm_cuda_fp8_args &a, fm_stream stream)
    {
        const int64_t experts = a.block ? a.n_expert : 1;
        fm_tile_map   w, x = {};
        if (most_blocks<S>(a) == 0) return FM_OK;
        FM_TRY(fm_tile_map_rows(&w, a.w, experts * a.n, a.k, a.k, S::ROWS < 128 ? S::ROWS : 128));
        if (!S::GATHER) FM_TRY(fm_tile_map_rows(&x, a.x, a.n_row, a.k, a.k, S::BOX));
        if (a.out != FM_CUDA_FP8_SWIGLU) return start<false>(a, w, x, stream);
        if constexpr (S::ROWS % 128 == 0) return start<true>(a, w, x, stream);
        return fm_fail(FM_E_NOSUP, "fp8: no SwiGLU by %d rows of weights", (int)S::ROWS);
    }
};

/* pairs, warpgroups, tiles of each, stages, cluster, gathers, by token */
using fp8_8x64    = fp8_kernel<fp8_shape<8, 1, 1, 20, 1, true>>;
using fp8_16x64   = fp8_kernel<fp8_shape<16, 1, 1, 16, 1, true>>;
using fp8_8x128   = fp8_kernel<fp8_shape<8, 2, 1, 11, 1, true>>;
using fp8_16x128  = fp8_kernel<fp8_shape<16, 2, 1, 11, 1, true>>;
using fp8_32x128  = fp8_kernel<fp8_shape<32, 2, 1, 10, 1, true>>;
using fp8_64x128  = fp8_kernel<fp8_shape<64, 2, 1, 8, 1, true>>;
using fp8_8x256   = fp8_kernel<fp8_shape<8, 2, 2, 6, 1, true>>;
using fp8_16x256  = fp8_kernel<fp8_shape<16, 2, 2, 6, 1, true>>;
using fp8_32x256  = fp8_kernel<fp8_shape<32, 2, 2, 6, 1, true>>;
using fp8_128x128 = fp8_kernel<fp8_shape<128, 2, 1, 6, 1, false>>;
using fp8_128x256 = fp8_kernel<fp8_shape<128, 2, 2, 4, 1, false, true>>;
using fp8_192x128 = fp8_kernel<fp8_shape<192, 3, 1, 5, 2, false, true>>;

typedef struct {
    fm_status (*init)(void);
    fm_status (*launch)(const fm_cuda_fp8_args &, fm_stream);
} fp8_entry;

static const fp8_entry shapes[FM_CUDA_N_FP8] = {
    /* in the order of fm_cuda_fp8_tile */
    {fp8_8x64::init, fp8_8x64::launch},       {fp8_16x64::init, fp8_16x64::launch},
    {fp8_8x128::init, fp8_8x128::launch},     {fp8_16x128::init, fp8_16x128::launch},
    {fp8_32x128::init, fp8_32x128::launch},   {fp8_64x128::init, fp8_64x128::launch},
    {fp8_8x256::init, fp8_8x256::launch},     {fp8_16x256::init, fp8_16x256::launch},
    {fp8_32x256::init, fp8_32x256::launch},   {fp8_128x128::init, fp8_128x128::launch},
    {fp8_128x256::init, fp8_128x256::launch}, {fp8_192x128::init, fp8_192x128::launch},
};

fm_status fm_cuda_fp8_init(void)
{
    for (const fp8_entry &s : shapes) FM_TRY(s.init());
    return FM_OK;
}

static void check(const fm_cuda_fp8_args *a)
{
    FM_BUG_UNLESS(a->k > 0 && a->k % 16 == 0 && a->n % 2 == 0 && a->ldy % 2 == 0 && a->n_sm > 0);
    FM_BUG_UNLESS(a->scale_row0 % 16 == 0 && a->scale_row0 < 128);
    FM_BUG_UNLESS(a->out != FM_CUDA_FP8_SWIGLU || a->n % 32 == 0);
}

fm_status fm_cuda_fp8_by(const fm_cuda_fp8_args *a, fm_cuda_fp8_tile shape, fm_stream stream)
{
    check(a);
    FM_BUG_UNLESS((unsigned)shape < FM_CUDA_N_FP8);
    if (a->n == 0 || (!a->block && a->n_row == 0)) return FM_OK;
    return shapes[shape].launch(*a, stream);
}
