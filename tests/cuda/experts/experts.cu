/* SPDX-License-Identifier: Apache-2.0 */
/* Routed experts in tiles, against plain loops in double precision, and
 * against themselves: no tile shape and no company changes a pair's bits. */
#include "llm/kernel/cuda/experts/experts.h"

#include "linear/linear_matrix.h"

/* Tokens and rows of weights of every kernel. */
static std::vector<int> all_widths(bool e4m3)
{
    if (e4m3) return {8, 16, 32, 64};
    return {8, 16, 32, 64, 256};
}

struct experts_case {
    int                   D, I, T;
    fm_matrix_case        gate_up, down;
    std::vector<uint16_t> h;
    std::vector<int>      pair_row, pair_expert;

    experts_case(fm_numbers &r, const std::vector<int> &count, int D_, int I_, int T_, bool e4m3)
        : D(D_), I(I_), T(T_), gate_up(r, (int)count.size(), 2, I_, D_, e4m3),
          down(r, (int)count.size(), 1, D_, I_, e4m3), h(fm_hard_rows(r, T_, D_))
    {
        for (size_t e = 0; e < count.size(); e++)
            for (int i = 0; i < count[e]; i++) {
                pair_expert.push_back((int)e);
                pair_row.push_back(r.below(T));
            }
    }
    int             n_pair() const { return (int)pair_row.size(); }
    const uint16_t *row_of(int pair) const { return &h[fm_at(pair_row[fm_at(pair)]) * fm_at(D)]; }
};

struct experts_result {
    std::vector<uint16_t> middle, pair_out;
};

/* Pairs of one expert lie together; each run is cut into blocks. */
static std::vector<int> blocks_of(const std::vector<int> &expert, int width)
{
    std::vector<int> b;
    const int        n = (int)expert.size();
    for (int i = 0; i < n;) {
        int end = i;
        while (end < n && end < i + width && expert[fm_at(end)] == expert[fm_at(i)]) end++;
        b.insert(b.end(), {expert[fm_at(i)], i, end - i});
        i = end;
    }
    return b;
}

static experts_result run(const experts_case &c, int width, int n_sm)
{
    std::vector<int>       blocks = blocks_of(c.pair_expert, width);
    const std::vector<int> n_block(1, (int)blocks.size() / 3);
    blocks.resize(blocks.size() + 9, 12345678); /* a bound is all the host knows */
    const size_t         n = fm_at(c.n_pair()), canary = 64;
    fm_device<int>       block(blocks), count(n_block), pair_row(c.pair_row);
    fm_device<uint16_t>  h(c.h), middle(n * fm_at(c.I) + canary),
        pair_out(n * fm_at(c.D) + canary);
    const fm_matrix_copy gate_up(c.gate_up), down(c.down);
    fm_cuda_experts_args a = {};
    a.gate_up              = {gate_up.weight(), gate_up.scale(), 0};
    a.down                 = {down.weight(), down.scale(), 0};
    a.h                    = h.data();
    a.middle               = middle.data();
    a.pair_out             = pair_out.data();
    a.pair_row             = pair_row.data();
    a.block                = block.data();
    a.n_block              = count.data();
    a.max_block            = n_block[0] + 3;
    a.n_expert             = c.down.count;
    a.n_pair               = c.n_pair();
    a.block_rows           = width;
    a.D                    = c.D;
    a.I                    = c.I;
    a.n_sm                 = n_sm;
    FM_CHECK(fm_cuda_experts_init() == FM_OK);
    FM_CHECK(fm_cuda_experts_up(&a, NULL) == FM_OK);
    FM_CHECK(fm_cuda_experts_down(&a, NULL) == FM_OK);
    experts_result r = {middle.host(), pair_out.host()};
    for (size_t i = 0; i < canary; i++) {
        FM_CHECK(r.middle[n * fm_at(c.I) + i] == 0xffff);
        FM_CHECK(r.pair_out[n * fm_at(c.D) + i] == 0xffff);
    }
    r.middle.resize(n * fm_at(c.I));
    r.pair_out.resize(n * fm_at(c.D));
    return r;
}

/* silu grows by at most 1.1 per unit of its argument. */
static void check_middle(const experts_case &c, const experts_result &got)
{
    for (int p = 0; p < c.n_pair(); p++)
        for (int i = 0; i < c.I; i++) {
            const int    e = c.pair_expert[fm_at(p)];
            double       gate_size, up_size;
            const double gate = c.gate_up.dot(e, 0, i, c.row_of(p), &gate_size);
            const double up   = c.gate_up.dot(e, 1, i, c.row_of(p), &up_size);
            const double silu = gate / (1 + exp(-gate)), want = silu * up;
            const double error =
                fm_sum_error(c.D) * (1.1 * gate_size * (fabs(up) + up_size) + fabs(silu) * up_size);
            const double g = fm_f32_of_bf16(got.middle[fm_at(p) * fm_at(c.I) + fm_at(i)]);
            if (!(fabs(g - want) <= error + fabs(want) * (0x1p-8 + 0x1p-20) + 0x1p-133)) {
                fm_check_failed(__FILE__, __LINE__, "middle[%d][%d] is %g, expected %g", p, i, g,
                                want);
                return;
            }
        }
}

