/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/exchange/columns.h"

#include "llm/kernel/cuda/exchange/parts.cuh"
#include "llm/kernel/cuda/rows/block.cuh"

/* What a thread moves: PER columns. */
struct move_bf16x4 {
    typedef uint2 value;
    enum { PER = 4 };
    FM_DEVICE value sum(value, value b)
    {
        return b;
    }
};
struct move_f32x4 {
    typedef float4 value;
    enum { PER = 4 };
    FM_DEVICE value sum(value a, value b)
    {
        return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
};
struct move_f32 {
    typedef float value;
    enum { PER = 1 };
    FM_DEVICE value sum(value a, value b)
    {
        return a + b;
    }
};

template <class M> FM_KERNEL(FM__ROW_THREADS) unpack_rows(const fm_cuda_unpack_args a)
{
    fm__row_begin();
    typedef typename M::value value;
    const int64_t             row = blockIdx.x, wide = (int64_t)a.parts.n * a.parts.width;
    const int                 col = ((int)blockIdx.y * FM__ROW_THREADS + (int)threadIdx.x) * M::PER;
    if (col >= wide) return;
    const fm__span s    = fm__part_at(a.parts, fm__part_with(a.parts, col / a.parts.width));
    const int64_t  from = (int64_t)a.n_row * s.begin + row * (s.end - s.begin) + (col - s.begin);
    value         *y    = (value *)a.y + (row * wide + col) / M::PER;
    const value    v    = ((const value *)a.piece)[from / M::PER];
    *y                  = a.add ? M::sum(*y, v) : v;
}

FM_KERNEL(FM__ROW_THREADS) take_columns(const fm_cuda_take_columns_args a)
{
    fm__row_begin();
    const int col = fm__column4();
    if (col >= a.width) return;
    const size_t row = blockIdx.x;
    fm__store4(a.y + row * (size_t)a.width + col,
               fm__load4(a.x + row * (size_t)a.ldx + a.begin + col));
}

FM_KERNEL(FM__ROW_THREADS) take_rows(const fm_cuda_take_rows_args a)
{
    fm__row_begin();
    const int col = fm__column4(), from = a.row[blockIdx.x];
    if (col >= a.width || from < 0) return;
    *(uint2 *)(a.y + (size_t)blockIdx.x * (size_t)a.width + col) =
        *(const uint2 *)(a.table + (size_t)from * (size_t)a.width + col);
}

FM_DEVICE bool is_word(const fm_cuda_parts &p, int id)
{
    return id >= 0 && id < p.n;
}

FM_KERNEL(FM__ROW_THREADS) find_words(const fm_cuda_find_words_args a)
{
    fm__row_begin();
    const int i = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    if (i < a.n_own && a.own[i] < -1) {
        const int      id   = a.chosen[-2 - a.own[i]];
        const fm__span mine = fm__part_at(a.words, a.part);
        a.own[i]            = id >= mine.begin && id < mine.end ? id - mine.begin : -1;
    }
    if (i < a.n_row && a.at[i] < 0) {
        const int id = a.chosen[-1 - a.token[i]], p = -1 - a.at[i];
        a.at[i]      = is_word(a.words, id) ? a.base[fm__part_with(a.words, id)] + p : -1;
    }
}

template <class M> static void launch_unpack(const fm_cuda_unpack_args *a, fm_stream stream)
{
    const int  wide = a->parts.n * a->parts.width;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(wide / M::PER));
    FM_LAUNCH_EARLY(unpack_rows<M>, grid, FM__ROW_THREADS, 0, stream, *a);
}

/* Every piece's rows begin at a multiple of four columns? */
static int by_four(const fm_cuda_parts *p)
{
    return p->unit * p->width % 4 == 0 && p->n * p->width % 4 == 0;
}

fm_status fm_cuda_unpack(const fm_cuda_unpack_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->parts.n_part > 0 && a->parts.unit > 0 && a->parts.width > 0);
    FM_BUG_UNLESS(a->element == 4 || (a->element == 2 && !a->add && by_four(&a->parts)));
    if (a->n_row == 0 || a->parts.n == 0) return FM_OK;
    if (a->element == 2)
        launch_unpack<move_bf16x4>(a, stream);
    else if (by_four(&a->parts))
        launch_unpack<move_f32x4>(a, stream);
    else
        launch_unpack<move_f32>(a, stream);
    return fm_cuda_launched("unpack_rows");
}

fm_status fm_cuda_take_columns(const fm_cuda_take_columns_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->begin % 4 == 0 && a->width % 4 == 0 && a->ldx % 4 == 0);
    if (a->n_row == 0 || a->width == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->width / 4));
    FM_LAUNCH_EARLY(take_columns, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("take_columns");
}

fm_status fm_cuda_take_rows(const fm_cuda_take_rows_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    if (a->n_row == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->width / 4));
    FM_LAUNCH_EARLY(take_rows, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("take_rows");
}

fm_status fm_cuda_find_words(const fm_cuda_find_words_args *a, fm_stream stream)
{
    const int n = a->n_own > a->n_row ? a->n_own : a->n_row;
    FM_BUG_UNLESS(a->words.width == 1 && a->part >= 0 && a->part < a->words.n_part);
    if (n == 0) return FM_OK;
    FM_LAUNCH_EARLY(find_words, fm__row_blocks(n), FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("find_words");
}
