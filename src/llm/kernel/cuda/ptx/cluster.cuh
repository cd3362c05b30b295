/* SPDX-License-Identifier: Apache-2.0 */
/* Thread blocks that run at the same time on neighbouring multiprocessors: what several
 * of them need is read once and lands in the shared memory of each.
 *
 *     FM_LAUNCH_CLUSTER(kernel, grid, block, n, smem_bytes, stream, ...);    grid.x % n == 0
 *     one thread:   fm_mbarrier_init(...); fm_cluster_show_barriers();
 *     all:          fm_cluster_sync();
 *     one thread:   fm_bulk_tile_to_all(smem, &map, 0, row, &full, n);
 *     readers:      fm_mbarrier_arrive_at(&empty, r);         at that of block r
 *     all:          fm_cluster_sync();                        none leaves before the others
 *
 * The emulator runs one thread block after the other, so FM_CLUSTER_MOST is 1 there:
 * shapes take fm_cluster_of(n). */
#ifndef FM_LLM_KERNEL_CUDA_PTX_CLUSTER_CUH
#define FM_LLM_KERNEL_CUDA_PTX_CLUSTER_CUH

#include "llm/kernel/cuda/ptx/bulk.cuh"

enum { FM_CLUSTER_MOST = 8 };

static constexpr int fm_cluster_of(int n) { return n < FM_CLUSTER_MOST ? n : FM_CLUSTER_MOST; }

/* Which block of its cluster this is. */
FM_DEVICE int fm_cluster_rank()
{
    uint32_t r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return (int)r;
}

/* By the thread that made them, before fm_cluster_sync(). */
FM_DEVICE void fm_cluster_show_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* All threads of all blocks. */
FM_DEVICE void fm_cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Arrives at block `rank`'s barrier of the same name.  For stages that were read: what this
 * thread wrote is not shown to the other blocks. */
FM_DEVICE void fm_mbarrier_arrive_at(fm_mbarrier *b, int rank)
{
    asm volatile("{ .reg .b32 there;\n\t"
                 "mapa.shared::cluster.u32 there, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(
                     fm_shared_address(b)),
                 "r"(rank)
                 : "memory");
}

/* fm_bulk_tile() into the same place of the first n blocks; each block's own mbarrier b counts the bytes. */
FM_DEVICE void fm_bulk_tile_to_all(void *smem, const fm_tile_map *map, int at, int row,
                                   fm_mbarrier *b, int n)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
                     fm_shared_address(smem)),
                 "l"(map), "r"(at), "r"(row), "r"(fm_shared_address(b)),
                 "h"((uint16_t)((1 << n) - 1))
                 : "memory");
}

/* How many clusters of n blocks run at a time: multiprocessors come in groups that n may
 * not divide. */
template <class K>
static inline cudaError_t fm_cluster_count(int *out, K *kernel, int threads, int n, int smem_bytes)
{
    cudaLaunchAttribute with    = {};
    with.id                     = cudaLaunchAttributeClusterDimension;
    with.val.clusterDim         = {(unsigned)n, 1, 1};
    cudaLaunchConfig_t c        = {};
    c.gridDim                   = dim3((unsigned)n);
    c.blockDim                  = dim3((unsigned)threads);
    c.dynamicSmemBytes          = (size_t)smem_bytes;
    c.attrs                     = &with;
    c.numAttrs                  = 1;
    return cudaOccupancyMaxActiveClusters(out, (const void *)kernel, &c);
}

/* Like FM_LAUNCH_EARLY. */
#define FM_LAUNCH_CLUSTER(kernel, grid, block, n, smem_bytes, stream, ...)                         \
    fm_launch_cluster(kernel, (grid), (block), (n), (smem_bytes), (stream), __VA_ARGS__)

template <class... P, class... A>
static inline void fm_launch_cluster(void (*kernel)(P...), dim3 grid, dim3 block, int n,
                                     size_t smem_bytes, fm_stream stream, A... arg)
{
    cudaLaunchAttribute with[2] = {};
    with[0].id                  = cudaLaunchAttributeProgrammaticStreamSerialization;
    with[0].val.programmaticStreamSerializationAllowed = 1;
    with[1].id                                         = cudaLaunchAttributeClusterDimension;
    with[1].val.clusterDim                             = {(unsigned)n, 1, 1};

    cudaLaunchConfig_t c = {};
    c.gridDim            = grid;
    c.blockDim           = block;
    c.dynamicSmemBytes   = smem_bytes;
    c.stream             = (cudaStream_t)stream;
    c.attrs              = with;
    c.numAttrs           = 2;
    (void)cudaLaunchKernelEx(&c, kernel, static_cast<P>(arg)...); /* fm_cuda_launched() reports */
}

#endif
