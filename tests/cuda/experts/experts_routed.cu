/* SPDX-License-Identifier: Apache-2.0 */
/* From a routing to the experts' answer without the host: sorted pairs, both
 * phases, the sum over slots.  A row has the same bits whatever is in its
 * batch, and the shared expert can be one more expert that every row goes to. */
#include "linear/linear_matrix.h"
#include "llm/kernel/cuda/experts/experts.h"
#include "llm/kernel/cuda/route/route.h"
#include "llm/kernel/cuda/rows/rows.h"

enum { E = 7, TOP_K = 3, D = 136, I = 32 };

struct routed_case {
    fm_matrix_case        gate_up, down;
    std::vector<uint16_t> h;
    std::vector<int>      expert;
    std::vector<float>    weight;

    /* Slot 0 is always expert E-1, as a shared expert's is; the others differ. */
    routed_case(fm_numbers &r, int T, bool e4m3)
        : gate_up(r, E, 2, I, D - D % (e4m3 ? 16 : 8), e4m3), down(r, E, 1, gate_up.k, I, e4m3),
          h(fm_hard_rows(r, T, gate_up.k)), weight(r.floats(fm_at(T) * TOP_K, 0, 1))
    {
        for (int t = 0; t < T; t++) {
            const int first = r.below(E - 1);
            for (int e : {E - 1, first, (first + 1 + r.below(E - 2)) % (E - 1)})
                expert.push_back(e);
        }
    }
    int width() const { return gate_up.k; }
};

/* Rows first..first+T of the case, padded as a graph's batch is. */
static std::vector<float> run(const routed_case &c, int first, int T, int padding)
{
    const int             n_row = T + padding, n_pair = n_row * TOP_K, k = c.width();
    const int             block_rows = fm_cuda_experts_block_rows(n_pair, E, c.gate_up.e4m3);
    const fm_matrix_copy  gate_up(c.gate_up), down(c.down);
    std::vector<uint16_t> rows(c.h.begin() + first * k, c.h.begin() + (first + T) * k);
    std::vector<int>      experts(c.expert.begin() + first * TOP_K,
                                  c.expert.begin() + (first + T) * TOP_K);
    std::vector<float>    weights(c.weight.begin() + first * TOP_K,
                                  c.weight.begin() + (first + T) * TOP_K);
    rows.resize(fm_at(n_row) * fm_at(k));
    experts.resize(fm_at(n_pair), -1);
    weights.resize(fm_at(n_pair));

    const int           max_block = n_pair / block_rows + E;
    fm_device<uint16_t> h(rows), middle(fm_at(n_pair) * I), pair_out(fm_at(n_pair) * fm_at(k));
    fm_device<int>      expert(experts), count(E), offset(E + 1), pair_row(fm_at(n_pair)),
        pair_of(fm_at(n_pair)), block(fm_at(max_block) * 3), n_block(1);
    fm_device<float> weight(weights), y(fm_at(n_row) * fm_at(k));

    fm_cuda_pairs_args p = {};
    p.expert             = expert.data();
    p.count              = count.data();
    p.offset             = offset.data();
    p.pair_row           = pair_row.data();
    p.pair_of            = pair_of.data();
    p.block              = block.data();
    p.n_block            = n_block.data();
    p.n_row              = n_row;
    p.top_k              = TOP_K;
    p.n_expert           = E;
    p.block_rows         = block_rows;

    fm_cuda_experts_args a = {};
    a.gate_up              = {gate_up.weight(), gate_up.scale(), 0};
    a.down                 = {down.weight(), down.scale(), 0};
    a.h                    = h.data();
    a.middle               = middle.data();
    a.pair_out             = pair_out.data();
    a.pair_row             = pair_row.data();
    a.block                = block.data();
    a.n_block              = n_block.data();
    a.max_block            = max_block;
    a.n_expert             = E;
    a.n_pair               = n_pair;
    a.block_rows           = block_rows;
    a.D                    = k;
    a.I                    = I;
    a.n_sm                 = 2;

    fm_cuda_combine_args s = {};
    s.y                    = y.data();
    s.pair_out             = pair_out.data();
    s.pair_of              = pair_of.data();
    s.weight               = weight.data();
    s.n_row                = n_row;
    s.top_k                = TOP_K;
    s.width                = k;
    FM_CHECK(fm_cuda_experts_init() == FM_OK);
    FM_CHECK(fm_cuda_pairs(&p, NULL) == FM_OK);
    FM_CHECK(fm_cuda_experts_up(&a, NULL) == FM_OK);
    FM_CHECK(fm_cuda_experts_down(&a, NULL) == FM_OK);
    FM_CHECK(fm_cuda_combine(&s, NULL) == FM_OK);
    std::vector<float> got = y.host();
    for (size_t i = fm_at(T) * fm_at(k); i < got.size(); i++) FM_CHECK(got[i] == 0);
    got.resize(fm_at(T) * fm_at(k));
    return got;
}

