/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk asynchronous copies (TMA) and the mbarriers they arrive at.
 *
 *     __shared__ fm_mbarrier full;           or 8 bytes of dynamic shared memory
 *     one thread:   fm_mbarrier_init(&full, 1);
 *     all:          __syncthreads();
 *     one thread:   fm_mbarrier_expect(&full, bytes);      its arrival, and what will come
 *                   fm_bulk_tile(smem, &map, 0, row, &full);
 *     readers:      fm_mbarrier_wait(&full, 0);            parity 0, then 1, then 0 ...
 *
 * A barrier goes through phases.  A phase ends when the threads it was made for have
 * arrived and all bytes announced have landed; fm_mbarrier_wait(b, p) returns when the
 * phase of parity p has ended, so on a new barrier a wait with parity 1 returns at once:
 * that is how a ring begins with empty stages.  What a wait lets through is visible,
 * also to wgmma where it came by a bulk copy.
 *
 * A reader that has done with a stage arrives at its `empty` barrier; no other fence
 * stands between its reads and a copy into the stage (the products it started must be
 * waited for).  Each of these has a twin in tests/cuda/emulator, where a copy lands as
 * late as it may. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_BULK_CUH
#define FM_LLM_KERNEL_CUDA_PTX_BULK_CUH

#include <cuda.h>

#include "llm/kernel/cuda/ptx/ptx.cuh"

typedef uint64_t fm_mbarrier; /* in shared memory, 8-byte aligned */

/* --- barriers --------------------------------------------------------------- */

/* By one thread; a __syncthreads() shows it to the others. */
FM_DEVICE void fm_mbarrier_init(fm_mbarrier *b, int n_arrive)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.proxy.async.shared::cta;" ::"r"(
                     fm_shared_address(b)),
                 "r"(n_arrive)
                 : "memory");
}

FM_DEVICE void fm_mbarrier_arrive(fm_mbarrier *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(fm_shared_address(b)) : "memory");
}

/* Arrives, and announces bytes that bulk copies will bring in this phase. */
FM_DEVICE void fm_mbarrier_expect(fm_mbarrier *b, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     fm_shared_address(b)),
                 "r"(bytes)
                 : "memory");
}

/* Arrives when all cp.async of this thread so far have landed; they are not waited for
 * otherwise.  wgmma needs a fm_tile_fence() of the reader behind its wait. */
FM_DEVICE void fm_mbarrier_arrive_copied(fm_mbarrier *b)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(fm_shared_address(b))
                 : "memory");
}

FM_DEVICE void fm_mbarrier_wait(fm_mbarrier *b, int parity)
{
    asm volatile("{ .reg .pred p;\n\t"
                 "wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
                 "@!p bra wait; }" ::"r"(fm_shared_address(b)),
                 "r"(parity)
                 : "memory");
}

/* --- copies into shared memory ---------------------------------------------- */

/* Boxes of a row-major matrix; made by fm_tile_map_rows() on the host, handed to the
 * kernel as `const __grid_constant__ fm_tile_map`. */
typedef CUtensorMap fm_tile_map;

/* box_rows rows from `row` on, 128 bytes of each from byte `at` on, as a tile of
 * fm__chunk<128>() (wgmma.cuh): to a multiple of 1024 bytes.  What lies outside of the
 * matrix comes as zeros; always box_rows * 128 bytes are announced to b. */
FM_DEVICE void fm_bulk_tile(void *smem, const fm_tile_map *map, int at, int row, fm_mbarrier *b)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(fm_shared_address(smem)),
                 "l"(map), "r"(at), "r"(row), "r"(fm_shared_address(b))
                 : "memory");
}

/* The same box, only as far as L2: before its place in shared memory is free. */
FM_DEVICE void fm_bulk_tile_prefetch(const fm_tile_map *map, int at, int row)
{
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(at),
                 "r"(row)
                 : "memory");
}

/* The map itself is on its way. */
FM_DEVICE void fm_tile_map_prefetch(const fm_tile_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* --- registers of a warpgroup ----------------------------------------------- */

/* setmaxnreg, by all threads of a warpgroup; N a multiple of 8.  Registers that one warpgroup
 * releases another can acquire: the kernel has one thread block per multiprocessor. */
template <int N> FM_DEVICE void fm_registers_down()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> FM_DEVICE void fm_registers_up()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* --- on the host ------------------------------------------------------------ */

typedef CUresult (*fm_tile_encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                    const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                    const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                    CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* The driver's own library is not linked: a machine without a GPU has none. */
static inline fm_tile_encoder fm_find_tile_encoder(void)
{
    void                           *f = NULL;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault,
                                         &found) != cudaSuccess)
        return NULL;
    return (fm_tile_encoder)f;
}

/* A matrix of `rows` rows of row_bytes each, `pitch` bytes apart: pitch a multiple of 16,
 * base 16-byte aligned, box_rows at most 256. */
static inline fm_status fm_tile_map_rows(fm_tile_map *map, const void *base, int64_t rows,
                                         int64_t row_bytes, int64_t pitch, int box_rows)
{
    const cuuint64_t size[]    = {(cuuint64_t)row_bytes, (cuuint64_t)rows};
    const cuuint64_t between[] = {(cuuint64_t)pitch};
    const cuuint32_t box[]     = {128, (cuuint32_t)box_rows}, every[] = {1, 1};
    static const fm_tile_encoder encode = fm_find_tile_encoder();
    if (!encode) return fm_fail(FM_E_NOSUP, "the driver does not know cuTensorMapEncodeTiled");
    const CUresult e = encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, (void *)base, size, between,
                              box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                              CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (e != CUDA_SUCCESS)
        return fm_fail(FM_E_NOSUP, "no tile map of %lld rows, %lld bytes apart (driver error %d)",
                       (long long)rows, (long long)pitch, (int)e);
    return FM_OK;
}

#endif
