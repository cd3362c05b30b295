/* SPDX-License-Identifier: Apache-2.0 */
/* One stage of a grouped product, by warps (mma.sync) or by a warpgroup (wgmma).
 * Both leave the same sums in the same registers: an output is one chain of k16
 * steps, k ascending.
 *
 * A product of E4M3 weights is summed for 128 k, the extent of a factor, then
 * scaled and added. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_PRODUCT_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_PRODUCT_CUH

#include "llm/kernel/cuda/experts/ring.cuh"

/* Of each m16 tile of the warp: d[i][4j..] are tokens 8j..8j+7. */
template <class S> struct tile_sums {
    float d[S::M16][S::OWN_NT / 2];
};

template <class S> FM_DEVICE void clear(tile_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::M16 * S::OWN_NT / 2; i++) (&c.d[0][0])[i] = 0;
}

/* The warp's first row of the task. */
FM_DEVICE int warp_row() { return threadIdx.x / 32 * 32; }

template <class S> FM_DEVICE void multiply_bf16(tile_sums<S> &c, const uint8_t *stage)
{
#pragma unroll
    for (int k32 = 0; k32 < S::K / 32; k32++) {
        uint32_t b[S::N8][4];
#pragma unroll
        for (int j = 0; j < S::N8; j++)
            fm__tokens_bf16<S::X_BYTES>(b[j], stage + S::WEIGHT_BYTES, 8 * j, 4 * k32);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int i = 0; i < S::M16; i++) {
                uint32_t w[4];
                fm__weights_bf16<K_BYTES>(w, stage, warp_row() + 16 * i, 4 * k32 + 2 * half);
#pragma unroll
                for (int j = 0; j < S::N8; j++)
                    fm_mma_bf16_16816(c.d[i] + 4 * j, w, b[j] + 2 * half);
            }
    }
}

template <class S> FM_DEVICE void multiply_e4m3(tile_sums<S> &c, const uint8_t *stage)
{
#pragma unroll
    for (int k32 = 0; k32 < S::K / 32; k32++) {
        uint32_t w[S::M16][2][4];
#pragma unroll
        for (int i = 0; i < S::M16; i++)
            fm__weights_e4m3<K_BYTES>(w[i], stage, warp_row() + 16 * i, 2 * k32);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < S::N8; j++) {
                uint32_t b[2];
                fm__tokens_e4m3<S::X_BYTES>(b, stage + S::WEIGHT_BYTES, 8 * j, 2 * k32 + half);
#pragma unroll
                for (int i = 0; i < S::M16; i++) fm_mma_bf16_16816(c.d[i] + 4 * j, w[i][half], b);
            }
    }
}

/* The first N of NT tokens; asynchronous until fm_wgmma_wait(). */
template <class S, int N> FM_DEVICE void start_bf16_wide(tile_sums<S> &c, const uint8_t *stage)
{
    const uint8_t *w = stage + threadIdx.x / 128 * 128 * K_BYTES;
    const fm_tile  x = fm_tile_by_row(stage + S::WEIGHT_BYTES);
    fm_wgmma_fence();
#pragma unroll
    for (int k16 = 0; k16 < S::K / 16; k16++)
#pragma unroll
        for (int i = 0; i < S::M16; i++)
            fm_wgmma_ss<N>((float(&)[N / 2]) c.d[i],
                           fm_tile_at(fm_tile_by_row(w + i * 64 * K_BYTES), 32 * k16),
                           fm_tile_at(x, 32 * k16));
    fm_wgmma_commit();
}

/* Two k16 steps of an m16 tile: bytes as they lie in the stage, then as bf16. */
typedef struct {
    uint16_t byte2[2][4];
} raw_pair;

FM_DEVICE void read_pair(raw_pair &raw, const uint8_t *stage, int row0, int pair)
{
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            raw.byte2[s][i] = *(const uint16_t *)(stage +
                                                  fm__chunk<K_BYTES>(row0 + i % 2 * 8 + (lane >> 2),
                                                                     2 * pair + s) +
                                                  i / 2 * 8 + (lane & 3) * 2);
}

FM_DEVICE void convert_pair(uint32_t (&w)[2][4], const raw_pair &raw)
{
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int i = 0; i < 4; i++) w[s][i] = fm_bf16x2_of_e4m3<0>(raw.byte2[s][i]);
}

/* c += factor * part, for one m16 tile. */
template <int N> FM_DEVICE void add_scaled(float (&c)[N], const float (&part)[N], float factor)
{
#pragma unroll
    for (int j = 0; j < N; j++) c[j] = fmaf(part[j], factor, c[j]);
}

/* Products of N tokens for 128 k, by two steps at a time: before two are multiplied, the
 * next two are read, those of the next m16 tile too, and meanwhile they are converted.
 * Lane `from` has the factors. */
template <class S, int N>
FM_DEVICE void add_stage_e4m3_wide(tile_sums<S> &c, const uint8_t *stage,
                                   const float (&factor)[S::M16], int from)
{
    uint32_t w[2][2][4];
    raw_pair raw;
#pragma unroll
    for (int i = 0; i < S::M16; i++) {
        float part[N / 2];
        if (i == 0) {
            read_pair(raw, stage, warp_row() + 16 * i, 0);
            convert_pair(w[0], raw);
        }
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
            const bool     has_next = pair < 3 || i < S::M16 - 1;
            const uint8_t *x        = stage + S::WEIGHT_BYTES + pair / 2 * S::OWN_NT * 128;
            const int      next_row = warp_row() + 16 * (i + pair / 3);
            if (has_next) read_pair(raw, stage, next_row, (pair + 1) % 4);
            fm_wgmma_fence();
#pragma unroll
            for (int s = 0; s < 2; s++)
                fm_wgmma_rs<N>(part, w[pair % 2][s],
                               fm_tile_at(fm_tile_by_row(x), 64 * (pair % 2) + 32 * s),
                               pair + s > 0);
            fm_wgmma_commit();
            fm_wgmma_wait<1>();
            if (has_next) convert_pair(w[(pair + 1) % 2], raw);
        }
        fm_wgmma_wait<0>();
        fm_wgmma_hold(part);
        add_scaled((float(&)[N / 2]) c.d[i], part, __shfl_sync(FM_WARP, factor[i], from));
    }
}

#endif
