/* SPDX-License-Identifier: Apache-2.0 */
/* The experts' outputs sent to the rows' owners: all ranks of a stage here, one after the
 * other, and messages carried by hand. */
#include "llm/kernel/cuda/exchange/combine.h"

#include "base/number.h"
#include "check.h"
#include "exchange/columns_definition.h"
#include "llm/kernel/cuda/route/route.h"

typedef std::vector<float>   floats;
typedef std::vector<int32_t> ints;

struct span {
    int begin, end;
    int len() const
    {
        return end - begin;
    }
};

static span part(int i, int n_part, int n, int unit)
{
    span s;
    right_part(i, n_part, n, unit, &s.begin, &s.end);
    return s;
}

static span both(span a, span b)
{
    span s = {std::max(a.begin, b.begin), std::min(a.end, b.end)};
    if (s.end < s.begin) s.end = s.begin;
    return s;
}

/* Which experts each set has. */
typedef std::vector<ints> sets_of_experts;

static sets_of_experts even(int n_set, int n_expert)
{
    sets_of_experts s((size_t)n_set);
    for (int q = 0; q < n_set; q++)
        for (int e = part(q, n_set, n_expert, 1).begin; e < part(q, n_set, n_expert, 1).end; e++)
            s[(size_t)q].push_back(e);
    return s;
}

static fm_placement *placement_of(const sets_of_experts &sets, int n_expert)
{
    fm_placement *p = NULL;
    ints          n, all;
    for (const ints &set : sets) {
        n.push_back((int)set.size());
        all.insert(all.end(), set.begin(), set.end());
    }
    FM_CHECK(fm_placement_create(&p, n_expert, (int)sets.size(), n.data(), all.data()) == FM_OK);
    return p;
}

/* Rows of several groups in passes, with what every expert computes. */
struct stage {
    int    D = 160, E = 6, K = 3, n_group, n_set, n_attn, n_channel;
    int    row0 = 0, n_row = 0; /* the pass */
    ints   first;               /* [n_group+1] */
    ints   expert;
    floats weight, output; /* output [row, slot, D], exact in bf16 */
    const fm_placement *where;

    stage(int groups, int attn, const fm_placement *placement, const ints &rows)
        : n_group(groups), n_set(placement->n_set), n_attn(attn),
          n_channel(groups * attn / placement->n_set), where(placement)
    {
        fm_numbers r(9);
        first.push_back(0);
        for (int n : rows) first.push_back(first.back() + n);
        n_row  = first.back();
        for (size_t i = 0; i < (size_t)(n_row * K * D); i++)
            output.push_back(fm_f32_of_bf16(fm_bf16_of_f32(r.between(-1, 1))));
        weight = r.floats((size_t)(n_row * K), 0, 1);
        for (int i = 0; i < n_row; i++)
            for (int k = 0; k < K; k++) /* a row that is not there, and different experts */
                expert.push_back(i == 4 ? -1 : (int)(r.u32() % 2) + 2 * ((i + k) % 3));
    }
    int ranks() const
    {
        return n_group * n_attn;
    }
    int items_most() const
    {
        return std::min(K, where->most_slots);
    }
    /* Slot of pair i of the pass in a set, or -1. */
    int slot_in(int set, int i) const
    {
        const int e = expert[(size_t)(row0 * K + i)];
        if (e < 0) return -1;
        const fm_expert_copy c = fm_placement_copy(where, e, row0 + i / K);
        return c.set == set ? c.slot : -1;
    }
};

/* What one rank has on its device. */
struct rank_of {
    fm_cuda_combine_shape     t = {};
    fm_device<int32_t> d_first, d_expert, key, own, count, key_first, row, place, block, n_block;
    fm_device<int32_t> copy0, copy; /* the placement's */
    ints               counts; /* [group][set] */

