/* SPDX-License-Identifier: Apache-2.0 */
/* A warpgroup's product is a chain of mma.sync to the last bit, for every width
 * and every way its operands lie in shared memory. */
#include "check.h"
#include "llm/kernel/cuda/ptx/fragment.cuh"
#include "llm/kernel/cuda/ptx/wgmma.cuh"

typedef std::vector<uint16_t> bf16s;
typedef std::vector<float>    floats;

enum { ROWS = 64, K = 128, TILE = 64 * 128 };

typedef enum { A_SHARED, A_REGISTERS } a_place;

/* w [64, K], x [N, K]; by_k: x [K, N].  One warpgroup. */
template <int N, int BY_K, a_place PLACE>
FM_KERNEL(128)
wide_product(const uint16_t *w, const uint16_t *x, float *y)
{
    FM_SHARED_BYTES(memory);
    enum { COLUMNS = N < 8 ? 8 : N, B_TILE = BY_K ? K * 128 : COLUMNS * 128 };
    unsigned char *a = memory, *b = memory + K / 64 * TILE;
    const int      tid = threadIdx.x, warp = tid / 32, lane = tid & 31;
    for (int i = tid; i < ROWS * K; i += 128) {
        const int r = i / K, k = i % K;
        *(uint16_t *)(a + k / 64 * TILE + fm__chunk<128>(r, k % 64 / 8) + k % 8 * 2) = w[i];
    }
    for (int i = tid; i < N * K; i += 128) {
        const int line = BY_K ? i / N : i / K, along = BY_K ? i % N : i % K;
        *(uint16_t *)(b + along / 64 * B_TILE + fm__chunk<128>(line, along % 64 / 8) +
                      along % 8 * 2) = x[i];
    }
    fm_tile_fence();
    __syncthreads();

    float d[N / 2];
    for (int i = 0; i < N / 2; i++) d[i] = 0;
    fm_wgmma_fence();
    for (int k = 0; k < K; k += 16) {
        const fm_tile at = BY_K ? fm_tile_at(fm_tile_by_k(b, B_TILE), k * 128)
                                : fm_tile_at(fm_tile_by_row(b + k / 64 * B_TILE), k % 64 * 2);
        if (PLACE == A_SHARED) {
            fm_wgmma_ss<N, BY_K>(d, fm_tile_at(fm_tile_by_row(a + k / 64 * TILE), k % 64 * 2), at,
                                 k > 0);
        } else {
            uint32_t      r[4];
            const int64_t row = (int64_t)(16 * warp + lane / 4) * K + k + lane % 4 * 2;
            for (int i = 0; i < 4; i++)
                r[i] = *(const uint32_t *)(w + row + i % 2 * 8 * K + i / 2 * 8);
            fm_wgmma_rs<N, BY_K>(d, r, at, k > 0);
            fm_wgmma_commit();
            fm_wgmma_wait<0>(); /* r changes */
        }
    }
    fm_wgmma_commit();
    fm_wgmma_wait<0>();
    fm_wgmma_hold(d);
    for (int i = 0; i < N / 2; i++)
        y[(16 * warp + lane / 4 + i / 2 % 2 * 8) * N + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
}

/* The same by mma.sync: a warp has 16 rows, a block of warps 8 columns. */
FM_KERNEL(128) narrow_product(const uint16_t *w, const uint16_t *x, float *y, int n)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, g = lane / 4, t = lane % 4 * 2;
    float     d[4] = {0, 0, 0, 0};
    for (int k = 0; k < K; k += 16) {
        uint32_t a[4], b[2];
        for (int i = 0; i < 4; i++)
            a[i] = *(const uint32_t *)(w + (16 * warp + g + i % 2 * 8) * K + k + t + i / 2 * 8);
        for (int i = 0; i < 2; i++)
            b[i] = *(const uint32_t *)(x + (8 * (int)blockIdx.x + g) * K + k + t + i * 8);
        fm_mma_bf16_16816(d, a, b);
    }
    for (int i = 0; i < 4; i++)
        y[(16 * warp + g + i / 2 * 8) * n + 8 * (int)blockIdx.x + t + i % 2] = d[i];
}

template <int N, int BY_K, a_place PLACE> static void check_width()
{
    fm_numbers r(N + BY_K);
    bf16s      w(ROWS * K), x((size_t)N * K), x_by_k((size_t)N * K);
    for (uint16_t &v : w) v = (uint16_t)(0x3e80 + r.below(0x180) + (r.u32() & 0x8000));
    for (uint16_t &v : x) v = (uint16_t)(0x3e80 + r.below(0x180) + (r.u32() & 0x8000));
    for (int i = 0; i < N * K; i++) x_by_k[(size_t)(i % K * N + i / K)] = x[(size_t)i];
    fm_device<uint16_t> on_w(w), on_x(x), on_x_by_k(x_by_k);
    fm_device<float>    wide(ROWS * N), narrow(ROWS * N);
    const int           bytes = K / 64 * TILE + (N < 64 && BY_K ? 64 : N) * K * 2;
    fm_check_cuda(fm_allow_shared(wide_product<N, BY_K, PLACE>, bytes), "shared memory");
    FM_LAUNCH((wide_product<N, BY_K, PLACE>), 1, 128, bytes, NULL, on_w.data(),
              (BY_K ? on_x_by_k : on_x).data(), wide.data());
    FM_LAUNCH(narrow_product, N / 8, 128, 0, NULL, on_w.data(), on_x.data(), narrow.data(), N);
    FM_CHECK_EQUAL(wide.host(), narrow.host());
}

FM_TEST(tiles_by_row)
{
    check_width<8, 0, A_SHARED>();
    check_width<16, 0, A_SHARED>();
    check_width<32, 0, A_SHARED>();
    check_width<64, 0, A_SHARED>();
    check_width<128, 0, A_SHARED>();
    check_width<256, 0, A_SHARED>();
}

FM_TEST(tiles_by_k)
{
    check_width<64, 1, A_SHARED>();
    check_width<128, 1, A_SHARED>();
    check_width<256, 1, A_SHARED>();
}

FM_TEST(a_in_registers)
{
    check_width<8, 0, A_REGISTERS>();
    check_width<64, 0, A_REGISTERS>();
    check_width<128, 0, A_REGISTERS>();
    check_width<256, 0, A_REGISTERS>();
    check_width<64, 1, A_REGISTERS>();
    check_width<256, 1, A_REGISTERS>();
}