/* One channel of an expert's middle in double, and how far the kernel's may be
 * from it: its two sums, and rounding to bf16. */
static double middle_of(const routed_case &c, int e, int i, const uint16_t *x, double *error)
{
    double       gate_size, up_size;
    const double gate = c.gate_up.dot(e, 0, i, x, &gate_size),
                 up   = c.gate_up.dot(e, 1, i, x, &up_size);
    const double silu = gate / (1 + exp(-gate));
    *error =
        fm_sum_error(c.width()) * (1.1 * gate_size * (fabs(up) + up_size) + fabs(silu) * up_size) +
        0x1p-8 * fabs(silu * up);
    return silu * up;
}

/* y of one row in double, and how far the kernels' may be from it: an expert's output is rounded
 * to bf16. */
static void exact(const routed_case &c, int t, std::vector<double> &y, std::vector<double> &error)
{
    y.assign(fm_at(c.width()), 0);
    error.assign(fm_at(c.width()), 0x1p-120);
    for (int slot = 0; slot < TOP_K; slot++)
        for (int i = 0; i < I; i++) {
            const int    e = c.expert[fm_at(t * TOP_K + slot)];
            const double w = c.weight[fm_at(t * TOP_K + slot)];
            double       of_middle;
            const double middle = middle_of(c, e, i, &c.h[fm_at(t) * fm_at(c.width())], &of_middle);
            for (int d = 0; d < c.width(); d++) {
                const double down = w * c.down.at(e, 0, d, i);
                y[fm_at(d)] += middle * down;
                error[fm_at(d)] +=
                    fabs(down) * (of_middle + (0x1p-8 + fm_sum_error(I + TOP_K)) * (fabs(middle) + of_middle));
            }
        }
}

static void check_values(const routed_case &c, const std::vector<float> &got, int T)
{
    std::vector<double> y, error;
    for (int t = 0; t < T; t++) {
        exact(c, t, y, error);
        for (int d = 0; d < c.width(); d++) {
            const double g = got[fm_at(t) * fm_at(c.width()) + fm_at(d)];
            if (!(fabs(g - y[fm_at(d)]) <= error[fm_at(d)])) {
                fm_check_failed(__FILE__, __LINE__, "y[%d][%d] is %g, expected %g", t, d, g,
                                y[fm_at(d)]);
                return;
            }
        }
    }
}

static void check_batches(bool e4m3)
{
    const int                T = 70;
    fm_numbers               r(e4m3 ? 2 : 1);
    const routed_case        c(r, T, e4m3);
    const std::vector<float> all = run(c, 0, T, 0);
    check_values(c, all, T);
    for (int n : {1, 2, 9, 33})
        for (int first : {0, 17, T - n}) {
            const size_t at  = fm_at(first) * fm_at(c.width()),
                         end = at + fm_at(n) * fm_at(c.width());
            FM_CHECK_EQUAL(
                run(c, first, n, first % 3),
                std::vector<float>(all.begin() + (ptrdiff_t)at, all.begin() + (ptrdiff_t)end));
        }
}

FM_TEST(routed_rows_do_not_depend_on_their_batch) { check_batches(false); }

FM_TEST(routed_rows_do_not_depend_on_their_batch_in_e4m3) { check_batches(true); }
