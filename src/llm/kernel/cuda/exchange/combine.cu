/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/exchange/combine.h"

#include "llm/kernel/cuda/exchange/parts.cuh"
#include "llm/kernel/cuda/rows/block.cuh"

FM_DEVICE fm_cuda_parts parts_of(int n_part, int n, int unit)
{
    fm_cuda_parts p;
    p.n_part = n_part;
    p.n      = n;
    p.unit   = unit;
    p.width  = 1;
    return p;
}

FM_DEVICE fm_cuda_parts channels(const fm_cuda_combine_shape &t)
{
    return parts_of(t.n_channel, t.D, FM_CUDA_COLUMN_UNIT);
}

FM_DEVICE fm_cuda_parts ranks(const fm_cuda_combine_shape &t)
{
    return parts_of(t.n_attn, t.D, FM_CUDA_COLUMN_UNIT);
}

FM_DEVICE int clamp(int x, int most)
{
    return x < 0 ? 0 : x < most ? x : most;
}

/* Rows of a group, counted in the pass. */
FM_DEVICE fm__span rows_of(const fm_cuda_combine_shape &t, int group)
{
    fm__span s;
    s.begin = clamp(t.group_row0[group] - t.row0, t.n_row);
    s.end   = clamp(t.group_row0[group + 1] - t.row0, t.n_row);
    return s;
}

FM_DEVICE int group_of(const fm_cuda_combine_shape &t, int row)
{
    int g = 0;
    while (g + 1 < t.n_group && t.group_row0[g + 1] <= t.row0 + row) g++;
    return g;
}

/* A block of items: those before it, and its own. */
typedef struct {
    int first, n;
} items;

FM_DEVICE int real_items(const fm_cuda_combine_shape &t, int group, int set)
{
    const int key = group * t.n_set + set;
    return t.key_first[key + 1] - t.key_first[key];
}

FM_DEVICE items items_to(const fm_cuda_combine_shape &t, int group)
{
    const fm__span rows = rows_of(t, group);
    const int      per  = t.as_rows ? 1 : t.most_items;
    items          b    = {rows.begin * per, (rows.end - rows.begin) * per};
    if (per) return b;
    for (int g = 0; g < group; g++) b.first += real_items(t, g, t.set);
    b.n = real_items(t, group, t.set);
    return b;
}

FM_DEVICE items items_from(const fm_cuda_combine_shape &t, int set)
{
    const fm__span rows = rows_of(t, t.group);
    const int      per = t.as_rows ? 1 : t.most_items, n = (rows.end - rows.begin) * per;
    items          b = {set * n, n};
    if (per) return b;
    b.first = t.key_first[t.group * t.n_set + set] - t.key_first[t.group * t.n_set];
    b.n     = real_items(t, t.group, set);
    return b;
}

/* Place of a (row, slot) among the items of its block. */
FM_DEVICE int item_of(const fm_cuda_combine_shape &t, int group, int set, size_t pair)
{
    return t.key_place[pair] - t.key_first[group * t.n_set + set];
}

/* Where column `col` of an item lies if blocks of items are `width` wide and
 * cut at `seg`; both counted from the same column. */
FM_DEVICE size_t place_of(items b, int width, fm__span seg, int item, int col)
{
    return (size_t)b.first * (size_t)width + (size_t)b.n * (size_t)seg.begin +
           (size_t)item * (size_t)(seg.end - seg.begin) + (size_t)(col - seg.begin);
}

FM_DEVICE fm__span counted_from(fm__span s, int begin)
{
    s.begin -= begin;
    s.end -= begin;
    return s;
}

FM_DEVICE float4 add_scaled(float4 sum, float w, float4 v)
{
    return make_float4(sum.x + w * v.x, sum.y + w * v.y, sum.z + w * v.z, sum.w + w * v.w);
}

/* fm_placement_copy() of weights/placement.h */
FM_DEVICE fm_expert_copy copy_of(const fm_cuda_placement &w, int expert, int row)
{
    const int first = w.copy0[expert], n = w.copy0[expert + 1] - first;
    return w.copy[n == 1 ? first : first + row % n];
}

FM_KERNEL(FM__ROW_THREADS) combine_keys(const fm_cuda_combine_shape t, int32_t *key, int32_t *own)
{
    fm__row_begin();
    const int i = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    if (i >= t.n_row * t.top_k) return;
    const int            e = t.expert[i], row = i / t.top_k;
    const fm_expert_copy c = e < 0 ? fm_expert_copy{-1, -1} : copy_of(t.where, e, t.row0 + row);
    key[i]                 = e < 0 ? -1 : group_of(t, row) * t.n_set + c.set;
    own[i]                 = c.set == t.set ? c.slot : -1;
}

