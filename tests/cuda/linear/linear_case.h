/* SPDX-License-Identifier: Apache-2.0 */
/* A dense product with random operands, and every way to compute it. */
#ifndef FM_TESTS_CUDA_LINEAR_CASE_H
#define FM_TESTS_CUDA_LINEAR_CASE_H

#include "linear/linear_matrix.h"
#include "llm/kernel/cuda/linear/linear.h"

struct fm_linear_case {
    int                   m, n, k, n_batch;
    bool                  by_k, y_bf16, accumulate;
    int                   ldy; /* wider than n: what lies between rows stays */
    fm_matrix_case        w;
    std::vector<uint16_t> x; /* [m][n_batch][k], as heads lie in a row */

    fm_linear_case(fm_numbers &r, int m_, int n_, int k_, bool e4m3, int n_batch_ = 1)
        : m(m_), n(n_), k(k_), n_batch(n_batch_), by_k(false), y_bf16(false), accumulate(false),
          ldy(n_ + 6), w(r, n_batch_, 1, n_, k_, e4m3), x(fm_hard_rows(r, m_, k_ * n_batch_))
    {
    }
};

/* [b][n][k] -> [b][k][n] */
static inline fm_matrix_case fm_turned(const fm_linear_case &c)
{
    fm_matrix_case t = c.w;
    for (int b = 0; b < c.n_batch; b++)
        for (int j = 0; j < c.n; j++)
            for (int i = 0; i < c.k; i++)
                t.bf16[(fm_at(b) * fm_at(c.k) + fm_at(i)) * fm_at(c.n) + fm_at(j)] =
                    c.w.bf16[c.w.index(b, 0, j, i)];
    return t;
}

static const float fm_before = 0.25f; /* what y holds before: exact in bf16 */

typedef enum {
    FM_BY_CHOICE,
    FM_BY_TILES,
    FM_BY_LIBRARY,
    FM_BY_WIDE /* and the shapes behind it */
} fm_linear_way;

/* cuBLASLt, made once and kept; over the emulator a stand-in. */
static inline fm_cuda_lt *fm_the_library()
{
    enum { BYTES = 32 << 20 };
    static fm_cuda_lt         *lt = NULL;
    static fm_device<uint8_t> *workspace;
    if (lt) return lt;
    workspace = new fm_device<uint8_t>(BYTES);
    FM_CHECK(fm_cuda_lt_create(&lt, workspace->data(), BYTES) == FM_OK);
    return lt;
}

static inline fm_status fm_linear_by(fm_linear_way way, const fm_cuda_linear_args *a)
{
    if (way >= FM_BY_WIDE) return fm_cuda_linear_wide(a, (fm_cuda_wide)(way - FM_BY_WIDE), NULL);
    switch (way) {
    case FM_BY_TILES: return fm_cuda_linear_tiles(a, NULL);
    case FM_BY_LIBRARY: return fm_cuda_lt_run(fm_the_library(), a, NULL);
    default: return fm_cuda_linear(fm_the_library(), a, NULL);
    }
}

/* Multiprocessors for which up to 32 rows of x stay in one thread block, and blocks of w are not
 * the wide ones: as many as there are blocks of 32 rows of w. */
static inline int fm_some_sm(const fm_linear_case &c) { return (c.n + 31) / 32 * c.n_batch; }

/* The first m rows of a case on the device. */
struct fm_linear_on_device {
    fm_matrix_copy      w;
    fm_device<uint16_t> x, y16;
    fm_device<float>    y32;
    fm_cuda_linear_args a;

    fm_linear_on_device(const fm_linear_case &c, int m, int n_sm)
        : w(c.by_k ? fm_turned(c) : c.w), x(c.x),
          y16(std::vector<uint16_t>(outputs(c, m), fm_bf16_of_f32(fm_before))),
          y32(std::vector<float>(outputs(c, m), fm_before)), a()
    {
        a.x          = x.data();
        a.w          = w.weight();
        a.scale      = w.scale();
        a.y          = c.y_bf16 ? (void *)y16.data() : (void *)y32.data();
        a.m          = m;
        a.n          = c.n;
        a.k          = c.k;
        a.ldx        = c.k * c.n_batch;
        a.ldw        = c.by_k ? c.n : c.k;
        a.ldy        = c.ldy * c.n_batch;
        a.n_batch    = c.n_batch;
        a.x_stride   = c.k;
        a.w_stride   = (int64_t)c.n * c.k;
        a.y_stride   = c.ldy;
        a.by_k       = c.by_k;
        a.y_bf16     = c.y_bf16;
        a.accumulate = c.accumulate;
        a.n_sm       = n_sm;
    }
    static size_t outputs(const fm_linear_case &c, int m)
    {
        return fm_at(m) * fm_at(c.n_batch) * fm_at(c.ldy);
    }
    std::vector<float> host() const
    {
        if (!a.y_bf16) return y32.host();
        std::vector<float> y;
        for (uint16_t v : y16.host()) y.push_back(fm_f32_of_bf16(v));
        return y;
    }
};

/* y [m][n_batch][ldy] of the first m rows.  n_sm picks the tiles. */
static inline std::vector<float> fm_run_linear(const fm_linear_case &c, int m, int n_sm,
                                               fm_linear_way way)
{
    const fm_linear_on_device d(c, m, n_sm);
    FM_CHECK(fm_cuda_linear_init() == FM_OK);
    FM_CHECK(fm_linear_by(way, &d.a) == FM_OK);
    return d.host();
}

/* y [m][I] bf16 of gate and up rows by turns. */
static inline std::vector<uint16_t> fm_run_gated(const fm_matrix_case        &w,
                                                 const std::vector<uint16_t> &x, int m, int n_sm,
                                                 fm_linear_way way)
{
    const fm_matrix_copy      copy(w);
    const fm_device<uint16_t> rows(x);
    fm_device<uint16_t>       y(fm_at(m) * fm_at(w.rows));
    fm_cuda_linear_args       a = {};
    a.x                         = rows.data();
    a.w                         = copy.weight();
    a.scale                     = copy.scale();
    a.y                         = y.data();
    a.m                         = m;
    a.n                         = 2 * w.rows;
    a.k = a.ldx = a.ldw = w.k;
    a.ldy               = w.rows;
    a.n_batch           = 1;
    a.swiglu            = 1;
    a.n_sm              = n_sm;
    FM_CHECK(fm_cuda_linear_init() == FM_OK);
    FM_CHECK(fm_linear_by(way, &a) == FM_OK);
    return y.host();
}

#endif
