/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 32 rows x 32 outputs as 2 x 2 AMX tiles, 32 k at a time:
 *
 *              w0  w1     tmm6 tmm7   outputs 0..15, 16..31; rows of a pair of k
 *         x0   c0  c1     tmm4        rows 0..15
 *         x1   c2  c3     tmm5        rows 16..31, absent when 16 rows or fewer are left
 *
 * Every tile has 16 rows; rows that do not exist are zeros, so one tile shape
 * serves every m, and a row's sum runs over k in the same steps in each. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/tiles_amx.h"

enum {
    TILE_ROWS = FM__TILE_ROWS,
    SLICE     = FM__SCALE_K, /* k that are gathered or expanded into L1 at a time */
};

static void clear_tiles(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* The four tiles += x w over a slice; w is bf16 and k at most SLICE. */
static void add_slice(const void *const *x, int rows, int from, const char *w, int k)
{
    fm__gathered          g[2];
    const int             both = rows > TILE_ROWS;
    const fm__tile_source x0   = fm__tile_rows(&g[0], x, rows, from, k);
    const fm__tile_source x1 =
        both ? fm__tile_rows(&g[1], x + TILE_ROWS, rows - TILE_ROWS, from, k) : x0;
    fm__memory_is_written();
    for (int p = 0; p < k; p += 32, w += 32 * FM_PANEL * 2) {
        _tile_loadd(6, w, 128);
        _tile_loadd(7, w + 64, 128);
        _tile_loadd(4, x0.base + p * 2, x0.stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (!both) continue;
        _tile_loadd(5, x1.base + p * 2, x1.stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* A dense [32, 32], or the first 16 rows of it. */
static void store_tiles(float *c, int rows)
{
    _tile_stored(0, c, FM_PANEL * 4);
    _tile_stored(1, c + FM__HALF, FM_PANEL * 4);
    if (rows <= TILE_ROWS) return;
    _tile_stored(2, c + TILE_ROWS * FM_PANEL, FM_PANEL * 4);
    _tile_stored(3, c + TILE_ROWS * FM_PANEL + FM__HALF, FM_PANEL * 4);
}

void fm__gemm_bf16_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    _Alignas(64) float sum[2 * TILE_ROWS * FM_PANEL];
    (void)scale;
    fm__shape_tiles();
    for (int i = 0, rows; i < m; i += rows, c += (size_t)rows * FM_PANEL) {
        rows = fm__least(2 * TILE_ROWS, m - i);
        clear_tiles();
        for (int p = 0; p < k; p += SLICE)
            add_slice(x + i, rows, p, (const char *)w + (size_t)p * FM_PANEL * 2,
                      fm__least(SLICE, k - p));
        store_tiles(sum, rows);
        memcpy(c, sum, (size_t)rows * FM_PANEL * sizeof *c);
    }
}

/* c[rows, 32] += scale * part, a factor for each half */
static void add_scaled(float *restrict c, const float *restrict part, const float *scale, int rows)
{
    const __m512 s0 = _mm512_set1_ps(fm__scale_of_wide(scale[0]));
    const __m512 s1 = _mm512_set1_ps(fm__scale_of_wide(scale[1]));
    for (int i = 0; i < rows; i++, c += FM_PANEL, part += FM_PANEL) {
        const __m512 c0 = _mm512_loadu_ps(c), c1 = _mm512_loadu_ps(c + FM__HALF);
        _mm512_storeu_ps(c, _mm512_fmadd_ps(s0, _mm512_load_ps(part), c0));
        _mm512_storeu_ps(c + FM__HALF, _mm512_fmadd_ps(s1, _mm512_load_ps(part + FM__HALF), c1));
    }
}

void fm__gemm_fp8_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    _Alignas(64) char  wide[SLICE * FM_PANEL * 2];
    _Alignas(64) float part[2 * TILE_ROWS * FM_PANEL];
    fm__shape_tiles();
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int p = 0; p < k; p += SLICE, scale += 2) {
        const int n = fm__least(SLICE, k - p);
        fm__widen_fp8_avx512(wide, (const char *)w + (size_t)p * FM_PANEL, n);
        for (int i = 0, rows; i < m; i += rows) {
            rows = fm__least(2 * TILE_ROWS, m - i);
            clear_tiles();
            add_slice(x + i, rows, p, wide, n);
            store_tiles(part, rows);
            add_scaled(c + (size_t)i * FM_PANEL, part, scale, rows);
        }
    }
}