    rank_of(const stage &s, int me, int most, bool rows)
        : d_first(s.first), d_expert(pass_of(s)), key(slots(s)), own(slots(s)),
          count((size_t)(s.n_group * s.n_set)), key_first((size_t)(s.n_group * s.n_set + 1)),
          row(slots(s)), place(slots(s)), block((slots(s) + 64) * 3), n_block(1),
          copy0(ints(s.where->copy0, s.where->copy0 + s.E + 1)),
          copy(ints((int32_t *)s.where->copy, (int32_t *)(s.where->copy + s.where->copy0[s.E])))
    {
        t.group_row0 = d_first.data(), t.expert = d_expert.data();
        t.row0 = s.row0, t.n_row = s.n_row, t.top_k = s.K, t.D = s.D;
        t.where = {copy0.data(), (const fm_expert_copy *)copy.data()};
        t.n_group = s.n_group, t.n_set = s.n_set, t.n_channel = s.n_channel, t.n_attn = s.n_attn;
        t.group = me / s.n_attn, t.attn = me % s.n_attn;
        t.set = me / s.n_channel, t.channel = me % s.n_channel;
        t.most_items = most, t.as_rows = rows;
        t.key = key.data(), t.key_first = key_first.data(), t.key_place = place.data();
        FM_CHECK(fm_cuda_combine_keys(&t, key.data(), own.data(), NULL) == FM_OK);
        ints slot;
        for (int i = 0; i < s.n_row * s.K; i++) slot.push_back(s.slot_in(t.set, i));
        FM_CHECK_EQUAL(own.host(), slot);
        fm_cuda_pairs_args a = {};
        a.expert = key.data(), a.count = count.data(), a.offset = key_first.data();
        a.pair_row = row.data(), a.pair_of = place.data(), a.block = block.data();
        a.n_block = n_block.data(), a.n_row = s.n_row, a.top_k = s.K;
        a.n_expert = s.n_group * s.n_set, a.block_rows = s.n_row * s.K;
        FM_CHECK(fm_cuda_pairs(&a, NULL) == FM_OK);
        counts = count.host();
    }
    static size_t slots(const stage &s)
    {
        return (size_t)(s.n_row * s.K);
    }
    static ints pass_of(const stage &s)
    {
        return ints(s.expert.begin() + s.row0 * s.K, s.expert.begin() + (s.row0 + s.n_row) * s.K);
    }
    span rows_of(int group, const stage &s) const
    {
        const span all = {s.first[(size_t)group] - s.row0, s.first[(size_t)group + 1] - s.row0};
        return both(all, {0, s.n_row});
    }
    int items(int group, int set, const stage &s) const
    {
        const int rows = rows_of(group, s).len();
        return t.as_rows      ? rows
               : t.most_items ? rows * t.most_items
                              : counts[(size_t)(group * s.n_set + set)];
    }
};

/* The own columns of the own experts' outputs, pairs in an arbitrary order. */
static floats send(const stage &s, const rank_of &r)
{
    const span mine = part(r.t.channel, s.n_channel, s.D, 32);
    std::vector<uint16_t> out;
    ints                  pair_of;
    const floats weight(s.weight.begin() + s.row0 * s.K, s.weight.end());
    int          n_pair = 0;
    for (int i = s.n_row * s.K - 1; i >= 0; i--) {
        const size_t at = (size_t)(s.row0 * s.K + i);
        const int    is_own = s.slot_in(r.t.set, i) >= 0;
        pair_of.insert(pair_of.begin(), is_own ? n_pair++ : -1);
        for (int c = mine.begin; is_own && c < mine.end; c++)
            out.push_back(fm_bf16_of_f32(s.output[at * (size_t)s.D + (size_t)c]));
    }
    size_t n = 4;
    for (int g = 0; g < s.n_group; g++) n += (size_t)(r.items(g, r.t.set, s) * mine.len());
    fm_device<uint16_t>            pair_out(out);
    fm_device<float>               d_weight(weight), sent(n);
    fm_device<int32_t>             d_pair(pair_of);
    const fm_cuda_combine_pack_args a = {r.t, pair_out.data(), d_pair.data(), d_weight.data(),
                                        sent.data()};
    FM_CHECK(fm_cuda_combine_pack(&a, NULL) == FM_OK);
    return sent.host();
}

/* What rank `to` gets from rank `from`. */
static floats message(const stage &s, const floats &sent, const rank_of &from, const rank_of &to)
{
    const span mine = part(from.t.channel, s.n_channel, s.D, 32);
    size_t     at   = 0;
    for (int i = 0; i < s.ranks(); i++) {
        const span   theirs = part(i % s.n_attn, s.n_attn, s.D, 32);
        const size_t n =
            (size_t)from.items(i / s.n_attn, from.t.set, s) * (size_t)both(mine, theirs).len();
        if (i == to.t.group * s.n_attn + to.t.attn)
            return floats(sent.begin() + (ptrdiff_t)at, sent.begin() + (ptrdiff_t)(at + n));
        at += n;
    }
    return {};
}

