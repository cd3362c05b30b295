/* SPDX-License-Identifier: Apache-2.0 */
/* A row of y has the same bits for every number of rows beside it and every
 * kernel that may compute it. */
#include "linear/linear_case.h"
#include "llm/kernel/cuda/experts/experts.h"

enum { MOST = 300, FEW_SM = 1, MANY_SM = 1000 }; /* wide tiles, tiles of few rows */

static const int row_counts[] = {1,  2,  7,  8,  9,  16,  17,  24,  31,  32,  33,
                                 48, 63, 64, 65, 96, 127, 128, 129, 255, 256, MOST};

static void check_rows(const fm_linear_case &c, const std::vector<float> &all, int m, int n_sm,
                       fm_linear_way way)
{
    const ptrdiff_t n = (ptrdiff_t)m * c.n_batch * c.ldy;
    FM_CHECK_EQUAL(fm_run_linear(c, m, n_sm, way),
                   std::vector<float>(all.begin(), all.begin() + n));
}

static void check_ways(const fm_linear_case &c, fm_linear_way other)
{
    const std::vector<float> all = fm_run_linear(c, MOST, FEW_SM, FM_BY_TILES);
    for (int m : row_counts) {
        check_rows(c, all, m, MANY_SM, FM_BY_TILES);
        check_rows(c, all, m, fm_some_sm(c), FM_BY_TILES);
        check_rows(c, all, m, 3, FM_BY_CHOICE);
        check_rows(c, all, m, 3, other);
    }
}

FM_TEST(a_row_of_bf16_products_has_one_result)
{
    fm_numbers     r(1);
    fm_linear_case c(r, MOST, 72, 392, false);
    c.ldy = 80;
    check_ways(c, FM_BY_LIBRARY);
}

FM_TEST(a_row_of_every_head_has_one_result)
{
    fm_numbers     r(2);
    fm_linear_case c(r, MOST, 32, 136, false, 2);
    c.ldy = 40;
    check_ways(c, FM_BY_LIBRARY);
    c.by_k = true;
    check_ways(c, FM_BY_LIBRARY);
}

FM_TEST(a_row_of_e4m3_products_has_one_result)
{
    fm_numbers           r(3);
    const fm_linear_case c(r, MOST, 72, 656, true);
    check_ways(c, (fm_linear_way)(FM_BY_WIDE + FM_CUDA_WIDE_64X128));
}

/* Long sums are where the library would like to split k. */
FM_TEST(a_long_sum_has_one_result)
{
    fm_numbers     r(5);
    fm_linear_case c(r, 72, 64, 7168, false);
    c.ldy                        = 64;
    const std::vector<float> all = fm_run_linear(c, 72, FEW_SM, FM_BY_TILES);
    for (int m : {1, 33, 64, 72}) {
        check_rows(c, all, m, MANY_SM, FM_BY_CHOICE);
        check_rows(c, all, m, MANY_SM, FM_BY_LIBRARY);
    }
}

/* --- gate and up ------------------------------------------------------------- */

struct gated_case {
    fm_matrix_case        w;
    std::vector<uint16_t> x; /* [MOST, k] */
    gated_case(fm_numbers &r, int I, int k, bool e4m3)
        : w(r, 1, 2, I, k, e4m3), x(fm_hard_rows(r, MOST, k))
    {
    }
};

static std::vector<uint16_t> by_tiles(const gated_case &c, int m, int n_sm)
{
    return fm_run_gated(c.w, c.x, m, n_sm, FM_BY_TILES);
}

static std::vector<uint16_t> by_experts(const gated_case &c, int m)
{
    const fm_matrix_copy      w(c.w);
    const fm_device<uint16_t> x(c.x);
    fm_device<uint16_t>       y(fm_at(m) * fm_at(c.w.rows));
    fm_cuda_experts_args      a = {};
    a.gate_up                   = {w.weight(), w.scale(), 0};
    a.h                         = x.data();
    a.middle                    = y.data();
    a.n_row                     = m;
    a.block_rows                = fm_cuda_experts_block_rows(m, 1, 0);
    a.D                         = c.w.k;
    a.I                         = c.w.rows;
    a.n_sm                      = 3;
    FM_CHECK(fm_cuda_experts_init() == FM_OK);
    FM_CHECK(fm_cuda_experts_up(&a, NULL) == FM_OK);
    return y.host();
}

static void check_gated(bool e4m3)
{
    fm_numbers                  r(4);
    const gated_case            c(r, 48, 400, e4m3);
    const std::vector<uint16_t> all = by_tiles(c, MOST, FEW_SM);
    for (int m : row_counts) {
        const std::vector<uint16_t> first(all.begin(), all.begin() + m * 48);
        FM_CHECK_EQUAL(by_tiles(c, m, MANY_SM), first);
        FM_CHECK_EQUAL(by_experts(c, m), first);
    }
}

FM_TEST(a_row_through_gate_and_up_has_one_result)
{
    check_gated(false);
    check_gated(true);
}

/* Products of different widths, depths and types of output. */
FM_TEST(two_products_in_one_launch_have_the_bits_of_each_alone)
{
    fm_numbers     r(11);
    fm_linear_case queries(r, 16, 200, 264, false), latents(r, 16, 72, 136, false);
    queries.y_bf16 = true;
    FM_CHECK(fm_cuda_linear_init() == FM_OK);
    for (int m : {1, 8, 9, 16}) {
        const int           n_sm = 132;
        fm_linear_on_device a(queries, m, n_sm), b(latents, m, n_sm);
        FM_CHECK(fm_cuda_linear_suits_two(&a.a, &b.a));
        FM_CHECK(fm_cuda_linear_two(&a.a, &b.a, NULL) == FM_OK);
        FM_CHECK_EQUAL(a.host(), fm_run_linear(queries, m, n_sm, FM_BY_TILES));
        FM_CHECK_EQUAL(b.host(), fm_run_linear(latents, m, n_sm, FM_BY_TILES));
    }
}
