/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's twin of src/llm/kernel/cuda/ptx/wgmma_e4m3.cuh: the same contracts.  A step adds
 * 32 exact products to the sum; every term is cut 13 bits below the largest of them, which is how
 * the errors measured on an H200 come about.  The hardware's last bits may differ. */
#ifndef FM_LLM_KERNEL_CUDA_WGMMA_E4M3_CUH
#define FM_LLM_KERNEL_CUDA_WGMMA_E4M3_CUH

#include "llm/kernel/cuda/ptx/wgmma.cuh"

FM_DEVICE fm_tile fm_tile_by_groups(const void *smem, int apart)
{
    return {(const unsigned char *)smem, apart};
}

/* Row r of a tile, its numbers `stride` apart. */
static inline void fm_emu_byte_row(float *out, int stride, const fm_tile &t, int r)
{
    const int apart = t.next ? t.next : 1024;
    for (int k = 0; k < 32; k += 16) {
        const unsigned char *p = fm_emu_tile_chunk(t.base + r / 8 * apart + r % 8 * 128 + k);
        for (int i = 0; i < 16; i++) out[(k + i) * stride] = fm_emu_f32_of_fp8[p[i]];
    }
}

struct fm_emu_byte_product {
    float  *d;
    fm_tile a, b;
    bool    add;
};

template <int N> void fm_emu_multiply_bytes(void *const *all, unsigned)
{
    static float a[16][32], b[32][N], d[16][N];
    const int    row0 = (int)(fm_emu_here.thread.x / 32 % 4) * 16;
    const auto  *any  = (const fm_emu_byte_product *)all[0];
    for (int l = 0; l < 32; l++) {
        const auto *p = (const fm_emu_byte_product *)all[l];
        for (int i = 0; i < N / 2; i++)
            d[l / 4 + i / 2 % 2 * 8][i / 4 * 8 + l % 4 * 2 + i % 2] = p->add ? p->d[i] : 0;
    }
    for (int i = 0; i < 16; i++) fm_emu_byte_row(a[i], 1, any->a, row0 + i);
    for (int j = 0; j < N; j++) fm_emu_byte_row(&b[0][j], N, any->b, j);
    fm_emu_add_byte_product(d[0], a, b[0], N);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < N / 2; i++)
            ((fm_emu_byte_product *)all[l])->d[i] =
                d[l / 4 + i / 2 % 2 * 8][i / 4 * 8 + l % 4 * 2 + i % 2];
}

template <int N>
FM_DEVICE void fm_wgmma_e4m3(float (&d)[N / 2], fm_tile a, fm_tile b, bool add = true)
{
    fm_emu_byte_product mine = {d, a, b, add};
    fm_emu_meet("wgmma e4m3", FM_WARP, &mine, fm_emu_multiply_bytes<N>);
}

#endif
