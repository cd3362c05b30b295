/* SPDX-License-Identifier: Apache-2.0 */
/* E4M3 activations times E4M3 weights: against sums in double precision, and against each other,
 * since no shape and no company changes a row's bits. */
#include "llm/kernel/cuda/fp8/fp8.h"

#include <math.h>

#include "linear/linear_matrix.h"

/* What wgmma loses inside steps (fp8.h), with room for weights of all magnitudes. */
static const double step_error = 0x1p-9;

struct fp8_rows {
    int                  n, k;
    std::vector<uint8_t> byte;
    std::vector<float>   scale;

    fp8_rows(const std::vector<uint16_t> &x, int n_, int k_) : n(n_), k(k_)
    {
        fm_device<uint16_t>   from(x);
        fm_device<uint8_t>    to(fm_at(n) * fm_at(k));
        fm_device<float>      factor(fm_at(n) * fm_at(blocks()));
        fm_cuda_quantise_args a = {};
        a.x                     = from.data();
        a.y                     = to.data();
        a.scale                 = factor.data();
        a.n_row = a.n_x = n;
        a.k = a.ldx = k;
        FM_CHECK(fm_cuda_quantise(&a, NULL) == FM_OK);
        byte  = to.host();
        scale = factor.host();
    }
    int    blocks() const { return (k + 127) / 128; }
    double at(int row, int c) const
    {
        return (double)fm_f32_of_fp8(byte[fm_at(row) * fm_at(k) + fm_at(c)]) *
               scale[fm_at(row) * fm_at(blocks()) + fm_at(c / 128)];
    }
};

struct fp8_case {
    int              I, D; /* columns out, in */
    fm_matrix_case   w;
    fp8_rows         x;
    std::vector<int> pair_row, pair_expert;

    fp8_case(fm_numbers &r, const std::vector<int> &count, int parts, int I_, int D_, int T)
        : I(I_), D(D_), w(r, (int)count.size(), parts, I_, D_, true),
          x(fm_hard_rows(r, T, D_), T, D_)
    {
        for (size_t e = 0; e < count.size(); e++)
            for (int i = 0; i < count[e]; i++) {
                pair_expert.push_back((int)e);
                pair_row.push_back(r.below(T));
            }
    }
    int    n_pair() const { return (int)pair_row.size(); }
    double dot(int pair, int part, int row, double *size) const
    {
        double sum = 0;
        *size      = 0;
        for (int c = 0; c < D; c++) {
            const double p =
                w.at(pair_expert[fm_at(pair)], part, row, c) * x.at(pair_row[fm_at(pair)], c);
            sum += p;
            *size += fabs(p);
        }
        return sum;
    }
};

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

/* Rows in the order of the pairs, as wide blocks want them. */
static fp8_rows in_order(const fp8_case &c)
{
    fp8_rows     r = c.x;
    const size_t k = fm_at(c.D), blocks = fm_at(c.x.blocks());
    r.n = c.n_pair();
    r.byte.resize(fm_at(r.n) * k);
    r.scale.resize(fm_at(r.n) * blocks);
    for (int i = 0; i < r.n; i++) {
        const size_t from = fm_at(c.pair_row[fm_at(i)]);
        for (size_t j = 0; j < k; j++) r.byte[fm_at(i) * k + j] = c.x.byte[from * k + j];
        for (size_t j = 0; j < blocks; j++)
            r.scale[fm_at(i) * blocks + j] = c.x.scale[from * blocks + j];
    }
    return r;
}

struct tile_width {
    fm_cuda_fp8_tile tile;
    int              width, rows;
};

static const tile_width all_tiles[] = {
    {FM_CUDA_FP8_8X64, 8, 64},       {FM_CUDA_FP8_16X64, 16, 64},
    {FM_CUDA_FP8_8X128, 8, 128},     {FM_CUDA_FP8_16X128, 16, 128},
    {FM_CUDA_FP8_32X128, 32, 128},   {FM_CUDA_FP8_64X128, 64, 128},
    {FM_CUDA_FP8_8X256, 8, 256},     {FM_CUDA_FP8_16X256, 16, 256},
    {FM_CUDA_FP8_32X256, 32, 256},
    {FM_CUDA_FP8_128X128, 128, 128}, {FM_CUDA_FP8_128X256, 128, 256},
    {FM_CUDA_FP8_192X128, 192, 128}};

static bool can(const fp8_case &c, const tile_width &t) { return c.w.parts == 1 || t.rows >= 128; }

