/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrices as the kernels take them, and their elements as doubles. */
#ifndef FM_TESTS_CUDA_LINEAR_MATRIX_H
#define FM_TESTS_CUDA_LINEAR_MATRIX_H

#include <math.h>

#include "base/number.h"
#include "check.h"

/* How far any one order of k f32 additions may be from the exact sum, per unit
 * of sum |x w|. */
static inline double fm_sum_error(int k)
{
    return k * 0x1p-22;
}

static inline size_t fm_at(int a)
{
    return (size_t)a;
}

/* Sizes of a few orders of magnitude, as activations have. */
static inline std::vector<uint16_t> fm_random_bf16(fm_numbers &r, size_t n, float largest)
{
    std::vector<uint16_t> v(n);
    for (uint16_t &x : v) x = fm_bf16_of_f32(r.between(-largest, largest) * r.unit());
    return v;
}

/* One token in eight has a value a thousand times the others, one in eight is
 * tiny. */
static inline std::vector<uint16_t> fm_hard_rows(fm_numbers &r, int n_row, int k)
{
    std::vector<uint16_t> v = fm_random_bf16(r, fm_at(n_row) * fm_at(k), 2);
    for (int i = 0; i < n_row; i++) {
        if (i % 8 == 3) v[fm_at(i) * fm_at(k) + fm_at(r.below(k))] = fm_bf16_of_f32(2000);
        if (i % 8 == 5)
            for (int c = 0; c < k; c++) {
                uint16_t &x = v[fm_at(i) * fm_at(k) + fm_at(c)];
                x           = fm_bf16_of_f32(fm_f32_of_bf16(x) * 1e-20f);
            }
    }
    return v;
}

/* [count][parts * rows][k]; with two parts their rows alternate by sixteens.
 * scale [count][parts][rows/128 up][k/128 up]. */
struct fm_matrix_case {
    int                   count, parts, rows, k;
    bool                  e4m3;
    std::vector<uint16_t> bf16;
    std::vector<uint8_t>  byte;
    std::vector<float>    scale;

    fm_matrix_case(fm_numbers &r, int count_, int parts_, int rows_, int k_, bool e4m3_)
        : count(count_), parts(parts_), rows(rows_), k(k_), e4m3(e4m3_)
    {
        const size_t n = fm_at(count) * fm_at(parts) * fm_at(rows) * fm_at(k);
        if (!e4m3) {
            bf16 = fm_random_bf16(r, n, 1);
            return;
        }
        byte.resize(n);
        for (uint8_t &b : byte) do
                b = (uint8_t)(r.u32() >> 7);
            while ((b & 0x7f) == 0x7f);
        scale =
            r.floats(fm_at(count) * fm_at(parts) * fm_at(deep()) * fm_at(along()), 1e-4f, 3e-3f);
    }
    int deep() const { return (rows + 127) / 128; }
    int along() const { return (k + 127) / 128; }

    size_t index(int e, int part, int row, int c) const
    {
        const int at = parts == 2 ? row / 16 * 32 + part * 16 + row % 16 : row;
        return (fm_at(e) * fm_at(parts) * fm_at(rows) + fm_at(at)) * fm_at(k) + fm_at(c);
    }
    double at(int e, int part, int row, int c) const
    {
        if (!e4m3) return fm_f32_of_bf16(bf16[index(e, part, row, c)]);
        const int block = ((e * parts + part) * deep() + row / 128) * along() + c / 128;
        return (double)fm_f32_of_fp8(byte[index(e, part, row, c)]) * scale[fm_at(block)];
    }
    /* sum_c w x, and sum_c |w x| */
    double dot(int e, int part, int row, const uint16_t *x, double *size) const
    {
        double sum = 0;
        *size      = 0;
        for (int c = 0; c < k; c++) {
            const double p = at(e, part, row, c) * fm_f32_of_bf16(x[c]);
            sum += p;
            *size += fabs(p);
        }
        return sum;
    }
};

/* The same on the device. */
struct fm_matrix_copy {
    fm_device<uint16_t> bf16;
    fm_device<uint8_t>  byte;
    fm_device<float>    factor;
    bool                e4m3;
    explicit fm_matrix_copy(const fm_matrix_case &m)
        : bf16(m.bf16), byte(m.byte), factor(m.scale), e4m3(m.e4m3)
    {
    }
    const void  *weight() const { return e4m3 ? (const void *)byte.data() : bf16.data(); }
    const float *scale() const { return e4m3 ? factor.data() : NULL; }
};

#endif
