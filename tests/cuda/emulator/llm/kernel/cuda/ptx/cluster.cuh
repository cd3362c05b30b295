/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's twin of src/llm/kernel/cuda/ptx/cluster.cuh: a cluster is one thread
 * block. */
#ifndef FM_LLM_KERNEL_CUDA_CLUSTER_CUH
#define FM_LLM_KERNEL_CUDA_CLUSTER_CUH

#include "llm/kernel/cuda/ptx/bulk.cuh"

enum { FM_CLUSTER_MOST = 1 };

static constexpr int fm_cluster_of(int n) { return n < FM_CLUSTER_MOST ? n : FM_CLUSTER_MOST; }

FM_DEVICE int fm_cluster_rank() { return 0; }

FM_DEVICE void fm_cluster_show_barriers() {}

FM_DEVICE void fm_cluster_sync() { fm_emu_barrier(0, 0); }

FM_DEVICE void fm_mbarrier_arrive_at(fm_mbarrier *b, int) { fm_mbarrier_arrive(b); }

FM_DEVICE void fm_bulk_tile_to_all(void *smem, const fm_tile_map *map, int at, int row,
                                   fm_mbarrier *b, int)
{
    fm_bulk_tile(smem, map, at, row, b);
}

template <class K>
static inline cudaError_t fm_cluster_count(int *out, K *, int, int, int)
{
    *out = 1 << 20;
    return cudaSuccess;
}

#define FM_LAUNCH_CLUSTER(kernel, grid, block, n, smem_bytes, stream, ...)                         \
    ((void)(n), FM_LAUNCH_EARLY(kernel, grid, block, smem_bytes, stream, __VA_ARGS__))

#endif
