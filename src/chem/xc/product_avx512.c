/* SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

typedef __m512d vec;
enum { VEC = 8, TILE_ROWS = 6, TILE_VECS = 4 };
#define LOAD(p) _mm512_load_pd(p)
#define STORE(p, v) _mm512_store_pd(p, v)
#define SPREAD(x) _mm512_set1_pd(x)
#define MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "chem/xc/product_body.h"

#define DEFINE_ROWS(R) DEFINE_TILE(R, 1) DEFINE_TILE(R, 2) DEFINE_TILE(R, 3) DEFINE_TILE(R, 4)
DEFINE_ROWS(1)
DEFINE_ROWS(2)
DEFINE_ROWS(3) DEFINE_ROWS(4) DEFINE_ROWS(5) DEFINE_ROWS(6)

#define ROWS(R)                                                                                    \
    {                                                                                              \
        tile_##R##_1, tile_##R##_2, tile_##R##_3, tile_##R##_4                                     \
    }
    static void (*const tile[TILE_ROWS][TILE_VECS])(const fm_product *, int, int) = {
        ROWS(1), ROWS(2), ROWS(3), ROWS(4), ROWS(5), ROWS(6)};

static void multiply(const fm_product *p)
{
    for (int c = 0; c < p->n_column; c += TILE_VECS * VEC) {
        const int left = (p->n_column - c) / VEC, n_vec = left < TILE_VECS ? left : TILE_VECS;
        for (int r = 0; r < p->n_row; r += TILE_ROWS) {
            const int n_row = p->n_row - r < TILE_ROWS ? p->n_row - r : TILE_ROWS;
            tile[n_row - 1][n_vec - 1](p, r, c);
        }
    }
}

/* Pairs within 128 bits, then 128-bit quarters twice. */
static void transpose_8x8(double *out, size_t out_stride, const double *in, size_t in_stride)
{
    vec a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = LOAD(in + (size_t)i * in_stride);
    for (int i = 0; i < 8; i += 2) {
        b[i]     = _mm512_unpacklo_pd(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_pd(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        a[i]     = _mm512_shuffle_f64x2(b[i], b[i + 2], 0x88);
        a[i + 2] = _mm512_shuffle_f64x2(b[i], b[i + 2], 0xdd);
        a[i + 4] = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0x88);
        a[i + 6] = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        STORE(out + (size_t)i * out_stride, _mm512_shuffle_f64x2(a[i], a[i + 4], 0x88));
        STORE(out + (size_t)(i + 4) * out_stride, _mm512_shuffle_f64x2(a[i], a[i + 4], 0xdd));
    }
}

static void transpose(double *out, size_t out_stride, const double *in, size_t in_stride, int n,
                      int m)
{
    for (int i = 0; i < n; i += 8)
        for (int j = 0; j < m; j += 8)
            transpose_8x8(out + (size_t)j * out_stride + i, out_stride,
                          in + (size_t)i * in_stride + j, in_stride);
}

extern const fm_product_kernels fm__product_avx512;
const fm_product_kernels        fm__product_avx512 = {FM_ISA_AVX512, multiply, transpose};
