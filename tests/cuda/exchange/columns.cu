/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of columns become rows again, for shares that are uneven and empty. */
#include "llm/kernel/cuda/exchange/columns.h"

#include "check.h"
#include "exchange/columns_definition.h"

/* rows as pieces, in part order */
template <class T>
static std::vector<T> pieces_of(const std::vector<T> &rows, const fm_cuda_parts &p, int n_row)
{
    const size_t   wide = (size_t)(p.n * p.width);
    std::vector<T> out;
    for (int part = 0; part < p.n_part; part++) {
        int begin, end;
        right_part(part, p.n_part, p.n, p.unit, &begin, &end);
        for (size_t i = 0; i < (size_t)n_row; i++)
            for (int c = begin * p.width; c < end * p.width; c++)
                out.push_back(rows[i * wide + (size_t)c]);
    }
    return out;
}

static const fm_cuda_parts shapes[] = {
    {2, 8, 1, 16},    {4, 3, 1, 32},  /* heads, some ranks without */
    {3, 160, 32, 1},  {4, 64, 32, 1}, /* outputs, some ranks without */
    {4, 2096, 16, 1}, {1, 64, 32, 1},
};

FM_TEST(bf16_pieces_become_rows)
{
    for (const fm_cuda_parts &p : shapes)
        for (int n : {1, 7}) {
            std::vector<uint16_t> rows((size_t)(n * p.n * p.width));
            fm_numbers            r(1);
            for (uint16_t &x : rows) x = (uint16_t)r.u32();
            fm_device<uint16_t>       piece(pieces_of(rows, p, n)), y(rows.size());
            const fm_cuda_unpack_args a = {y.data(), piece.data(), p, 2, 0, n};
            FM_CHECK(fm_cuda_unpack(&a, NULL) == FM_OK);
            FM_CHECK_EQUAL(y.host(), rows);
        }
}

/* A vocabulary need not be a multiple of four. */
static const fm_cuda_parts wide[] = {
    {2, 50, 32, 1}, {4, 50, 32, 1}, {3, 514, 32, 1}, {2, 320, 32, 1}};

FM_TEST(f32_pieces_become_rows_or_are_added)
{
    for (const fm_cuda_parts &p : wide)
        for (int n : {1, 5}) {
            fm_numbers               r(2);
            const std::vector<float> rows = r.floats((size_t)(n * p.n), -1, 1),
                                     had  = r.floats(rows.size(), -1, 1);
            fm_device<float>    piece(pieces_of(rows, p, n)), y(rows.size()), more(had);
            fm_cuda_unpack_args a = {y.data(), piece.data(), p, 4, 0, n};
            FM_CHECK(fm_cuda_unpack(&a, NULL) == FM_OK);
            FM_CHECK_EQUAL(y.host(), rows);
            a.y = more.data(), a.add = 1;
            FM_CHECK(fm_cuda_unpack(&a, NULL) == FM_OK);
            std::vector<float> sum(had);
            for (size_t i = 0; i < sum.size(); i++) sum[i] += rows[i];
            FM_CHECK_EQUAL(more.host(), sum);
        }
}

FM_TEST(columns_and_rows_are_taken)
{
    fm_numbers                      r(3);
    const int                       n = 6, ldx = 1100, begin = 32, width = 1036;
    const std::vector<float>        x = r.floats((size_t)(n * ldx), -1, 1);
    fm_device<float>                dx(x), y((size_t)(n * width));
    const fm_cuda_take_columns_args a = {y.data(), dx.data(), n, begin, width, ldx};
    FM_CHECK(fm_cuda_take_columns(&a, NULL) == FM_OK);
    std::vector<float> want;
    for (int i = 0; i < n; i++)
        want.insert(want.end(), x.begin() + i * ldx + begin, x.begin() + i * ldx + begin + width);
    FM_CHECK_EQUAL(y.host(), want);

    std::vector<uint16_t> table(4 * 64);
    for (uint16_t &v : table) v = (uint16_t)r.u32();
    fm_device<uint16_t>          d_table(table), rows(3 * 64, 0x11);
    fm_device<int32_t>           list(std::vector<int32_t>{2, -1, 0});
    const fm_cuda_take_rows_args b = {rows.data(), d_table.data(), list.data(), 3, 64};
    FM_CHECK(fm_cuda_take_rows(&b, NULL) == FM_OK);
    std::vector<uint16_t> taken(3 * 64, 0x1111);
    std::copy(table.begin() + 128, table.begin() + 192, taken.begin());
    std::copy(table.begin(), table.begin() + 64, taken.begin() + 128);
    FM_CHECK_EQUAL(rows.host(), taken);
}

/* For every rank: whoever has the word contributes it, and every row finds it. */
FM_TEST(words_of_tokens_the_host_does_not_know_are_found)
{
    typedef std::vector<int32_t> ints;
    const fm_cuda_parts          words  = {3, 530, 32, 1};
    const ints                   chosen = {529, 0, 191, 192, 530}; /* the last is no word */
    const ints                   base   = {100, 200, 300};
    const ints                   token  = {-1, 7, -2, -3, -4, -5}; /* the second is known */
    const ints                   own    = {-2, 5, -3, -4, -5, -6, -1};
    const ints                   at     = {-1, 42, -2, -3, -4, -5};
    for (int part = 0; part < words.n_part; part++) {
        fm_device<int32_t> d_own(own), d_at(at), d_token(token), d_chosen(chosen), d_base(base);
        const fm_cuda_find_words_args a = {d_own.data(),    d_at.data(),   d_token.data(),
                                           d_chosen.data(), d_base.data(), words,
                                           part,            (int)own.size(), (int)at.size()};
        ints want_own = own, want_at = at;
        FM_CHECK(fm_cuda_find_words(&a, NULL) == FM_OK);
        for (int c = 0; c < 5; c++) {
            const size_t row = c == 0 ? 0 : (size_t)c + 1; /* of every list */
            want_own[row] = want_at[row] = -1;
            for (int k = 0; k < words.n_part; k++) {
                int begin, end;
                right_part(k, words.n_part, words.n, words.unit, &begin, &end);
                if (chosen[(size_t)c] < begin || chosen[(size_t)c] >= end) continue;
                if (k == part) want_own[row] = chosen[(size_t)c] - begin;
                want_at[row] = base[(size_t)k] + c;
            }
        }
        FM_CHECK_EQUAL(d_own.host(), want_own);
        FM_CHECK_EQUAL(d_at.host(), want_at);
    }
}
