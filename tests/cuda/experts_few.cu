/* SPDX-License-Identifier: Apache-2.0 */
/* Experts for very few rows, against plain loops in double precision. */
#include "llm/kernel/cuda/experts.h"

#include "linear_matrix.h"

struct few_case {
    int                   T, top_k, D, I, I_shared;
    fm_matrix_case        gate_up, down, shared_gate_up, shared_down;
    std::vector<uint16_t> h;
    std::vector<int>      expert;
    std::vector<float>    weight;

    few_case(fm_numbers &r, int T_, int top_k_, int D_, int I_, int I_shared_, int E, bool e4m3)
        : T(T_), top_k(top_k_), D(D_), I(I_), I_shared(I_shared_), gate_up(r, E, 2, I_, D_, e4m3),
          down(r, E, 1, D_, I_, e4m3), shared_gate_up(r, 1, 2, I_shared_, D_, e4m3),
          shared_down(r, 1, 1, D_, I_shared_, e4m3), h(fm_hard_rows(r, T_, D_)),
          weight(r.floats(fm_at(T_) * fm_at(top_k_), 0, 1))
    {
        for (int i = 0; i < T * top_k; i++) expert.push_back(r.below(E));
    }
    int width() const { return top_k * I + I_shared; }
};

struct few_result {
    std::vector<uint16_t> middle;
    std::vector<float>    y;
};

static few_result run(const few_case &c)
{
    const fm_matrix_copy gate_up(c.gate_up), down(c.down), shared_gate_up(c.shared_gate_up),
        shared_down(c.shared_down);
    fm_device<uint16_t>      h(c.h), middle(fm_at(c.T) * fm_at(c.width()));
    fm_device<int>           expert(c.expert);
    fm_device<float>         weight(c.weight), y(fm_at(c.T) * fm_at(c.D));
    fm_cuda_experts_few_args a = {};
    a.gate_up                  = {gate_up.weight(), gate_up.scale(), 0};
    a.down                     = {down.weight(), down.scale(), 0};
    a.shared_gate_up           = {shared_gate_up.weight(), shared_gate_up.scale(), 0};
    a.shared_down              = {shared_down.weight(), shared_down.scale(), 0};
    a.h                        = h.data();
    a.expert                   = expert.data();
    a.weight                   = weight.data();
    a.middle                   = middle.data();
    a.y                        = y.data();
    a.T                        = c.T;
    a.top_k                    = c.top_k;
    a.D                        = c.D;
    a.I                        = c.I;
    a.I_shared                 = c.I_shared;
    FM_CHECK(fm_cuda_experts_few_up(&a, NULL) == FM_OK);
    FM_CHECK(fm_cuda_experts_few_down(&a, NULL) == FM_OK);
    return {middle.host(), y.host()};
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void check_channel(const few_case &c, const few_result &got, int t, int at)
{
    const bool            shared = at >= c.top_k * c.I;
    const int             slot = shared ? 0 : at / c.I, ch = shared ? at - c.top_k * c.I : at % c.I;
    const int             e = shared ? 0 : c.expert[fm_at(t * c.top_k + slot)];
    const fm_matrix_case &m = shared ? c.shared_gate_up : c.gate_up;
    const uint16_t       *x = &c.h[fm_at(t) * fm_at(c.D)];
    const double          g = fm_f32_of_bf16(got.middle[fm_at(t) * fm_at(c.width()) + fm_at(at)]);
    if (e < 0) {
        FM_CHECK(g == 0);
        return;
    }
    double       gate_size, up_size;
    const double gate = m.dot(e, 0, ch, x, &gate_size), up = m.dot(e, 1, ch, x, &up_size);
    const double want = silu(gate) * up;
    const double error =
        fm_sum_error(c.D) * (1.1 * gate_size * (fabs(up) + up_size) + fabs(silu(gate)) * up_size);
    if (!(fabs(g - want) <= error + fabs(want) * (0x1p-8 + 0x1p-20) + 0x1p-133))
        fm_check_failed(__FILE__, __LINE__, "middle[%d][%d] is %g, expected %g", t, at, g, want);
}

static void check_output(const few_case &c, const few_result &got, int t, int d)
{
    double want = 0, bound = 0, size;
    for (int slot = 0; slot <= c.top_k; slot++) {
        const bool      shared = slot == c.top_k;
        const int       e      = shared ? 0 : c.expert[fm_at(t * c.top_k + slot)];
        const double    w      = shared ? 1 : c.weight[fm_at(t * c.top_k + slot)];
        const uint16_t *x =
            got.middle.data() + fm_at(t) * fm_at(c.width()) + fm_at(slot) * fm_at(c.I);
        if (e < 0) continue;
        want += w * (shared ? c.shared_down : c.down).dot(e, 0, d, x, &size);
        bound += w * size;
    }
    const double g = got.y[fm_at(t) * fm_at(c.D) + fm_at(d)];
    if (!(fabs(g - want) <= fm_sum_error(c.width()) * bound + 0x1p-120))
        fm_check_failed(__FILE__, __LINE__, "y[%d][%d] is %g, expected %g", t, d, g, want);
}

static void check_case(const few_case &c)
{
    const few_result got = run(c);
    for (int t = 0; t < c.T; t++) {
        for (int i = 0; i < c.width(); i++) check_channel(c, got, t, i);
        for (int d = 0; d < c.D; d++) check_output(c, got, t, d);
    }
}

FM_TEST(few_rows_with_a_shared_expert)
{
    fm_numbers r(1);
    check_case(few_case(r, 4, 3, 584, 48, 96, 5, false)); /* 584: no multiple of a warp's 256 */
    check_case(few_case(r, 2, 3, 784, 144, 160, 3, true));
}

FM_TEST(few_rows_without_a_shared_expert)
{
    fm_numbers r(2);
    check_case(few_case(r, 1, 6, 72, 32, 0, 8, false));
    check_case(few_case(r, 1, 2, 80, 16, 0, 8, true));
}

FM_TEST(few_rows_past_a_lane_s_first_load)
{
    fm_numbers r(3); /* more than 8 chunks of a lane along k of the second phase */
    check_case(few_case(r, 1, 1, 16, 2320, 0, 2, false));
}

FM_TEST(few_rows_skip_slots_without_an_expert)
{
    fm_numbers r(4);
    few_case   c(r, 3, 4, 136, 32, 32, 4, false);
    c.expert[1] = c.expert[4] = c.expert[11] = -1;
    check_case(c);
}

FM_TEST(few_rows_keep_their_bits_in_company)
{
    fm_numbers       r(5);
    const few_case   c(r, 4, 2, 264, 32, 16, 4, false);
    const few_result crowd = run(c);
    for (int t = 0; t < c.T; t++) {
        few_case one = c;
        one.T        = 1;
        one.h.assign(&c.h[fm_at(t * c.D)], &c.h[fm_at(t * c.D)] + c.D);
        one.expert.assign(&c.expert[fm_at(t * c.top_k)], &c.expert[fm_at(t * c.top_k)] + c.top_k);
        one.weight.assign(&c.weight[fm_at(t * c.top_k)], &c.weight[fm_at(t * c.top_k)] + c.top_k);
        const float *y = &crowd.y[fm_at(t * c.D)];
        FM_CHECK_EQUAL(run(one).y, std::vector<float>(y, y + c.D));
    }
}
