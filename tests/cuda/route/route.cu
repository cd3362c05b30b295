/* SPDX-License-Identifier: Apache-2.0 */
/* Routing against the CPU's bits, and the sorted pairs against a plain sort. */
#include <math.h>

#include <algorithm>

#include "check.h"
#include "definition.h"
#include "llm/kernel/cuda/route/route.h"

typedef std::vector<float>   floats;
typedef std::vector<int32_t> ints;

static fm_model_config model(fm_route_method method, fm_score_func func, int n_expert, int top_k,
                             int n_group, int top_group)
{
    fm_model_config c = {};
    c.route = method, c.score = func;
    c.n_expert = n_expert, c.top_k = top_k, c.n_group = n_group, c.top_group = top_group;
    c.norm_top_k   = func == FM_SCORE_SIGMOID,
    c.routed_scale = func == FM_SCORE_SIGMOID ? 2.5f : 1.0f;
    return c;
}

static fm_cuda_route_args args_of(const fm_model_config &c, int n_row)
{
    fm_cuda_route_args a = {};
    a.n_row = n_row, a.n_expert = c.n_expert, a.top_k = c.top_k, a.n_group = c.n_group,
    a.top_group  = c.top_group;
    a.norm_top_k = c.norm_top_k, a.routed_scale = c.routed_scale, a.method = c.route,
    a.func = c.score;
    return a;
}

static void check_route(const fm_model_config &c, const floats &score, const floats &bias)
{
    const int          n = (int)score.size() / c.n_expert, k = c.top_k;
    fm_device<float>   d_score(score), d_bias(bias), weight((size_t)(n * k));
    fm_device<int32_t> expert((size_t)(n * k));
    fm_cuda_route_args a = args_of(c, n);
    a.expert = expert.data(), a.weight = weight.data(), a.score = d_score.data();
    a.bias = bias.empty() ? NULL : d_bias.data();
    FM_CHECK(fm_cuda_route(&a, NULL) == FM_OK);
    floats left(score), want_weight((size_t)(n * k));
    ints   want_expert((size_t)(n * k));
    for (int i = 0; i < n; i++)
        right_route(&c, &left[(size_t)(i * c.n_expert)], bias.empty() ? NULL : bias.data(),
                    &want_expert[(size_t)(i * k)], &want_weight[(size_t)(i * k)]);
    FM_CHECK_EQUAL(expert.host(), want_expert);
    FM_CHECK_EQUAL(weight.host(), want_weight);
}

static void check_model(const fm_model_config &c, bool biased)
{
    fm_numbers   r((uint64_t)c.n_expert);
    const floats bias = biased ? r.floats((size_t)c.n_expert, -0.2f, 0.2f) : floats();
    check_route(c, r.floats((size_t)(11 * c.n_expert), -6, 6), bias);
    check_route(c, r.floats((size_t)c.n_expert, -80, 80), bias); /* saturates */
    floats tied((size_t)(3 * c.n_expert));
    for (float &x : tied) x = (float)r.below(3); /* ties everywhere */
    check_route(c, tied, biased ? floats((size_t)c.n_expert, 0.25f) : floats());
    check_route(c, floats((size_t)c.n_expert, 1.5f), floats());
}

FM_TEST(greedy_softmax)
{
    check_model(model(FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX, 64, 6, 1, 1), false);
    check_model(model(FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX, 5, 5, 1, 1), false);
    check_model(model(FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX, 1, 1, 1, 1), false);
    check_model(model(FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX, 67, 33, 1, 1), false);
}

FM_TEST(groups_by_their_largest)
{
    check_model(model(FM_ROUTE_GROUP_LIMITED, FM_SCORE_SOFTMAX, 160, 6, 8, 3), false);
    check_model(model(FM_ROUTE_GROUP_LIMITED, FM_SCORE_SOFTMAX, 12, 2, 3, 1), false);
}

FM_TEST(groups_by_their_two_largest_with_bias)
{
    check_model(model(FM_ROUTE_NOAUX_TC, FM_SCORE_SIGMOID, 256, 8, 8, 4), true);
    check_model(model(FM_ROUTE_NOAUX_TC, FM_SCORE_SIGMOID, 384, 8, 1, 1), true);
    check_model(model(FM_ROUTE_NOAUX_TC, FM_SCORE_SIGMOID, 512, 64, 32, 8), true);
    check_model(model(FM_ROUTE_NOAUX_TC, FM_SCORE_SIGMOID, 8, 4, 8, 8), true);
}

/* Fewer experts in the kept groups than are asked for: the lowest repeats. */
FM_TEST(more_wanted_than_allowed)
{
    check_model(model(FM_ROUTE_NOAUX_TC, FM_SCORE_SIGMOID, 16, 6, 8, 2), true);
}