/* f32 sums, or bf16 of SwiGLU widened. */
static std::vector<float> run(const fp8_case &c, const tile_width &t, int n_sm)
{
    std::vector<int>       blocks = blocks_of(c.pair_expert, t.width);
    const std::vector<int> n_block(1, (int)blocks.size() / 3);
    blocks.resize(blocks.size() + 9, 12345678); /* a bound is all the host knows */
    const bool           order = fm_cuda_fp8_wants_order(t.width), gated = c.w.parts == 2;
    const fp8_rows       rows = order ? in_order(c) : c.x;
    const size_t         n = fm_at(c.n_pair()) * fm_at(c.I), canary = 64;
    fm_device<uint8_t>   x(rows.byte);
    fm_device<float>     x_scale(rows.scale), sums(n + canary);
    fm_device<uint16_t>  gates(n + canary);
    fm_device<int>       block(blocks), count(n_block), pair_row(c.pair_row);
    const fm_matrix_copy w(c.w);
    fm_cuda_fp8_args     a = {};
    a.x                    = x.data();
    a.x_scale              = x_scale.data();
    a.x_row                = order ? NULL : pair_row.data();
    a.w                    = (const uint8_t *)w.weight();
    a.scale                = w.scale();
    a.y                    = gated ? (void *)gates.data() : (void *)sums.data();
    a.ldy                  = c.I;
    a.out                  = gated ? FM_CUDA_FP8_SWIGLU : FM_CUDA_FP8_F32;
    a.block                = block.data();
    a.n_block              = count.data();
    a.max_block            = n_block[0] + 3;
    a.n_expert             = c.w.count;
    a.n_row                = rows.n;
    a.block_rows           = t.width;
    a.n                    = c.w.parts * c.I;
    a.k                    = c.D;
    a.n_sm                 = n_sm;
    FM_CHECK(fm_cuda_fp8_init() == FM_OK);
    FM_CHECK(fm_cuda_fp8_by(&a, t.tile, NULL) == FM_OK);
    std::vector<float>          y = sums.host();
    const std::vector<uint16_t> g = gates.host();
    for (size_t i = 0; i < canary; i++) {
        FM_CHECK(fm_bits_of_f32(y[n + i]) == 0xffffffffu);
        FM_CHECK(g[n + i] == 0xffff);
    }
    for (size_t i = 0; gated && i < n; i++) y[i] = fm_f32_of_bf16(g[i]);
    y.resize(n);
    return y;
}

static void check_sums(const fp8_case &c, const std::vector<float> &y)
{
    for (int p = 0; p < c.n_pair(); p++)
        for (int i = 0; i < c.I; i++) {
            double       size;
            const double want = c.dot(p, 0, i, &size), got = y[fm_at(p) * fm_at(c.I) + fm_at(i)];
            if (!(fabs(got - want) <= step_error * size + 0x1p-120)) {
                fm_check_failed(__FILE__, __LINE__, "y[%d][%d] is %g, expected %g", p, i, got,
                                want);
                return;
            }
        }
}

/* silu grows by at most 1.1 per unit of its argument. */
static void check_gates(const fp8_case &c, const std::vector<float> &y)
{
    for (int p = 0; p < c.n_pair(); p++)
        for (int i = 0; i < c.I; i++) {
            double       gate_size, up_size;
            const double gate = c.dot(p, 0, i, &gate_size), up = c.dot(p, 1, i, &up_size);
            const double silu = gate / (1 + exp(-gate)), want = silu * up;
            const double error =
                step_error * (1.1 * gate_size * (fabs(up) + up_size) + fabs(silu) * up_size);
            const double got = y[fm_at(p) * fm_at(c.I) + fm_at(i)];
            if (!(fabs(got - want) <= error + fabs(want) * (0x1p-8 + 0x1p-20) + 0x1p-133)) {
                fm_check_failed(__FILE__, __LINE__, "gated[%d][%d] is %g, expected %g", p, i, got,
                                want);
                return;
            }
        }
}

static void check_all_tiles(const fp8_case &c, int n_sm)
{
    const std::vector<float> first = run(c, all_tiles[2], n_sm);
    if (c.w.parts == 2)
        check_gates(c, first);
    else
        check_sums(c, first);
    for (const tile_width &t : all_tiles)
        if (can(c, t)) FM_CHECK_EQUAL(run(c, t, n_sm), first);
}

FM_TEST(fp8_of_all_loads_in_every_tile)
{
    fm_numbers r(1);
    check_all_tiles(fp8_case(r, {0, 129, 40, 1, 9, 193, 150, 77}, 1, 144, 272, 40), 1);
}

FM_TEST(fp8_gated_in_every_tile)
{
    fm_numbers r(2);
    check_all_tiles(fp8_case(r, {0, 130, 1, 70, 143, 95}, 2, 144, 160, 40), 2);
}

