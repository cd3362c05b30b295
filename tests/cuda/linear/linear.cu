/* SPDX-License-Identifier: Apache-2.0 */
/* Dense products against plain loops in double precision; a row has the same
 * bits for every m and every tile shape. */
#include "linear/linear_case.h"

/* y is [m][n_batch][ldy]. */
static void check_values(const fm_linear_case &c, const std::vector<float> &y, int m)
{
    for (int i = 0; i < m; i++)
        for (int b = 0; b < c.n_batch; b++)
            for (int j = 0; j < c.ldy; j++) {
                const int    row  = i * c.n_batch + b;
                const double got  = y[fm_at(row) * fm_at(c.ldy) + fm_at(j)];
                double       want = fm_before, size = 0;
                if (j < c.n)
                    want = c.w.dot(b, 0, j, &c.x[fm_at(row) * fm_at(c.k)], &size) +
                           (c.accumulate ? fm_before : 0);
                const double rounding = j < c.n ? fabs(want) * (c.y_bf16 ? 0x1p-8 : 0x1p-23) : 0;
                if (!(fabs(got - want) <=
                      fm_sum_error(c.k) * size + rounding + (j < c.n ? 0x1p-120 : 0))) {
                    fm_check_failed(__FILE__, __LINE__, "m %d: y[%d][%d][%d] is %g, expected %g", m,
                                    i, b, j, got, want);
                    return;
                }
            }
}

enum { FEW_SM = 1, MANY_SM = 1000 }; /* wide tiles, tiles of few rows */

/* All m of the case, by each tile shape: right, and each row as in company. */
static void check_case(const fm_linear_case &c, const std::vector<int> &fewer)
{
    const std::vector<float> all = fm_run_linear(c, c.m, MANY_SM, FM_BY_TILES);
    check_values(c, all, c.m);
    FM_CHECK_EQUAL(fm_run_linear(c, c.m, FEW_SM, FM_BY_TILES), all);
    FM_CHECK_EQUAL(fm_run_linear(c, c.m, fm_some_sm(c), FM_BY_TILES), all);
    for (int m : fewer)
        for (int n_sm : {(int)FEW_SM, fm_some_sm(c), (int)MANY_SM}) {
            const size_t n = fm_at(m) * fm_at(c.n_batch) * fm_at(c.ldy);
            FM_CHECK_EQUAL(fm_run_linear(c, m, n_sm, FM_BY_TILES),
                           std::vector<float>(all.begin(), all.begin() + (ptrdiff_t)n));
        }
}

FM_TEST(linear_rows_have_one_result)
{
    fm_numbers r(1);
    check_case(fm_linear_case(r, 65, 72, 264, false), {1, 8, 9, 16, 17, 33, 64});
}

FM_TEST(linear_e4m3_with_partial_blocks)
{
    fm_numbers r(2);
    check_case(fm_linear_case(r, 9, 576, 272, true), {1, 8});
    check_case(fm_linear_case(r, 65, 136, 144, true), {2, 16, 31, 64});
}

FM_TEST(linear_longer_than_its_ring)
{
    fm_numbers r(3);
    check_case(fm_linear_case(r, 3, 18, 2312, false), {1});
    check_case(fm_linear_case(r, 40, 34, 1360, true), {1});
}

FM_TEST(linear_to_bf16_and_onto_what_is_there)
{
    fm_numbers  r(4);
    fm_linear_case c(r, 5, 50, 136, false);
    c.y_bf16 = true;
    check_case(c, {1});
    c.y_bf16     = false;
    c.accumulate = true;
    check_case(c, {1});
}

FM_TEST(linear_over_heads)
{
    fm_numbers r(5);
    check_case(fm_linear_case(r, 11, 32, 72, false, 3), {1, 4});
}

FM_TEST(linear_over_heads_with_weights_along_n)
{
    fm_numbers  r(6);
    fm_linear_case c(r, 35, 72, 136, false, 3);
    c.by_k = true;
    check_case(c, {1, 9, 17, 32});
    fm_linear_case along(r, 35, 72, 136, false, 3); /* the same product from the other layout */
    along.w = c.w;
    along.x = c.x;
    FM_CHECK_EQUAL(fm_run_linear(along, 35, FEW_SM, FM_BY_TILES),
                   fm_run_linear(c, 35, FEW_SM, FM_BY_TILES));
}

static void check_swiglu(int m, int I, int k, bool e4m3)
{
    fm_numbers                  r(10);
    const fm_matrix_case        w(r, 1, 2, I, k, e4m3);
    const std::vector<uint16_t> x = fm_hard_rows(r, m, k),
                                y = fm_run_gated(w, x, m, MANY_SM, FM_BY_TILES);
    for (int i = 0; i < m; i++)
        for (int c = 0; c < I; c++) {
            double       a, b;
            const double gate  = w.dot(0, 0, c, &x[fm_at(i) * fm_at(k)], &a);
            const double up    = w.dot(0, 1, c, &x[fm_at(i) * fm_at(k)], &b),
                         silu  = gate / (1 + exp(-gate));
            const double got   = fm_f32_of_bf16(y[fm_at(i) * fm_at(I) + fm_at(c)]);
            const double error = fm_sum_error(k) * (1.1 * a * (fabs(up) + b) + fabs(silu) * b);
            if (!(fabs(got - silu * up) <= error + fabs(silu * up) * (0x1p-8 + 0x1p-20) + 0x1p-133))
                fm_check_failed(__FILE__, __LINE__, "y[%d][%d] is %g, expected %g", i, c, got,
                                silu * up);
        }
    FM_CHECK_EQUAL(fm_run_gated(w, x, m, FEW_SM, FM_BY_TILES), y); /* wide, and narrow */
    FM_CHECK_EQUAL(fm_run_gated(w, x, 1, MANY_SM, FM_BY_TILES),
                   std::vector<uint16_t>(y.begin(), y.begin() + I));
}

