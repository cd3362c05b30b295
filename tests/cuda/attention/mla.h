/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of attention share: attention of one query in double
 * precision over bf16 numbers, and how far a kernel may be from it. */
#ifndef FM_TESTS_CUDA_MLA_H
#define FM_TESTS_CUDA_MLA_H

#include <math.h>

#include <vector>

#include "base/number.h"
#include "check.h"

typedef std::vector<uint16_t> bf16s;

static inline bf16s random_bf16(fm_numbers &r, size_t n, float most)
{
    bf16s v(n);
    for (uint16_t &x : v) x = fm_bf16_of_f32(r.between(-most, most));
    return v;
}

/* The pages 0 .. n-1 in another order. */
static inline std::vector<int32_t> shuffled(fm_numbers &r, int n)
{
    std::vector<int32_t> v((size_t)n);
    for (int i = 0; i < n; i++) v[(size_t)i] = i;
    for (int i = n - 1; i > 0; i--) std::swap(v[(size_t)i], v[(size_t)r.below(i + 1)]);
    return v;
}

/* sum of softmax(scale q.k) v over n_key keys.  bound[c] holds for any order
 * of sums in f32, weights rounded to bf16 and a result rounded to bf16: half a
 * unit of the eighth bit each. */
struct exact_row {
    std::vector<double> o, bound;
};

/* q(i), k(j, i) and v(j, c) give the numbers. */
template <class Q, class K, class V>
exact_row attend_exactly(int n_key, int width, int v_dim, double scale, Q q, K k, V v)
{
    std::vector<double> s((size_t)n_key);
    double              max = -INFINITY, sum = 0, most = 0;
    for (int j = 0; j < n_key; j++) {
        double size = 0;
        for (int i = 0; i < width; i++) {
            s[(size_t)j] += (double)q(i) * k(j, i);
            size += fabs((double)q(i) * k(j, i));
        }
        s[(size_t)j] *= scale;
        max  = fmax(max, s[(size_t)j]);
        most = fmax(most, size * scale);
    }
    for (double &x : s) sum += x = exp(x - max);
    exact_row r = {std::vector<double>((size_t)v_dim), std::vector<double>((size_t)v_dim)};
    for (int c = 0; c < v_dim; c++) {
        double size = 0;
        for (int j = 0; j < n_key; j++) {
            r.o[(size_t)c] += s[(size_t)j] / sum * v(j, c);
            size += s[(size_t)j] / sum * fabs((double)v(j, c));
        }
        r.bound[(size_t)c] =
            size * (0x1p-7 + 0x1p-15 + (width + 4) * 0x1p-22 * most + n_key * 0x1p-22) + 1e-38;
    }
    return r;
}

static inline void check_row(const char *file, int line, const uint16_t *got, const exact_row &want,
                             const char *what, int row, int head)
{
    for (size_t c = 0; c < want.o.size(); c++) {
        const double x = fm_f32_of_bf16(got[c]);
        if (fabs(x - want.o[c]) <= want.bound[c]) continue; /* false for NaN */
        fm_check_failed(file, line, "%s: row %d head %d column %zu is %.9g, expected %.9g +- %.2g",
                        what, row, head, c, x, want.o[c], want.bound[c]);
        return;
    }
}

#endif
