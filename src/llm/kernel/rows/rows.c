/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/rows/rows.h"

#include <math.h>

#include "base/cpu.h"
#include "base/clones.h"
#include "llm/kernel/rows/exp.h"
#include "llm/kernel/rows/rows_internal.h"

enum { LANES = 16 };

FM_CLONES static void round_row(fm_bf16 *restrict dst, const float *restrict x, int n)
{
    for (int i = 0; i < n; i++) dst[i] = fm_bf16_of_f32(x[i]);
}

FM_CLONES static void widen_row(float *restrict dst, const fm_bf16 *restrict x, int n)
{
    for (int i = 0; i < n; i++) dst[i] = fm_f32_of_bf16(x[i]);
}

void fm_row_store(void *dst, fm_dtype t, const float *x, int n)
{
    if (t == FM_BF16) round_row(dst, x, n);
    else memcpy(dst, x, (size_t)n * sizeof *x);
}

FM_CLONES static void round_scaled(fm_bf16 *restrict dst, const float *restrict x, float a, int n)
{
    for (int i = 0; i < n; i++) dst[i] = fm_bf16_of_f32(x[i] * a);
}

FM_CLONES static void copy_scaled(float *restrict dst, const float *restrict x, float a, int n)
{
    for (int i = 0; i < n; i++) dst[i] = x[i] * a;
}

void fm_row_store_scaled(void *dst, fm_dtype t, const float *x, float a, int n)
{
    if (t == FM_BF16) round_scaled(dst, x, a, n);
    else copy_scaled(dst, x, a, n);
}

FM_CLONES static void round_tile(fm_bf16 *restrict dst, size_t ld, const float *restrict c, int m)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 32; j++)
            dst[(size_t)i * ld + (size_t)j] = fm_bf16_of_f32(c[i * 32 + j]);
}

void fm_tile_store(void *dst, fm_dtype t, size_t ld, const float *c, int m, int n)
{
    const size_t row = ld * fm_dtype_bytes(t);
    if (t == FM_BF16 && n == 32 && fm_cpu_isa() >= FM_ISA_AVX512)
        fm__tile_store_avx512(dst, ld, c, m);
    else if (t == FM_BF16 && n == 32) round_tile(dst, ld, c, m);
    else
        for (int i = 0; i < m; i++) fm_row_store((char *)dst + (size_t)i * row, t, c + i * 32, n);
}

void fm_tile_scatter(void *const *to, fm_dtype t, const float *c, int m)
{
    if (fm_cpu_isa() >= FM_ISA_AVX512) fm__tile_scatter_avx512(to, t, c, m);
    else
        for (int i = 0; i < m; i++) fm_row_store(to[i], t, c + i * 32, 32);
}

void fm_scatter_end(void)
{
    if (fm_cpu_isa() >= FM_ISA_AVX512) fm__scatter_end_avx512();
}

FM_CLONES void fm_tile_scale_add(float *restrict y, size_t ld, const float *restrict a,
                                 const float *restrict c, int m)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 32; j++) {
            float *to = &y[(size_t)i * ld + (size_t)j];
            *to       = *to * a[i] + c[i * 32 + j];
        }
}

void fm_row_load(float *dst, fm_dtype t, const void *x, int n)
{
    if (t == FM_BF16) widen_row(dst, x, n);
    else memcpy(dst, x, (size_t)n * sizeof *dst);
}

static inline float fold(float *lane)
{
#pragma GCC unroll 4
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

FM_CLONES static float sum_of_squares(const float *x, int n)
{
    float lane[LANES] = {0};
    int   i           = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[i + j] * x[i + j];
    for (int j = 0; i + j < n; j++) lane[j] += x[i + j] * x[i + j];
    return fold(lane);
}

FM_CLONES static void norm_bf16(fm_bf16 *restrict y, const float *restrict x,
                                const float *restrict w, float s, int n)
{
    for (int i = 0; i < n; i++) y[i] = fm_bf16_of_f32(x[i] * s * w[i]);
}

FM_CLONES static void norm_f32(float *restrict y, const float *restrict x, const float *restrict w,
                               float s, int n)
{
    for (int i = 0; i < n; i++) y[i] = x[i] * s * w[i];
}

void fm_row_rmsnorm(void *y, fm_dtype t, const float *x, const float *w, float eps, int n)
{
    const float s = 1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps);
    if (t == FM_BF16) norm_bf16(y, x, w, s, n);
    else norm_f32(y, x, w, s, n);
}