/* 34 blocks of 128 k: a lane keeps two factors, and rings go round. */
FM_TEST(fp8_along_a_long_ring)
{
    fm_numbers r(3);
    check_all_tiles(fp8_case(r, {5, 9}, 1, 64, 34 * 128 + 16, 10), 1);
}

/* What each pair would be alone with its expert. */
FM_TEST(fp8_gives_a_pair_its_bits_alone_and_in_company)
{
    fm_numbers               r(4);
    const fp8_case           c(r, {2, 31, 0, 77}, 1, 96, 160, 24);
    const std::vector<float> crowd = run(c, all_tiles[10], 2);
    for (int p = 0; p < c.n_pair(); p += 9) {
        fp8_case one    = c;
        one.pair_row    = {c.pair_row[fm_at(p)]};
        one.pair_expert = {c.pair_expert[fm_at(p)]};
        const float *y  = &crowd[fm_at(p) * fm_at(c.I)];
        FM_CHECK_EQUAL(run(one, all_tiles[0], 1), std::vector<float>(y, y + c.I));
    }
}

/* Without blocks: every shape, f32 and bf16, also where blocks of scales begin before w. */
static void check_dense(int n_row, int n, int scale_row0)
{
    fm_numbers           r(5);
    const fm_matrix_case whole(r, 1, 1, scale_row0 + n, 272, true);
    const fp8_rows       rows(fm_hard_rows(r, n_row, 272), n_row, 272);
    const fm_matrix_copy w(whole);
    fm_device<uint8_t>   x(rows.byte);
    fm_device<float>     x_scale(rows.scale);
    fm_cuda_fp8_args     a = {};
    a.x                    = x.data();
    a.x_scale              = x_scale.data();
    a.w                    = (const uint8_t *)w.weight() + (size_t)scale_row0 * 272;
    a.scale                = w.scale();
    a.scale_row0           = scale_row0;
    a.ldy = a.n = n;
    a.k         = 272;
    a.n_row     = n_row;
    a.n_sm      = 2;
    std::vector<float> first;
    for (const tile_width &t : all_tiles) {
        if (t.tile >= FM_CUDA_FP8_128X256 && scale_row0) continue;
        fm_device<float>    y(fm_at(n_row) * fm_at(n));
        fm_device<uint16_t> rounded(fm_at(n_row) * fm_at(n));
        a.y   = y.data();
        a.out = FM_CUDA_FP8_F32;
        FM_CHECK(fm_cuda_fp8_by(&a, t.tile, NULL) == FM_OK);
        a.y   = rounded.data();
        a.out = FM_CUDA_FP8_BF16;
        FM_CHECK(fm_cuda_fp8_by(&a, t.tile, NULL) == FM_OK);
        if (first.empty()) first = y.host();
        FM_CHECK_EQUAL(y.host(), first);
        std::vector<uint16_t> want(first.size());
        for (size_t i = 0; i < want.size(); i++) want[i] = fm_bf16_of_f32(first[i]);
        FM_CHECK_EQUAL(rounded.host(), want);
    }
    for (int i = 0; i < n_row; i += 7)
        for (int j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int k = 0; k < 272; k++) {
                const double p = whole.at(0, 0, scale_row0 + j, k) * rows.at(i, k);
                sum += p, size += fabs(p);
            }
            FM_CHECK(fabs(first[fm_at(i) * fm_at(n) + fm_at(j)] - sum) <=
                     step_error * size + 0x1p-120);
        }
}

FM_TEST(fp8_dense_in_every_tile)
{
    check_dense(70, 204, 0);
    check_dense(9, 100, 48);
}

FM_TEST(fp8_picks_tiles_that_exist)
{
    fm_cuda_fp8_args a = {};
    a.n_sm             = 132;
    for (int m = 1; m < 5000; m = m * 2 + 1)
        for (int n = 64; n < 40000; n *= 3)
            for (int gated = 0; gated < 2; gated++) {
                a.n_row                  = m;
                a.n                      = n;
                a.ldy                    = n;
                a.k                      = 7168;
                a.out                    = gated ? FM_CUDA_FP8_SWIGLU : FM_CUDA_FP8_F32;
                const fm_cuda_fp8_tile t = fm_cuda_fp8_pick(&a);
                FM_CHECK(t < FM_CUDA_N_FP8 && (!gated || t >= FM_CUDA_FP8_8X128));
                a.scale_row0 = 16;
                FM_CHECK(fm_cuda_fp8_pick(&a) < FM_CUDA_FP8_128X256);
                a.scale_row0 = 0;
            }
}
