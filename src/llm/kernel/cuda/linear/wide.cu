/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of the wide dense product that are compiled. */
#include "llm/kernel/cuda/linear/wide.cuh"
#include "llm/kernel/cuda/linear/wide_two.cuh"

template <class S, bool GATED> FM_DEVICE void consume(wide_ring<S> ring, const fm_cuda_linear_args &a)
{
    if constexpr (S::TILES == 2)
        multiply_two<S, GATED>(ring, a);
    else
        multiply<S, GATED>(ring, a);
}

template <class S, bool GATED>
FM_KERNEL(S::THREADS, S::PER_SM)
linear_wide(const fm_cuda_linear_args a, const __grid_constant__ fm_tile_map w,
           const __grid_constant__ fm_tile_map x)
{
    FM_SHARED_BYTES(bytes);
    if (threadIdx.x == (unsigned)S::READERS) {
        fm_tile_map_prefetch(&w);
        fm_tile_map_prefetch(&x);
    }
    const wide_ring<S> ring = ring_begin<S>(bytes);
    if (threadIdx.x < (unsigned)S::READERS) {
        if (S::IS_DEEP) fm_registers_up<S::TILES == 2 ? 240 : 232>();
        consume<S, GATED>(ring, a);
    } else {
        if (S::IS_DEEP) fm_registers_down<S::TILES == 2 ? 24 : 40>();
        if (threadIdx.x == (unsigned)S::READERS) feed<S>(ring, a, &w, &x);
    }
    __syncwarp();
    fm_cluster_sync();
}

template <class S> struct wide_kernels {
    static inline int at_once; /* clusters */

    static fm_status init()
    {
        FM_CUDA(fm_allow_shared(linear_wide<S, false>, S::BYTES));
        FM_CUDA(fm_allow_shared(linear_wide<S, true>, S::BYTES));
        FM_CUDA(fm_cluster_count(&at_once, linear_wide<S, false>, S::THREADS, S::CLUSTER, S::BYTES));
        return FM_OK;
    }
    static int grid_of(const fm_cuda_linear_args &a)
    {
        const int64_t rows  = (a.n + S::ROWS * S::CLUSTER - 1) / (S::ROWS * S::CLUSTER);
        const int64_t tasks = rows * ((a.m + S::NT - 1) / S::NT);
        const int     given = a.n_sm * S::PER_SM / S::CLUSTER;
        const int     most  = given < at_once ? given : at_once;
        return (int)(tasks <= most ? tasks : most > 0 ? most : 1) * S::CLUSTER;
    }
    static fm_status launch(const fm_cuda_linear_args &a, fm_stream stream)
    {
        fm_tile_map w, x;
        FM_TRY(fm_tile_map_rows(&w, a.w, a.n, a.k, a.ldw, S::ROWS));
        FM_TRY(fm_tile_map_rows(&x, a.x, a.m, 2 * (int64_t)a.k, 2 * (int64_t)a.ldx, S::SHARE));
        if (a.swiglu)
            FM_LAUNCH_CLUSTER((linear_wide<S, true>), grid_of(a), S::THREADS, S::CLUSTER, S::BYTES,
                              stream, a, w, x);
        else
            FM_LAUNCH_CLUSTER((linear_wide<S, false>), grid_of(a), S::THREADS, S::CLUSTER, S::BYTES,
                              stream, a, w, x);
        return fm_cuda_launched("linear_wide");
    }
};

/* groups, tokens, stages, cluster, blocks of a multiprocessor, tiles */
using wide_64x64   = wide_kernels<wide_shape<1, 64, 4, 2, 2>>;
using wide_128x64  = wide_kernels<wide_shape<1, 128, 5, 4, 1>>;
using wide_64x128  = wide_kernels<wide_shape<2, 64, 6, 2, 1>>;
using wide_128x128 = wide_kernels<wide_shape<2, 128, 4, 2, 1>>;
using wide_128x256 = wide_kernels<wide_shape<2, 128, 3, 2, 1, 2>>;

typedef struct {
    fm_status (*init)(void);
    fm_status (*launch)(const fm_cuda_linear_args &, fm_stream);
} wide_entry;

static const wide_entry shapes[] = { /* in the order of fm_cuda_wide */
    {wide_64x64::init, wide_64x64::launch},
    {wide_128x64::init, wide_128x64::launch},
    {wide_64x128::init, wide_64x128::launch},
    {wide_128x128::init, wide_128x128::launch},
    {wide_128x256::init, wide_128x256::launch},
};

fm_status fm_cuda_linear_wide_init(void)
{
    for (const wide_entry &s : shapes) FM_TRY(s.init());
    return FM_OK;
}

fm_status fm_cuda_linear_wide(const fm_cuda_linear_args *a, fm_cuda_wide shape, fm_stream stream)
{
    FM_BUG_UNLESS(a->scale && a->n_batch == 1 && a->n_sm > 0 && a->scale_row0 % 16 == 0);
    FM_BUG_UNLESS(a->k % 16 == 0 && a->ldw % 16 == 0 && a->n % 2 == 0 && a->ldx % 8 == 0);
    FM_BUG_UNLESS(a->ldy % 2 == 0 && (!a->swiglu || (a->n % 32 == 0 && !a->accumulate)));
    FM_BUG_UNLESS((unsigned)shape < sizeof shapes / sizeof *shapes);
    if (a->m == 0 || a->n == 0) return FM_OK;
    return shapes[shape].launch(*a, stream);
}