FM_CLONES void fm_row_add(float *restrict x, const float *restrict y, int n)
{
    for (int i = 0; i < n; i++) x[i] += y[i];
}

FM_CLONES void fm_row_scale_add(float *restrict y, const float *restrict x, float a, int n)
{
    for (int i = 0; i < n; i++) y[i] += a * x[i];
}

FM_CLONES void fm_row_scale(float *y, float a, int n)
{
    for (int i = 0; i < n; i++) y[i] *= a;
}

FM_CLONES static void rotate_neighbours(float *restrict x, const float *restrict cos,
                                        const float *restrict sin, int n)
{
    for (int i = 0; i < n / 2; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i]     = a * cos[i] - b * sin[i];
        x[2 * i + 1] = a * sin[i] + b * cos[i];
    }
}

FM_CLONES static void rotate_halves(float *restrict x, float *restrict y, const float *restrict cos,
                                    const float *restrict sin, int n)
{
    for (int i = 0; i < n; i++) {
        const float a = x[i], b = y[i];
        x[i] = a * cos[i] - b * sin[i];
        y[i] = a * sin[i] + b * cos[i];
    }
}

void fm_row_rotate(float *x, const float *cos, const float *sin, int n, int interleaved)
{
    if (interleaved) rotate_neighbours(x, cos, sin, n);
    else rotate_halves(x, x + n / 2, cos, sin, n / 2);
}

/* A pair is one word, and words become vectors without being shuffled. */
FM_CLONES static void rotate_neighbours_bf16(fm_bf16 *restrict x, const float *restrict cos,
                                             const float *restrict sin, int n)
{
    for (int i = 0; i < n / 2; i++) {
        uint32_t pair;
        memcpy(&pair, x + 2 * i, sizeof pair);
        const float a = fm_f32_from_bits(pair << 16), b = fm_f32_from_bits(pair & 0xffff0000u);
        pair = fm_bf16_of_f32(a * cos[i] - b * sin[i]) |
               (uint32_t)fm_bf16_of_f32(a * sin[i] + b * cos[i]) << 16;
        memcpy(x + 2 * i, &pair, sizeof pair);
    }
}

FM_CLONES static void rotate_halves_bf16(fm_bf16 *restrict x, fm_bf16 *restrict y,
                                         const float *restrict cos, const float *restrict sin, int n)
{
    for (int i = 0; i < n; i++) {
        const float a = fm_f32_of_bf16(x[i]), b = fm_f32_of_bf16(y[i]);
        x[i] = fm_bf16_of_f32(a * cos[i] - b * sin[i]);
        y[i] = fm_bf16_of_f32(a * sin[i] + b * cos[i]);
    }
}

void fm_row_rotate_bf16(fm_bf16 *x, const float *cos, const float *sin, int n, int interleaved)
{
    if (interleaved) rotate_neighbours_bf16(x, cos, sin, n);
    else rotate_halves_bf16(x, x + n / 2, cos, sin, n / 2);
}

static inline float silu(float x)
{
    return x / (1.0f + fm_exp(-x));
}

FM_CLONES static void swiglu_bf16(fm_bf16 *restrict dst, size_t ld, const float *restrict c, int m)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 16; j++)
            dst[(size_t)i * ld + (size_t)j] = fm_bf16_of_f32(silu(c[i * 32 + j]) * c[i * 32 + 16 + j]);
}

FM_CLONES static void swiglu_f32(float *restrict dst, size_t ld, const float *restrict c, int m)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 16; j++)
            dst[(size_t)i * ld + (size_t)j] = silu(c[i * 32 + j]) * c[i * 32 + 16 + j];
}

void fm_tile_swiglu(void *dst, fm_dtype t, size_t ld, const float *c, int m)
{
    if (t == FM_BF16 && fm_cpu_isa() >= FM_ISA_AVX512) fm__tile_swiglu_avx512(dst, ld, c, m);
    else if (t == FM_BF16) swiglu_bf16(dst, ld, c, m);
    else swiglu_f32(dst, ld, c, m);
}

