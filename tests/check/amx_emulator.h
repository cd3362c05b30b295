/* SPDX-License-Identifier: Apache-2.0 */
/* AMX in plain C, put before gemm_amx.c so that its steps are tested on CPUs
 * without AMX: shapes must be loaded, all memory is read and written through
 * ordinary pointers (so sanitizers see it), sums run as the manual says. */
#ifndef FM_CHECK_AMX_EMULATOR_H
#define FM_CHECK_AMX_EMULATOR_H

#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbusd
#define _tile_loadconfig(from) amx_load_shapes(from)
#define _tile_storeconfig(to) memcpy(to, amx.shapes, sizeof amx.shapes)
#define _tile_loadd(t, base, stride) amx_load(t, base, stride)
#define _tile_stream_loadd(t, base, stride) amx_load(t, base, stride)
#define _tile_stored(t, base, stride) amx_store(t, base, stride)
#define _tile_zero(t) memset(amx_tile(t), 0, sizeof amx.tile[t])
#define _tile_dpbf16ps(c, a, b) amx_dot(c, a, b)
#define _tile_dpbusd(c, a, b) amx_dot_bytes(c, a, b)

static _Thread_local struct {
    uint8_t shapes[64];
    char    tile[8][16][64];
} amx;

static inline void amx_load_shapes(const void *from)
{
    memcpy(amx.shapes, from, sizeof amx.shapes);
    memset(amx.tile, 0, sizeof amx.tile);
}

/* Palette 1, 64 bytes a row, 1 to 16 rows. */
static inline int amx_rows(int t)
{
    uint16_t row_bytes;
    memcpy(&row_bytes, amx.shapes + 16 + 2 * t, sizeof row_bytes);
    const int rows = amx.shapes[48 + t];
    if (amx.shapes[0] != 1 || row_bytes != 64 || rows < 1 || rows > 16) abort();
    return rows;
}

static inline char *amx_tile(int t)
{
    return amx.tile[t][0];
}

static inline void amx_load(int t, const void *base, long stride)
{
    memset(amx_tile(t), 0, sizeof amx.tile[t]);
    for (int i = 0; i < amx_rows(t); i++)
        memcpy(amx_tile(t) + i * 64, (const char *)base + i * stride, 64);
}

static inline void amx_store(int t, void *base, long stride)
{
    for (int i = 0; i < amx_rows(t); i++)
        memcpy((char *)base + i * stride, amx_tile(t) + i * 64, 64);
}

static inline float amx_product(const char *a, const char *b)
{
    fm_bf16 x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return fm_f32_of_bf16(x) * fm_f32_of_bf16(y);
}

static inline void amx_dot(int c, int a, int b)
{
    if (amx_rows(a) != amx_rows(c) || amx_rows(b) != 16) abort();
    for (int i = 0; i < amx_rows(c); i++)
        for (int j = 0; j < 16; j++) {
            float sum, part[2] = {0, 0}; /* even and odd k, joined at the end */
            for (int p = 0; p < 32; p++)
                part[p % 2] += amx_product(amx_tile(a) + i * 64 + p * 2,
                                           amx_tile(b) + p / 2 * 64 + j * 4 + p % 2 * 2);
            memcpy(&sum, amx_tile(c) + i * 64 + j * 4, sizeof sum);
            sum += part[0] + part[1];
            memcpy(amx_tile(c) + i * 64 + j * 4, &sum, sizeof sum);
        }
}

/* Unsigned bytes of a times signed bytes of b. */
static inline void amx_dot_bytes(int c, int a, int b)
{
    if (amx_rows(a) != amx_rows(c) || amx_rows(b) != 16) abort();
    for (int i = 0; i < amx_rows(c); i++)
        for (int j = 0; j < 16; j++) {
            int32_t sum;
            memcpy(&sum, amx_tile(c) + i * 64 + j * 4, sizeof sum);
            for (int p = 0; p < 64; p++)
                sum += (uint8_t)amx_tile(a)[i * 64 + p] *
                       (int8_t)amx_tile(b)[p / 4 * 64 + j * 4 + p % 4];
            memcpy(amx_tile(c) + i * 64 + j * 4, &sum, sizeof sum);
        }
}

#endif
