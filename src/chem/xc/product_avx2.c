/* SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

typedef __m256d vec;
enum { VEC = 4, TILE_ROWS = 6, TILE_VECS = 2 };
#define LOAD(p) _mm256_load_pd(p)
#define STORE(p, v) _mm256_store_pd(p, v)
#define SPREAD(x) _mm256_set1_pd(x)
#define MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "chem/xc/product_body.h"

DEFINE_TILE(1, 2)
DEFINE_TILE(2, 2)
DEFINE_TILE(3, 2) DEFINE_TILE(4, 2) DEFINE_TILE(5, 2) DEFINE_TILE(6, 2)

    static void (*const tile[TILE_ROWS])(const fm_product *, int, int) = {
        tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2};

static void multiply(const fm_product *p)
{
    for (int c = 0; c < p->n_column; c += TILE_VECS * VEC)
        for (int r = 0; r < p->n_row; r += TILE_ROWS) {
            const int n_row = p->n_row - r < TILE_ROWS ? p->n_row - r : TILE_ROWS;
            tile[n_row - 1](p, r, c);
        }
}

static void transpose_4x4(double *out, size_t out_stride, const double *in, size_t in_stride)
{
    vec a[4], b[4];
    for (int i = 0; i < 4; i++) a[i] = LOAD(in + (size_t)i * in_stride);
    for (int i = 0; i < 4; i += 2) {
        b[i]     = _mm256_unpacklo_pd(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_pd(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        STORE(out + (size_t)i * out_stride, _mm256_permute2f128_pd(b[i], b[i + 2], 0x20));
        STORE(out + (size_t)(i + 2) * out_stride, _mm256_permute2f128_pd(b[i], b[i + 2], 0x31));
    }
}

static void transpose(double *out, size_t out_stride, const double *in, size_t in_stride, int n,
                      int m)
{
    for (int i = 0; i < n; i += 4)
        for (int j = 0; j < m; j += 4)
            transpose_4x4(out + (size_t)j * out_stride + i, out_stride,
                          in + (size_t)i * in_stride + j, in_stride);
}

extern const fm_product_kernels fm__product_avx2;
const fm_product_kernels        fm__product_avx2 = {FM_ISA_AVX2, multiply, transpose};
