/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/convert/quantise.h"

#include <math.h>

enum { BLOCK = 128 };

static float largest(const float *v, int64_t n)
{
    float m = 0;
    for (int64_t i = 0; i < n; i++) m = fmaxf(m, fabsf(v[i]));
    return m;
}

/* --- INT4 ----------------------------------------------------------------- */

static int code_of(float v, float scale)
{
    const float q = rintf(v / scale);
    return q > 7 ? 7 : q >= -8 ? (int)q : -8;
}

static double error_of_group(const float *v, float scale)
{
    double sum = 0;
    for (int i = 0; i < FM_INT4_GROUP; i++) {
        const double e = (double)v[i] - (double)scale * code_of(v[i], scale);
        sum += e * e;
    }
    return sum;
}

static fm_bf16 scale_of_group(const float *v)
{
    const float   m    = largest(v, FM_INT4_GROUP);
    const fm_bf16 by_7 = fm_bf16_of_f32(m / 7), by_8 = fm_bf16_of_f32(m / 8);
    if (!(fm_f32_of_bf16(by_8) > 0)) return fm_bf16_of_f32(1); /* zeros */
    const double e7 = error_of_group(v, fm_f32_of_bf16(by_7));
    return error_of_group(v, fm_f32_of_bf16(by_8)) < e7 ? by_8 : by_7;
}

void fm_quantise_int4(uint8_t *restrict out, fm_bf16 *restrict scale, const float *restrict row,
                      int64_t k)
{
    for (int64_t g = 0; g < k / FM_INT4_GROUP; g++) {
        const float *v  = row + g * FM_INT4_GROUP;
        uint8_t     *to = out + g * FM_INT4_GROUP / 2;
        scale[g]        = scale_of_group(v);
        for (int i = 0; i < FM_INT4_GROUP; i += 2) {
            const float s = fm_f32_of_bf16(scale[g]);
            to[i / 2]     = (uint8_t)((code_of(v[i], s) + 8) | (code_of(v[i + 1], s) + 8) << 4);
        }
    }
}

/* --- FP8 ------------------------------------------------------------------ */

fm_fp8 fm_fp8_of_f32(float f)
{
    const uint32_t u = fm_bits_of_f32(f), sign = u >> 24 & 0x80, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (fm_fp8)(sign | 0x7f);
    const float a = fm_f32_from_bits(magnitude);
    if (a >= 448) return (fm_fp8)(sign | 0x7e);
    if (a < 0x1p-6f) return (fm_fp8)(sign | (uint32_t)rintf(a * 0x1p9f)); /* 8 is 2^-6 itself */
    const uint32_t rounded = (magnitude + 0x7ffffu + (magnitude >> 20 & 1)) >> 20;
    return (fm_fp8)(sign | (rounded - (120u << 3)));
}

/* The part of n_row rows of k that begins at v, n_col wide. */
typedef struct {
    const float *v;
    int64_t      k;
    int          n_row, n_col;
} block;

static double error_of_block(const block *b, float scale)
{
    double sum = 0;
    for (int r = 0; r < b->n_row; r++)
        for (int c = 0; c < b->n_col; c++) {
            const float  v = b->v[r * b->k + c];
            const double e = (double)v - (double)scale * fm_f32_of_fp8(fm_fp8_of_f32(v / scale));
            sum += e * e;
        }
    return sum;
}

static float scale_of_block(const block *b)
{
    float m = 0;
    for (int r = 0; r < b->n_row; r++) m = fmaxf(m, largest(b->v + r * b->k, b->n_col));
    const float exact = m / 448, power = exp2f(ceilf(log2f(exact)));
    if (!(exact > 0x1p-100f)) return 1; /* zeros */
    return error_of_block(b, power) < error_of_block(b, exact) ? power : exact;
}

void fm_quantise_fp8(fm_fp8 *restrict out, float *restrict scale, const float *restrict rows,
                     int n_row, int64_t k)
{
    for (int64_t at = 0; at < k; at += BLOCK) {
        const block b = {rows + at, k, n_row, k - at < BLOCK ? (int)(k - at) : BLOCK};
        const float s = scale[at / BLOCK] = scale_of_block(&b);
        for (int r = 0; r < n_row; r++)
            for (int c = 0; c < b.n_col; c++)
                out[r * k + at + c] = fm_fp8_of_f32(b.v[r * k + c] / s);
    }
}