/* From the middle the kernel made: each phase is held to its own bound. */
static void check_out(const experts_case &c, const experts_result &got)
{
    for (int p = 0; p < c.n_pair(); p++)
        for (int d = 0; d < c.D; d++) {
            double       size;
            const int    e    = c.pair_expert[fm_at(p)];
            const double want = c.down.dot(e, 0, d, &got.middle[fm_at(p) * fm_at(c.I)], &size);
            const double g = fm_f32_of_bf16(got.pair_out[fm_at(p) * fm_at(c.D) + fm_at(d)]);
            if (!(fabs(g - want) <= fm_sum_error(c.I) * size + fabs(want) * (0x1p-8 + 0x1p-20) + 0x1p-120)) {
                fm_check_failed(__FILE__, __LINE__, "pair_out[%d][%d] is %g, expected %g", p, d, g,
                                want);
                return;
            }
        }
}

static void check_all_shapes(const experts_case &c, int n_sm)
{
    const experts_result first = run(c, 8, n_sm);
    check_middle(c, first);
    check_out(c, first);
    for (int width : all_widths(c.gate_up.e4m3)) {
        const experts_result other = run(c, width, n_sm);
        FM_CHECK_EQUAL(other.middle, first.middle);
        FM_CHECK_EQUAL(other.pair_out, first.pair_out);
    }
}

FM_TEST(experts_of_all_loads_in_every_tile)
{
    fm_numbers r(1);
    check_all_shapes(experts_case(r, {0, 129, 200, 300, 390, 0, 1, 9, 100}, 200, 48, 40, false), 1);
}

/* Thread blocks that meet other blocks of tokens in every round. */
FM_TEST(experts_in_several_rounds)
{
    fm_numbers           r(9);
    const experts_case   c(r, {300, 140, 70, 260, 20, 193}, 72, 144, 40, false);
    const experts_result first = run(c, 64, 1);
    for (int n_sm : {1, 2, 3, 6}) {
        const experts_result other = run(c, 256, n_sm);
        FM_CHECK_EQUAL(other.middle, first.middle);
        FM_CHECK_EQUAL(other.pair_out, first.pair_out);
    }
}

FM_TEST(experts_e4m3_of_all_loads_in_every_tile)
{
    fm_numbers r(2);
    check_all_shapes(experts_case(r, {0, 129, 200, 0, 1, 9}, 272, 144, 40, true), 1);
}

FM_TEST(experts_with_one_token_each)
{
    fm_numbers r(3);
    check_all_shapes(experts_case(r, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 64, 16, 4, false), 2);
}

/* Many more steps than stages, and more tasks than thread blocks. */
static void check_long_ring(bool e4m3)
{
    fm_numbers           r(4);
    const experts_case   c(r, {3, 0, 17, 8}, 912, 80, 20, e4m3);
    const experts_result a = run(c, 8, 1);
    check_middle(c, a);
    check_out(c, a);
    for (int width : all_widths(e4m3))
        for (int n_sm : {1, 100}) {
            const experts_result b = run(c, width, n_sm);
            FM_CHECK_EQUAL(a.middle, b.middle);
            FM_CHECK_EQUAL(a.pair_out, b.pair_out);
        }
}

FM_TEST(experts_that_share_a_long_ring) { check_long_ring(false); }

FM_TEST(experts_e4m3_that_share_a_long_ring) { check_long_ring(true); }

FM_TEST(experts_e4m3_with_more_factors_than_lanes)
{
    fm_numbers           r(8); /* 34 blocks of 128 k: a lane keeps two factors */
    const experts_case   c(r, {5, 9}, 34 * 128 + 16, 32, 10, true);
    const experts_result a = run(c, 8, 1);
    check_middle(c, a);
    FM_CHECK_EQUAL(run(c, 64, 1).middle, a.middle);
    FM_CHECK_EQUAL(run(c, 32, 1).middle, a.middle);
}

FM_TEST(experts_without_tokens)
{
    fm_numbers r(5);
    run(experts_case(r, {0, 0, 0}, 64, 16, 4, false), 16, 1);
}