FM_TEST(rows_beyond_the_live_ones_have_no_expert)
{
    fm_numbers            r(2);
    const fm_model_config c = model(FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX, 64, 6, 1, 1);
    const int             n = 9, live = 5;
    fm_device<float>      score(r.floats((size_t)(n * 64), -3, 3)), all((size_t)(n * 6)),
        some((size_t)(n * 6));
    fm_device<int32_t> e_all((size_t)(n * 6)), e_some((size_t)(n * 6)), n_live(ints{live});
    fm_cuda_route_args a = args_of(c, n);
    a.score = score.data(), a.expert = e_all.data(), a.weight = all.data();
    FM_CHECK(fm_cuda_route(&a, NULL) == FM_OK);
    a.expert = e_some.data(), a.weight = some.data(), a.n_live = n_live.data();
    FM_CHECK(fm_cuda_route(&a, NULL) == FM_OK);
    ints   want_e = e_all.host();
    floats want_w = all.host();
    for (size_t i = live * 6; i < want_e.size(); i++) want_e[i] = -1, want_w[i] = 0;
    FM_CHECK_EQUAL(e_some.host(), want_e);
    FM_CHECK_EQUAL(some.host(), want_w);
}

FM_TEST(too_many_experts_are_refused)
{
    fm_cuda_route_args a = args_of(model(FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX, 513, 6, 1, 1), 1);
    fm_cuda_pairs_args b = {};
    b.n_expert = 513, b.top_k = 1, b.block_rows = 8;
    FM_CHECK(fm_cuda_route(&a, NULL) == FM_E_NOSUP);
    FM_CHECK(fm_cuda_pairs(&b, NULL) == FM_E_NOSUP);
}

/* --- pairs ------------------------------------------------------------------ */

namespace
{
struct sorted {
    ints count, offset, pair_row, pair_of, block;
};
} // namespace

/* An expert's blocks, as even as whole boxes allow. */
static std::vector<ints> cut(int e, int first, int n, int block_rows, int box)
{
    std::vector<ints> blocks;
    const int         n_box = (n + box - 1) / box, n_block = (n + block_rows - 1) / block_rows;
    for (int i = 0, at = 0; i < n_block; i++) {
        const int end = std::min(n_box * (i + 1) / n_block * box, n);
        blocks.push_back({e, first + at, end - at});
        at = end;
    }
    return blocks;
}

static sorted sort_plainly(const ints &expert, int top_k, int n_expert, int block_rows, int box)
{
    std::vector<std::pair<double, std::vector<ints>>> blocks; /* of each expert; their size */
    sorted s;
    s.pair_of.assign(expert.size(), -1);
    for (int e = 0; e < n_expert; e++) {
        const int first = (int)s.pair_row.size();
        s.offset.push_back(first);
        for (size_t i = 0; i < expert.size(); i++)
            if (expert[i] == e) {
                s.pair_of[i] = (int)s.pair_row.size();
                s.pair_row.push_back((int)i / top_k);
            }
        const int n = (int)s.pair_row.size() - first;
        s.count.push_back(n);
        blocks.push_back({0, cut(e, first, n, block_rows, box ? box : block_rows)});
        if (box && n)
            blocks.back().first = ((n + box - 1) / box) / (double)blocks.back().second.size();
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const auto &a, const auto &b) { return a.first > b.first; });
    for (const auto &of_expert : blocks)
        for (const ints &b : of_expert.second) s.block.insert(s.block.end(), b.begin(), b.end());
    s.offset.push_back((int)s.pair_row.size());
    return s;
}