/* Floats in the order of integers: an integer maximum becomes vectors, that of
 * floats, which must mind NaN, does not.  Its own inverse. */
static inline int32_t order_of(int32_t bits)
{
    return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}

/* x *= scale; returns the largest */
FM_CLONES static float scale_and_max(float *x, int n, float scale)
{
    int32_t most = order_of((int32_t)fm_bits_of_f32(-INFINITY));
    for (int i = 0; i < n; i++) {
        x[i] *= scale;
        const int32_t here = order_of((int32_t)fm_bits_of_f32(x[i]));
        most               = here > most ? here : most;
    }
    return fm_f32_from_bits((uint32_t)order_of(most));
}

/* x[i] = e^(x[i]-max) and their sum */
FM_CLONES static float exp_all(float *x, int n, float max)
{
    float lane[LANES] = {0};
    int   i           = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            x[i + j] = fm_exp(x[i + j] - max);
            lane[j] += x[i + j];
        }
    for (int j = 0; i + j < n; j++) {
        x[i + j] = fm_exp(x[i + j] - max);
        lane[j] += x[i + j];
    }
    return fold(lane);
}

/* One query's row in tiles that are `step` floats apart.  Keys it may not see
 * score minus infinity and so weigh 0 and add 0. */
FM_CLONES static float weigh_row(float *s, size_t step, int n_visible, float scale, float *max,
                                 float *sum)
{
    const int n_tile      = (n_visible + 31) / 32;
    float    *last        = s + (size_t)(n_tile - 1) * step;
    float     lane[LANES] = {0};
    int32_t   most        = order_of((int32_t)fm_bits_of_f32(*max));
    for (int j = (n_visible - 1) % 32 + 1; j < 32; j++) last[j] = -INFINITY;
    for (int t = 0; t < n_tile; t++)
        for (int j = 0; j < 32; j++) {
            s[(size_t)t * step + (size_t)j] *= scale;
            const int32_t here = order_of((int32_t)fm_bits_of_f32(s[(size_t)t * step + (size_t)j]));
            most               = here > most ? here : most;
        }
    const float top   = fm_f32_from_bits((uint32_t)order_of(most));
    const float alpha = *max == -INFINITY ? 0.0f : *max == top ? 1.0f : fm_exp(*max - top);
    for (int t = 0; t < 2 * n_tile; t++) {
        float *x = s + (size_t)(t / 2) * step + (size_t)(t % 2 * LANES);
        for (int j = 0; j < LANES; j++) {
            x[j] = fm_exp(x[j] - top);
            lane[j] += x[j];
        }
    }
    *sum = *sum * alpha + fold(lane);
    *max = top;
    return alpha;
}

void fm_tile_softmax(const fm_softmax_step *s)
{
    const size_t step = (size_t)s->m * 32, ld = (size_t)s->n_tile * 32;
    if (s->type == FM_BF16 && fm_cpu_isa() >= FM_ISA_AVX512) {
        fm__tile_softmax_avx512(s);
        return;
    }
    for (int i = 0; i < s->m; i++) {
        const int n   = s->n_visible[i] > 0 ? s->n_visible[i] : 0;
        float    *row = s->score + i * 32;
        s->alpha[i]   = n ? weigh_row(row, step, n, s->scale, &s->max[i], &s->sum[i]) : 1.0f;
        for (int k = (n + 31) / 32; k < s->n_tile; k++)
            memset(row + (size_t)k * step, 0, 32 * sizeof *row);
    }
    for (int k = 0; k < s->n_tile; k++)
        fm_tile_store((char *)s->weight + (size_t)k * 32 * fm_dtype_bytes(s->type), s->type, ld,
                      s->score + (size_t)k * step, s->m, 32);
}

FM_CLONES void fm_row_sigmoid(float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = 1.0f / (1.0f + fm_exp(-x[i]));
}

void fm_row_softmax(float *x, int n)
{
    fm_row_scale(x, 1.0f / exp_all(x, n, scale_and_max(x, n, 1.0f)), n);
}