/* What each pair would be alone with its expert. */
static void check_alone(const experts_case &c)
{
    const experts_result crowd = run(c, 64, 2);
    for (int p = 0; p < c.n_pair(); p += 5) {
        experts_case one            = c;
        one.pair_row                = {c.pair_row[fm_at(p)]};
        one.pair_expert             = {c.pair_expert[fm_at(p)]};
        const experts_result got    = run(one, 8, 1);
        const uint16_t      *middle = &crowd.middle[fm_at(p) * fm_at(c.I)];
        const uint16_t      *out    = &crowd.pair_out[fm_at(p) * fm_at(c.D)];
        FM_CHECK_EQUAL(got.middle, std::vector<uint16_t>(middle, middle + c.I));
        FM_CHECK_EQUAL(got.pair_out, std::vector<uint16_t>(out, out + c.D));
    }
}

FM_TEST(experts_give_a_pair_its_bits_alone_and_in_company)
{
    fm_numbers r(6);
    check_alone(experts_case(r, {2, 31, 0, 7}, 136, 32, 24, false));
    check_alone(experts_case(r, {2, 31, 0, 7}, 160, 32, 24, true));
}

/* No block list: one MLP over all rows. */
static void check_plain(bool e4m3, int n_row, int width)
{
    fm_numbers   r(7);
    experts_case c(r, {n_row}, 144, 32, n_row, e4m3);
    for (int i = 0; i < n_row; i++) c.pair_row[fm_at(i)] = i;
    fm_device<uint16_t>  h(c.h), middle(fm_at(n_row) * fm_at(c.I)), y(fm_at(n_row) * fm_at(c.D));
    const fm_matrix_copy gate_up(c.gate_up), down(c.down);
    fm_cuda_experts_args a = {};
    a.gate_up              = {gate_up.weight(), gate_up.scale(), 0};
    a.down                 = {down.weight(), down.scale(), 0};
    a.h                    = h.data();
    a.middle               = middle.data();
    a.pair_out             = y.data();
    a.n_row                = n_row;
    a.block_rows           = width;
    a.D                    = c.D;
    a.I                    = c.I;
    a.n_sm                 = 1;
    FM_CHECK(fm_cuda_experts_up(&a, NULL) == FM_OK);
    FM_CHECK(fm_cuda_experts_down(&a, NULL) == FM_OK);
    const experts_result got = {middle.host(), y.host()}, want = run(c, 16, 1);
    FM_CHECK_EQUAL(got.middle, want.middle);
    FM_CHECK_EQUAL(got.pair_out, want.pair_out);
}

FM_TEST(experts_as_a_plain_mlp)
{
    check_plain(false, 37, 32);
    check_plain(true, 5, 8);
    check_plain(false, 150, 256);
    check_plain(true, 150, 64);
}

/* A rank's share of the outputs may be an odd number of fours. */
FM_TEST(experts_with_outputs_that_are_no_multiple_of_eight)
{
    fm_numbers            r(12);
    const int             n = 150, I = 64, D = 268;
    const fm_matrix_case  down(r, 1, 1, D, I, false);
    const fm_matrix_copy  weights(down);
    fm_device<uint16_t>   middle(fm_hard_rows(r, n, I));
    std::vector<uint16_t> first;
    for (int width : all_widths(false)) {
        fm_device<uint16_t>  y(fm_at(n) * fm_at(D) + 64);
        fm_cuda_experts_args a = {};
        a.down                 = {weights.weight(), NULL, 0};
        a.middle               = middle.data();
        a.pair_out             = y.data();
        a.n_row                = n;
        a.block_rows           = width;
        a.D                    = D;
        a.I                    = I;
        a.n_sm                 = 2;
        FM_CHECK(fm_cuda_experts_down(&a, NULL) == FM_OK);
        if (first.empty()) first = y.host();
        FM_CHECK_EQUAL(y.host(), first);
        FM_CHECK(first.back() == 0xffff && first[fm_at(n) * fm_at(D) - 1] != 0xffff);
    }
}

FM_TEST(experts_choose_a_width_that_exists)
{
    for (int mean = 0; mean < 1000; mean = mean * 2 + 1) {
        for (int e4m3 : {0, 1}) {
            const int w     = fm_cuda_experts_block_rows(mean * 64, 64, e4m3);
            bool      known = false;
            for (int width : all_widths(e4m3)) known = known || width == w;
            FM_CHECK(known && (mean > 64 || w >= mean));
        }
    }
    fm_cuda_experts_args a = {};
    a.block_rows           = 24;
    a.n_row                = 1;
    a.D = a.I = 16;
    a.n_sm    = 1;
    FM_CHECK(fm_cuda_experts_up(&a, NULL) == FM_E_NOSUP);
}