/* Block x: a row, or a (row, slot). */
FM_KERNEL(FM__ROW_THREADS) pack_outputs(const fm_cuda_combine_pack_args a)
{
    fm__row_begin();
    const fm_cuda_combine_shape &t    = a.shape;
    const fm__span        mine = fm__part_at(channels(t), t.channel);
    const int             col = fm__column4(), width = mine.end - mine.begin;
    if (col >= width) return;
    const size_t at  = blockIdx.x;
    const int    row = (int)(t.as_rows ? at : at / (size_t)t.top_k), g = group_of(t, row);
    float4       v    = make_float4(0, 0, 0, 0);
    int          item = row - rows_of(t, g).begin;
    if (t.as_rows) {
        for (size_t i = at * (size_t)t.top_k; i < (at + 1) * (size_t)t.top_k; i++)
            if (a.pair_of[i] >= 0)
                v = add_scaled(v, a.weight[i],
                               fm__load4_bf16(a.pair_out + (size_t)a.pair_of[i] * (size_t)width + col));
    } else {
        if (a.pair_of[at] < 0) return;
        v    = fm__load4_bf16(a.pair_out + (size_t)a.pair_of[at] * (size_t)width + col);
        item = item_of(t, g, t.set, at);
    }
    const fm__span theirs = fm__part_at(ranks(t), fm__part_with(ranks(t), mine.begin + col));
    const fm__span seg    = counted_from(fm__shared_span(theirs, mine), mine.begin);
    fm__store4(a.out + place_of(items_to(t, g), width, seg, item, col), v);
}

FM_KERNEL(FM__ROW_THREADS) unpack_outputs(const fm_cuda_combine_unpack_args a)
{
    fm__row_begin();
    const fm_cuda_combine_shape &t    = a.shape;
    const fm__span        mine = fm__part_at(ranks(t), t.attn);
    const int             col = fm__column4(), width = mine.end - mine.begin;
    if (col >= width) return;
    const fm__span theirs = fm__part_at(channels(t), fm__part_with(channels(t), mine.begin + col));
    const fm__span seg    = counted_from(fm__shared_span(theirs, mine), mine.begin);
    float4         sum    = make_float4(0, 0, 0, 0);
    for (int i = 0; i < (t.as_rows ? 1 : t.top_k); i++) {
        const size_t pair = (size_t)(a.own0 + (int)blockIdx.x) * (size_t)t.top_k + (size_t)i;
        const int    key = t.as_rows ? t.group * t.n_set : t.key[pair];
        const int    set = key - t.group * t.n_set;
        if (key < 0) continue;
        const int item = t.as_rows ? (int)blockIdx.x : item_of(t, t.group, set, pair);
        sum            = add_scaled(sum, t.as_rows ? 1.0f : a.weight[pair],
                                    fm__load4(a.in + place_of(items_from(t, set), width, seg, item, col)));
    }
    float       *y   = a.y + (size_t)(a.y_row0 + (int)blockIdx.x) * (size_t)width + col;
    const float4 had = a.accumulate ? fm__load4(y) : make_float4(0, 0, 0, 0);
    fm__store4(y, a.accumulate ? add_scaled(had, 1.0f, sum) : sum);
}

static void check(const fm_cuda_combine_shape *t)
{
    FM_BUG_UNLESS(t->D % 4 == 0 && t->n_group * t->n_attn == t->n_set * t->n_channel);
    FM_BUG_UNLESS(t->as_rows ? t->n_set == 1 : t->key && t->key_first && t->key_place);
}

fm_status fm_cuda_combine_keys(const fm_cuda_combine_shape *t, int32_t *key, int32_t *own,
                              fm_stream stream)
{
    if (t->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(combine_keys, fm__row_blocks(t->n_row * t->top_k), FM__ROW_THREADS, 0, stream,
                    *t, key, own);
    return fm_cuda_launched("combine_keys");
}

fm_status fm_cuda_combine_pack(const fm_cuda_combine_pack_args *a, fm_stream stream)
{
    const fm_cuda_combine_shape *t = &a->shape;
    check(t);
    const unsigned rows = (unsigned)(t->as_rows ? t->n_row : t->n_row * t->top_k);
    const dim3     grid(rows, fm__row_blocks(t->D / 4));
    if (rows == 0) return FM_OK;
    FM_LAUNCH_EARLY(pack_outputs, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("pack_outputs");
}

fm_status fm_cuda_combine_unpack(const fm_cuda_combine_unpack_args *a, fm_stream stream)
{
    check(&a->shape);
    const dim3 grid((unsigned)a->n_own, fm__row_blocks(a->shape.D / 4));
    if (a->n_own == 0) return FM_OK;
    FM_LAUNCH_EARLY(unpack_outputs, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("unpack_outputs");
}
