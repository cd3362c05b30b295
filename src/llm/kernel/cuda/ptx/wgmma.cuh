/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a warpgroup (wgmma): 64 rows of a from registers or shared memory,
 * N columns of b from shared memory, f32 sums in registers.
 *
 *     fm_wgmma_fence();                      registers are ready, tiles were fenced
 *     for k16: fm_wgmma_ss<N>(d, a, b);      asynchronous, in this order
 *     fm_wgmma_commit();
 *     fm_wgmma_wait<0>();                    only now is d touched again
 *
 * One of these is 4 x N/8 steps of fm_mma_bf16_16816 to the last bit: the sum of
 * an output is the same chain of k16 steps in both (tests/cuda/wgmma.cu).
 *
 * Tiles in shared memory have rows of 128 bytes whose 16-byte chunks are permuted
 * as fm__chunk<128>() permutes them; a tile begins at a multiple of 1024 bytes.
 *
 *     fm_tile_by_row   row = a row of a, or a column of b; 64 k in its 128 bytes.
 *                      The next k16: fm_tile_at(t, 32); the next 64 k: another tile.
 *     fm_tile_by_k     row = one k; 64 columns of b in its 128 bytes.  The next k16:
 *                      fm_tile_at(t, 2048); columns 64.. lie `next` bytes on.
 *
 * What ordinary stores or cp.async wrote into a tile is fenced by its writers
 * with fm_tile_fence() (behind the wait for the copy), before the barrier that
 * lets a warpgroup read it.  Each has a twin in tests/cuda/emulator. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_WGMMA_CUH
#define FM_LLM_KERNEL_CUDA_PTX_WGMMA_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"

typedef uint64_t fm_tile;

/* 18 bits: in a cluster the bits above say which block's memory it is. */
FM_DEVICE fm_tile fm_tile_base(const void *smem)
{
    return (fm_shared_address(smem) & 0x3ffff) >> 4;
}

FM_DEVICE fm_tile fm_tile_by_row(const void *smem)
{
    return fm_tile_base(smem) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

FM_DEVICE fm_tile fm_tile_by_k(const void *smem, int next)
{
    return fm_tile_base(smem) | (fm_tile)(next >> 4) << 16 | 64ull << 32 | 1ull << 62;
}

FM_DEVICE fm_tile fm_tile_at(fm_tile t, int bytes) { return t + (fm_tile)(bytes >> 4); }

FM_DEVICE void fm_tile_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

FM_DEVICE void fm_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

FM_DEVICE void fm_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Until at most N committed groups of this warpgroup are still running. */
template <int N> FM_DEVICE void fm_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* Nothing that uses d moves across: for sums read behind a wait. */
template <int N> FM_DEVICE void fm_wgmma_hold(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/* The operands of d, by the number of registers. */
#define FM_D4 "%0, %1, %2, %3"
#define FM_D8                                                                                      \
    FM_D4                                                                                          \
    ", %4, %5, %6, %7"
#define FM_D16                                                                                     \
    FM_D8                                                                                          \
    ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FM_D32                                                                                     \
    FM_D16                                                                                         \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FM_D64                                                                                     \
    FM_D32                                                                                         \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"             \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FM_D128                                                                                    \
    FM_D64                                                                                         \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"             \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"             \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
    "%127"
#define FM_O4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define FM_O8(d, i) FM_O4(d, i), FM_O4(d, i + 4)
#define FM_O16(d, i) FM_O8(d, i), FM_O8(d, i + 8)
#define FM_O32(d, i) FM_O16(d, i), FM_O16(d, i + 16)
#define FM_O64(d, i) FM_O32(d, i), FM_O32(d, i + 32)
#define FM_O128(d, i) FM_O64(d, i), FM_O64(d, i + 64)

template <int N, int BY_K> struct fm_wgmma;

#define FM_WGMMA(N, R, BY_K, A0, A1, A2, A3, A4, A5)                                               \
    template <> struct fm_wgmma<N, BY_K> {                                                         \
        FM_DEVICE void ss(float (&d)[R], fm_tile a, fm_tile b, bool add)                           \
        {                                                                                          \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #A2 ", 0;"                             \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" FM_D##R      \
                         "}, %" #A0 ", %" #A1 ", p, 1, 1, 0, " #BY_K "; }"                         \
                         : FM_O##R(d, 0)                                                           \
                         : "l"(a), "l"(b), "r"((int)add));                                         \
        }                                                                                          \
        FM_DEVICE void rs(float (&d)[R], const uint32_t (&a)[4], fm_tile b, bool add)              \
        {                                                                                          \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #A5 ", 0;"                             \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" FM_D##R      \
                         "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #A4 ", p, 1, 1, " #BY_K  \
                         "; }"                                                                     \
                         : FM_O##R(d, 0)                                                           \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));     \
        }                                                                                          \
    };

FM_WGMMA(8, 4, 0, 4, 5, 6, 7, 8, 9)
FM_WGMMA(16, 8, 0, 8, 9, 10, 11, 12, 13)
FM_WGMMA(32, 16, 0, 16, 17, 18, 19, 20, 21)
FM_WGMMA(64, 32, 0, 32, 33, 34, 35, 36, 37)
FM_WGMMA(64, 32, 1, 32, 33, 34, 35, 36, 37)
FM_WGMMA(128, 64, 0, 64, 65, 66, 67, 68, 69)
FM_WGMMA(128, 64, 1, 64, 65, 66, 67, 68, 69)
FM_WGMMA(256, 128, 0, 128, 129, 130, 131, 132, 133)
FM_WGMMA(256, 128, 1, 128, 129, 130, 131, 132, 133)
#undef FM_WGMMA

/* d += a b, or with add false d = a b.  d[4j..4j+3] of a lane is what
 * fm_mma_bf16_16816 has for columns 8j..8j+7 and rows 16(warp%4)..+15 of the
 * warpgroup; a in registers is that warp's m16k16 operand.  N is 8, 16, 32, 64,
 * 128 or 256.  BY_K: b is a fm_tile_by_k, N from 64. */
template <int N, int BY_K = 0>
FM_DEVICE void fm_wgmma_ss(float (&d)[N / 2], fm_tile a, fm_tile b, bool add = true)
{
    fm_wgmma<N, BY_K>::ss(d, a, b, add);
}

template <int N, int BY_K = 0>
FM_DEVICE void fm_wgmma_rs(float (&d)[N / 2], const uint32_t (&a)[4], fm_tile b, bool add = true)
{
    fm_wgmma<N, BY_K>::rs(d, a, b, add);
}

#endif