static void check_pairs(const ints &expert, int top_k, int n_expert, int block_rows,
                        bool chunks = true, int box = 0)
{
    const sorted want = sort_plainly(expert, top_k, n_expert, block_rows, box);
    const size_t n = expert.size(), max_block = n / (size_t)block_rows + (size_t)n_expert;
    fm_device<int32_t> d_expert(expert), count((size_t)n_expert), offset((size_t)n_expert + 1),
        pair_row(n), pair_of(n), block(max_block * 3), n_block(1),
        scratch((n / 1024 + 1) * (size_t)n_expert);
    const fm_cuda_pairs_args a = {d_expert.data(),
                                  count.data(),
                                  offset.data(),
                                  pair_row.data(),
                                  pair_of.data(),
                                  block.data(),
                                  n_block.data(),
                                  chunks ? scratch.data() : NULL,
                                  (int)n / top_k,
                                  top_k,
                                  n_expert,
                                  block_rows,
                                  box};
    FM_CHECK(fm_cuda_pairs(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(count.host(), want.count);
    FM_CHECK_EQUAL(offset.host(), want.offset);
    FM_CHECK_EQUAL(pair_of.host(), want.pair_of);
    ints rows = pair_row.host(), blocks = block.host();
    FM_CHECK(n_block.host()[0] == (int)want.block.size() / 3);
    rows.resize(want.pair_row.size());
    blocks.resize(want.block.size());
    FM_CHECK_EQUAL(rows, want.pair_row);
    FM_CHECK_EQUAL(blocks, want.block);
}

static ints random_experts(int n, int n_expert, bool gaps)
{
    fm_numbers r((uint64_t)(n + n_expert));
    ints       v((size_t)n);
    for (int32_t &e : v) e = gaps && r.below(4) == 0 ? -1 : r.below(n_expert);
    return v;
}

FM_TEST(pairs_are_sorted_by_expert_and_stable)
{
    check_pairs(random_experts(6, 64, false), 6, 64, 8);
    check_pairs(random_experts(8 * 129, 256, true), 8, 256, 16);
    check_pairs(random_experts(6 * 777, 64, false), 6, 64, 64);
    check_pairs(random_experts(8 * 300, 512, true), 8, 512, 128);
    check_pairs(random_experts(1, 1, false), 1, 1, 8);
}

FM_TEST(many_pairs_are_sorted_in_chunks_or_in_one)
{
    for (bool chunks : {true, false}) {
        check_pairs(random_experts(6 * 1000, 64, false), 6, 64, 64, chunks);
        check_pairs(random_experts(8 * 700, 512, true), 8, 512, 16, chunks);
        check_pairs(random_experts(8 * 600, 32, true), 8, 32, 16, chunks);
        check_pairs(ints(5000, 3), 1, 7, 64, chunks);
    }
    check_pairs(random_experts(4097, 5, false), 1, 5, 8); /* the last chunk is nearly empty */
}

FM_TEST(even_blocks_the_largest_first)
{
    for (bool chunks : {true, false}) {
        check_pairs(random_experts(6 * 1000, 20, false), 6, 20, 256, chunks, 64);
        check_pairs(random_experts(8 * 700, 512, true), 8, 512, 16, chunks, 8);
    }
    check_pairs(random_experts(6 * 100, 64, true), 6, 64, 256, true, 64);
    check_pairs(ints(1000, 3), 1, 7, 64, true, 16);
    check_pairs(ints(100, 0), 1, 1, 32, true, 8); /* 13 boxes, 4 blocks */
    check_pairs(ints(64, -1), 2, 64, 256, true, 64);
}

FM_TEST(pairs_of_other_ranks_are_left_out)
{
    check_pairs(random_experts(8 * 129, 32, true), 8, 32, 16);
}

FM_TEST(all_to_one_and_none_at_all)
{
    check_pairs(ints(1000, 3), 1, 7, 64);
    check_pairs(ints(64, -1), 2, 64, 8);
    check_pairs(ints(), 6, 64, 8);
    check_pairs(ints{6, 5, 4, 3, 2, 1, 0, 7}, 1, 8, 8); /* one each, backwards */
    check_pairs(ints(128, 0), 2, 64, 64);               /* exactly full blocks */
}

/* One launch for both gives what two give. */
static void check_few(const fm_model_config &c, int n_row, int live, int block_rows)
{
    fm_numbers         r((uint64_t)(n_row * c.n_expert));
    const size_t       n = (size_t)(n_row * c.top_k), E = (size_t)c.n_expert;
    fm_device<float>   score(r.floats((size_t)n_row * E, -6, 6)), bias(r.floats(E, -0.2f, 0.2f));
    fm_device<int32_t> n_live(ints(1, live));
    std::vector<ints>  found[2];
    floats             weights[2];
    for (int both = 0; both < 2; both++) {
        fm_device<float>   weight(n);
        fm_device<int32_t> expert(n), count(E), offset(E + 1), pair_row(n, 0), pair_of(n),
            block((n / (size_t)block_rows + E) * 3, 0), n_block(1);
        fm_cuda_route_args a = args_of(c, n_row);
        a.expert = expert.data(), a.weight = weight.data(), a.score = score.data();
        a.bias = bias.data(), a.n_live = n_live.data();
        const fm_cuda_pairs_args p = {expert.data(),
                                      count.data(),
                                      offset.data(),
                                      pair_row.data(),
                                      pair_of.data(),
                                      block.data(),
                                      n_block.data(),
                                      NULL,
                                      n_row,
                                      c.top_k,
                                      c.n_expert,
                                      block_rows,
                                      0};
        if (both) {
            FM_CHECK(fm_cuda_route_and_sort(&a, &p, NULL) == FM_OK);
        } else {
            FM_CHECK(fm_cuda_route(&a, NULL) == FM_OK);
            FM_CHECK(fm_cuda_pairs(&p, NULL) == FM_OK);
        }
        found[both]   = {expert.host(),  count.host(), offset.host(), pair_row.host(),
                         pair_of.host(), block.host(), n_block.host()};
        weights[both] = weight.host();
    }
    for (size_t i = 0; i < found[0].size(); i++) FM_CHECK_EQUAL(found[1][i], found[0][i]);
    FM_CHECK_EQUAL(weights[1], weights[0]);
}

FM_TEST(few_rows_are_routed_and_sorted_at_once)
{
    fm_model_config v3 = model(FM_ROUTE_NOAUX_TC, FM_SCORE_SIGMOID, 256, 8, 8, 4);
    for (int n_row = 1; n_row <= FM_CUDA_ROUTE_FEW; n_row++) check_few(v3, n_row, n_row, 8);
    check_few(v3, 4, 2, 8);
    check_few(model(FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX, 64, 6, 1, 1), 8, 7, 8);
}
