/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel around producer and consumers of the ring. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_TMA_KERNEL_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_TMA_KERNEL_CUH

#include "llm/kernel/cuda/experts/bytes.cuh"
#include "llm/kernel/cuda/experts/wide.cuh"

/* What the warpgroups that multiply do. */
template <class S, tile_out OUT>
FM_DEVICE void multiply_tasks(const uint8_t *bytes, wide_shared<S> &own, const tile_args &a,
                              int n_block)
{
    wide_place p      = {0, 0};
    task_walk  walk   = {0, (int)blockIdx.x};
    tile_task  listed = listed_task<S>(a, walk, n_block);
    while (listed.n_pair) {
        const tile_task task = own_part<S>(listed);
        walk_on<S>(walk);
        listed = listed_task<S>(a, walk, n_block); /* known when this one is done */
        if constexpr (S::FP8)
            byte_task<S, OUT>(bytes, own, p, a, task);
        else
            token_task<S, OUT>(bytes, own, p, a, task);
    }
}

template <class S, tile_out OUT, bool GATHER>
FM_KERNEL(S::THREADS, 1)
grouped_wide(const tile_args a, const __grid_constant__ fm_tile_map w,
             const __grid_constant__ fm_tile_map x)
{
    FM_SHARED_BYTES(bytes);
    __shared__ wide_shared<S> own;
    barriers_begin(own.full, own.empty, S::STAGES, GATHER ? 129 : 1,
                   4 * S::GROUPS * S::CLUSTER);
    wait_for_predecessor();
    const int n_block = count_blocks<S>(a);
    if (own_group() == S::GROUPS) {
        fm_registers_down<S::FEW>();
        bring_tasks<S, GATHER>(bytes, own, a, n_block, &w, &x);
    } else {
        fm_registers_up<S::REGISTERS>();
        multiply_tasks<S, OUT>(bytes, own, a, n_block);
    }
    if (S::CLUSTER > 1) {
        __syncwarp();
        fm_cluster_sync(); /* others may still write here */
    }
}

/* The first phase picks its rows, the second finds them one after the other. */
template <class S, tile_out OUT> struct wide_kernel {
    using shape                  = S;
    static constexpr bool GATHER = OUT == OUT_SWIGLU;

    static inline int at_once; /* clusters of the device */

    static cudaError_t init()
    {
        const cudaError_t e = fm_allow_shared(grouped_wide<S, OUT, GATHER>, S::BYTES);
        return e != cudaSuccess ? e
                                : fm_cluster_count(&at_once, grouped_wide<S, OUT, GATHER>,
                                                   S::THREADS, S::CLUSTER, S::BYTES);
    }
    static int grid_of(const tile_args &a, int max_block, int n_sm)
    {
        const int64_t tasks = (int64_t)((a.n + S::ROWS - 1) / S::ROWS) * max_block * S::PARTS;
        const int     most  = n_sm / S::CLUSTER < at_once ? n_sm / S::CLUSTER : at_once;
        const int     every = (most > 0 ? most : 1) * S::CLUSTER;
        return tasks < every ? (int)tasks : every;
    }
    static fm_status launch(const tile_args &a, int max_block, int n_sm, fm_stream stream)
    {
        const int64_t row = (int64_t)a.k * (S::FP8 ? 1 : 2);
        fm_tile_map   w, x = {};
        FM_TRY(fm_tile_map_rows(&w, a.w, (int64_t)a.n_expert * a.n, row, row, S::PIECE));
        if (!GATHER)
            FM_TRY(fm_tile_map_rows(&x, a.x, a.n_row, 2 * a.k, 2 * a.ldx, S::BOX));
        FM_LAUNCH_CLUSTER((grouped_wide<S, OUT, GATHER>), grid_of(a, max_block, n_sm), S::THREADS,
                          S::CLUSTER, S::BYTES, stream, a, w, x);
        return fm_cuda_launched("experts");
    }
};

#endif
