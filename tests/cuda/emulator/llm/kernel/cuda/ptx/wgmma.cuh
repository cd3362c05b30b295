/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's twin of src/llm/kernel/cuda/ptx/wgmma.cuh: the same contracts, in
 * the same order.  Each warp of a warpgroup computes its 16 rows when it asks
 * for them. */
#ifndef FM_LLM_KERNEL_CUDA_WGMMA_CUH
#define FM_LLM_KERNEL_CUDA_WGMMA_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"

struct fm_tile {
    const unsigned char *base;
    int                  next; /* bytes between 64 columns; 0: by row */
};

FM_DEVICE fm_tile fm_tile_by_row(const void *smem) { return {(const unsigned char *)smem, 0}; }

FM_DEVICE fm_tile fm_tile_by_k(const void *smem, int next)
{
    return {(const unsigned char *)smem, next};
}

FM_DEVICE fm_tile fm_tile_at(fm_tile t, int bytes) { return {t.base + bytes, t.next}; }

FM_DEVICE void fm_tile_fence() {}

FM_DEVICE void fm_wgmma_fence() {}

FM_DEVICE void fm_wgmma_commit() {}

template <int N> FM_DEVICE void fm_wgmma_wait() {}

template <int N> FM_DEVICE void fm_wgmma_hold(float (&)[N]) {}

/* Sixteen bytes of a tile; such chunks are permuted by bits of the address, as the hardware does it. */
static inline const unsigned char *fm_emu_tile_chunk(const unsigned char *p)
{
    p = (const unsigned char *)((uintptr_t)p ^ ((uintptr_t)p >> 7 & 7) << 4);
    fm_emu_need_shared("wgmma", p, 16, 16);
    return p;
}

static inline void fm_emu_tile_eight(float out[8], const unsigned char *p)
{
    uint16_t v[8];
    memcpy(v, fm_emu_tile_chunk(p), sizeof v);
    for (int i = 0; i < 8; i++) out[i] = fm_f32_of_bf16(v[i]);
}

/* out[k][r]: element k of row r, which is a column of b. */
template <int N> void fm_emu_tile_by_row(float (&out)[16][N], const fm_tile &t)
{
    for (int r = 0; r < N; r++) {
        float x[16];
        for (int k = 0; k < 16; k += 8)
            fm_emu_tile_eight(x + k, t.base + r / 8 * 1024 + r % 8 * 128 + k * 2);
        for (int k = 0; k < 16; k++) out[k][r] = x[k];
    }
}

template <int N> void fm_emu_tile_by_k(float (&out)[16][N], const fm_tile &t)
{
    for (int k = 0; k < 16; k++)
        for (int r = 0; r < N; r += 8)
            fm_emu_tile_eight(&out[k][r], t.base + r / 64 * t.next + k / 8 * 1024 + k % 8 * 128 + r % 64 * 2);
}

struct fm_emu_wide_product {
    float          *d;
    const uint32_t *a; /* NULL: from shared memory */
    fm_tile         tile_a, b;
    bool            add;
};

template <int N, int BY_K> void fm_emu_multiply_wide(void *const *all, unsigned)
{
    static float a[16][16], b[16][N], d[16][N];
    const int    row0 = (int)(fm_emu_here.thread.x / 32 % 4) * 16;
    const auto  *any  = (const fm_emu_wide_product *)all[0];
    for (int l = 0; l < 32; l++) {
        const auto *p = (const fm_emu_wide_product *)all[l];
        const int   g = l / 4, t = l % 4 * 2;
        for (int h = 0; h < 2; h++) {
            for (int i = 0; p->a && i < 4; i++)
                a[g + i % 2 * 8][t + i / 2 * 8 + h] = fm_emu_half_of(p->a[i], h);
            for (int i = 0; i < N / 4; i++)
                d[g + i % 2 * 8][i / 2 * 8 + t + h] = p->add ? p->d[2 * i + h] : 0;
        }
    }
    if (!any->a)
        for (int i = 0; i < 16; i++)
            for (int k = 0; k < 16; k += 8)
                fm_emu_tile_eight(&a[i][k], any->tile_a.base + (row0 + i) / 8 * 1024 + i % 8 * 128 + k * 2);
    if (BY_K)
        fm_emu_tile_by_k(b, any->b);
    else
        fm_emu_tile_by_row(b, any->b);
    fm_emu_add_product(d[0], a, b[0], N);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < N / 2; i++)
            ((fm_emu_wide_product *)all[l])->d[i] =
                d[l / 4 + i / 2 % 2 * 8][i / 4 * 8 + l % 4 * 2 + i % 2];
}

template <int N, int BY_K = 0>
FM_DEVICE void fm_wgmma_ss(float (&d)[N / 2], fm_tile a, fm_tile b, bool add = true)
{
    fm_emu_wide_product mine = {d, NULL, a, b, add};
    fm_emu_meet("wgmma", FM_WARP, &mine, fm_emu_multiply_wide<N, BY_K>);
}

template <int N, int BY_K = 0>
FM_DEVICE void fm_wgmma_rs(float (&d)[N / 2], const uint32_t (&a)[4], fm_tile b, bool add = true)
{
    fm_emu_wide_product mine = {d, a, {NULL, 0}, b, add};
    fm_emu_meet("wgmma", FM_WARP, &mine, fm_emu_multiply_wide<N, BY_K>);
}

#endif
