/* SPDX-License-Identifier: Apache-2.0 */
/* Every shape of the wide product of E4M3 weights gives the bits of the tiles. */
#include "linear/linear_case.h"

enum { MOST = 300, N_SM = 3 };

static const std::vector<int> row_counts = {1, 33, 64, 129, MOST};

static void check_shapes(const fm_linear_case &c, const std::vector<int> &counts)
{
    const std::vector<float> all = fm_run_linear(c, MOST, N_SM, FM_BY_TILES);
    for (int shape = 0; shape < FM_CUDA_N_WIDE; shape++)
        for (int m : counts)
            FM_CHECK_EQUAL(fm_run_linear(c, m, N_SM, (fm_linear_way)(FM_BY_WIDE + shape)),
                           std::vector<float>(all.begin(), all.begin() + m * c.ldy));
}

FM_TEST(wide_rows_have_the_result_of_tiles)
{
    fm_numbers r(1);
    check_shapes(fm_linear_case(r, MOST, 200, 656, true), row_counts);
}

/* More steps than stages and more tasks than thread blocks. */
FM_TEST(wide_rows_of_many_tasks)
{
    fm_numbers r(2);
    check_shapes(fm_linear_case(r, MOST, 600, 784, true), {MOST});
}

FM_TEST(wide_rows_to_bf16_and_onto_what_is_there)
{
    fm_numbers     r(3);
    fm_linear_case c(r, MOST, 136, 144, true);
    c.y_bf16 = true;
    check_shapes(c, {65});
    c.y_bf16     = false;
    c.accumulate = true;
    check_shapes(c, {65});
}

FM_TEST(wide_rows_through_gate_and_up)
{
    fm_numbers                  r(4);
    const fm_matrix_case        w(r, 1, 2, 144, 400, true);
    const std::vector<uint16_t> x = fm_hard_rows(r, MOST, 400);
    const std::vector<uint16_t> all = fm_run_gated(w, x, MOST, N_SM, FM_BY_TILES);
    for (int shape = 0; shape < FM_CUDA_N_WIDE; shape++)
        for (int m : row_counts)
            FM_CHECK_EQUAL(fm_run_gated(w, x, m, N_SM, (fm_linear_way)(FM_BY_WIDE + shape)),
                           std::vector<uint16_t>(all.begin(), all.begin() + m * 144));
}