FM_TEST(linear_with_swiglu)
{
    check_swiglu(5, 48, 264, false);
    check_swiglu(17, 176, 144, true);
    check_swiglu(66, 16, 144, true);
    check_swiglu(40, 48, 72, false);
}

FM_TEST(linear_of_nothing)
{
    fm_numbers  r(7);
    fm_linear_case c(r, 1, 16, 32, false);
    FM_CHECK(fm_run_linear(c, 0, FEW_SM, FM_BY_TILES).empty());
}

FM_TEST(linear_takes_the_library_for_many_rows_of_bf16)
{
    fm_cuda_linear_args a     = {};
    const float         scale = 1;
    a.m                       = 8;
    FM_CHECK(!fm_cuda_linear_wants_lt(&a));
    a.m = 256;
    FM_CHECK(fm_cuda_linear_wants_lt(&a));
    a.swiglu = 1;
    FM_CHECK(!fm_cuda_linear_wants_lt(&a));
    a.swiglu = 0;
    a.scale  = &scale;
    FM_CHECK(!fm_cuda_linear_wants_lt(&a));
}

static fm_cuda_linear_args product_of(int m, int n, int k, int n_batch)
{
    fm_cuda_linear_args a = {};
    a.m = m, a.n = n, a.k = k, a.n_batch = n_batch, a.n_sm = 132;
    return a;
}

static void check_library(int most_tiles, int n, int k, int n_batch)
{
    const fm_cuda_linear_args few  = product_of(most_tiles, n, k, n_batch);
    const fm_cuda_linear_args more = product_of(most_tiles + 1, n, k, n_batch);
    FM_CHECK(!fm_cuda_linear_wants_lt(&few) && fm_cuda_linear_wants_lt(&more));
}

/* Shapes of V2-Lite and R1, and what was faster on an H200. */
FM_TEST(linear_takes_the_library_where_it_is_faster)
{
    check_library(64, 64, 2048, 1);  /* router */
    check_library(64, 576, 2048, 1); /* kv_a */
    check_library(64, 128, 512, 16); /* absorb v */
    check_library(32, 2048, 2048, 1);
    check_library(32, 2048, 2816, 1);
    check_library(32, 102400, 2048, 1);
    check_library(32, 129280, 7168, 1);
    check_library(32, 3072, 2048, 1); /* queries */
    check_library(32, 3648, 2048, 1);
    check_library(16, 4256, 2048, 1);
    check_library(16, 2112, 7168, 1);
    check_library(16, 256, 7168, 1);
    check_library(16, 7168, 16384, 1);
    check_library(16, 128, 512, 128);
}

enum { BY_TILES = -1 };

static void check_wide(int want, int m, int n, int k)
{
    const float         scale = 1;
    fm_cuda_wide        shape;
    fm_cuda_linear_args a = product_of(m, n, k, 1);
    a.scale               = &scale;
    FM_CHECK((fm_cuda_linear_wants_wide(&a, &shape) ? (int)shape : (int)BY_TILES) == want);
}

FM_TEST(linear_takes_the_tiles_of_e4m3_that_are_faster)
{
    for (int n : {2112, 7168, 24576}) check_wide(BY_TILES, 16, n, 1536);
    for (int m : {32, 64}) check_wide(BY_TILES, m, 2112, 7168);
    check_wide(BY_TILES, 32, 24576, 1536);
    check_wide(FM_CUDA_WIDE_64X64, 64, 7168, 16384);
    check_wide(FM_CUDA_WIDE_128X64, 128, 7168, 16384);
    check_wide(FM_CUDA_WIDE_128X128, 256, 7168, 16384);
    check_wide(FM_CUDA_WIDE_128X256, 4096, 7168, 16384);
    check_wide(FM_CUDA_WIDE_128X128, 256, 24576, 1536);
}

FM_TEST(linear_of_many_e4m3_rows)
{
    fm_numbers     r(9);
    fm_linear_case c(r, 130, 150, 272, true);
    check_values(c, fm_run_linear(c, 130, 1, FM_BY_CHOICE), 130);
    c.accumulate = true;
    check_values(c, fm_run_linear(c, 130, 1, FM_BY_CHOICE), 130);
    c.accumulate = false;
    c.y_bf16     = true;
    check_values(c, fm_run_linear(c, 130, 1, FM_BY_CHOICE), 130);
}

/* Over the emulator the library is a plain loop, which checks the strides. */
FM_TEST(linear_by_the_library)
{
    fm_numbers     r(8);
    fm_linear_case c(r, 70, 64, 136, false, 2);
    c.ldy = 72;
    check_values(c, fm_run_linear(c, 70, FEW_SM, FM_BY_LIBRARY), 70);
    check_values(c, fm_run_linear(c, 67, FEW_SM, FM_BY_LIBRARY), 67);
    c.by_k = true;
    check_values(c, fm_run_linear(c, 70, FEW_SM, FM_BY_LIBRARY), 70);
    c.y_bf16 = true;
    check_values(c, fm_run_linear(c, 70, FEW_SM, FM_BY_LIBRARY), 70);
    c.y_bf16     = false;
    c.accumulate = true;
    check_values(c, fm_run_linear(c, 70, FEW_SM, FM_BY_LIBRARY), 70);
}