static float weighed(const stage &s, int row, int k, int col)
{
    const size_t at = (size_t)(row * s.K + k);
    return s.expert[at] < 0 ? 0 : s.weight[at] * s.output[at * (size_t)s.D + (size_t)col];
}

/* Slot after slot, whichever way they came. */
static float right(const stage &s, int row, int col)
{
    float total = 0;
    for (int k = 0; k < s.K; k++) total += weighed(s, row, k, col);
    return total;
}

static void receive(const stage &s, const rank_of &r, const floats &in, bool more)
{
    const span              own = r.rows_of(r.t.group, s), mine = part(r.t.attn, s.n_attn, s.D, 32);
    const int               skipped = s.row0 + own.begin - s.first[(size_t)r.t.group];
    const floats            weight(s.weight.begin() + s.row0 * s.K, s.weight.end());
    fm_device<float>        d_in(in), d_weight(weight);
    fm_device<float>        y(floats((size_t)((skipped + own.len()) * mine.len()), 0.5f));
    fm_cuda_combine_unpack_args a = {};
    a.shape = r.t, a.in = d_in.data(), a.weight = d_weight.data(), a.y = y.data();
    a.y_row0 = skipped, a.n_own = own.len(), a.own0 = own.begin, a.accumulate = more;
    FM_CHECK(fm_cuda_combine_unpack(&a, NULL) == FM_OK);
    floats want((size_t)(skipped * mine.len()), 0.5f);
    for (int i = 0; i < own.len(); i++)
        for (int c = mine.begin; c < mine.end; c++) {
            const float sum = right(s, s.row0 + own.begin + i, c);
            want.push_back(more ? 0.5f + sum : sum);
        }
    FM_CHECK_EQUAL(y.host(), want);
}

static void carry(const stage &s, int most, bool rows, bool more)
{
    std::vector<rank_of *> rank;
    std::vector<floats>    sent;
    for (int i = 0; i < s.ranks(); i++) {
        rank.push_back(new rank_of(s, i, most, rows));
        sent.push_back(send(s, *rank.back()));
    }
    for (int to = 0; to < s.ranks(); to++) {
        floats in;
        for (int from = 0; from < s.ranks(); from++) {
            const floats m = message(s, sent[(size_t)from], *rank[(size_t)from], *rank[(size_t)to]);
            in.insert(in.end(), m.begin(), m.end());
        }
        in.resize(in.size() + 4);
        receive(s, *rank[(size_t)to], in, more);
    }
    for (rank_of *r : rank) delete r;
}

static void every_way(int groups, int attn, const sets_of_experts &sets, const ints &rows)
{
    fm_placement *where = placement_of(sets, 6);
    stage         whole(groups, attn, where, rows);
    stage later = whole; /* the second of two passes, which begins within a group */
    later.row0  = 3, later.n_row -= 3;
    for (const stage *s : {&whole, &later}) {
        carry(*s, 0, false, false);
        carry(*s, s->items_most(), false, true);
        if (sets.size() == 1) carry(*s, 0, true, true);
    }
    fm_placement_destroy(where);
}

FM_TEST(one_set_and_groups)
{
    every_way(4, 1, even(1, 6), {2, 0, 5, 3});
}
FM_TEST(a_set_for_each_rank)
{
    every_way(4, 1, even(4, 6), {4, 3, 0, 1});
}
FM_TEST(sets_that_divide_experts)
{
    every_way(2, 2, even(2, 6), {5, 2});
}
FM_TEST(sets_across_one_group)
{
    every_way(1, 4, even(2, 6), {7});
}
FM_TEST(three_uneven_parts)
{
    every_way(3, 1, even(3, 6), {3, 1, 4});
}
FM_TEST(experts_in_any_order_with_copies)
{
    every_way(3, 1, {{5, 0, 3}, {1, 3}, {4, 2, 0, 3}}, {3, 1, 4});
    every_way(2, 2, {{5, 4, 3, 2, 1, 0}, {0, 1, 2, 3, 4, 5}}, {5, 2});
}
