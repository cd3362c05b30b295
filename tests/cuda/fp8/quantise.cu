/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to E4M3 on the device, against the CPU's definition. */
#include "definition.h"
#include "linear/linear_matrix.h"
#include "llm/kernel/cuda/fp8/fp8.h"

static void check_rows(const std::vector<uint16_t> &x, int n, int k, const std::vector<int> *row)
{
    const int              n_row = row ? (int)row->size() : n, blocks = (k + 127) / 128;
    fm_device<uint16_t>    from(x);
    fm_device<uint8_t>     y(fm_at(n_row) * fm_at(k));
    fm_device<float>       scale(fm_at(n_row) * fm_at(blocks));
    const std::vector<int> none(1);
    fm_device<int>         list(row ? *row : none);
    fm_cuda_quantise_args  a = {};
    a.x                      = from.data();
    a.row                    = row ? list.data() : NULL;
    a.y                      = y.data();
    a.scale                  = scale.data();
    a.n_row                  = n_row;
    a.n_x                    = n;
    a.k = a.ldx = k;
    FM_CHECK(fm_cuda_quantise(&a, NULL) == FM_OK);
    const std::vector<uint8_t> got    = y.host();
    const std::vector<float>   factor = scale.host();
    for (int i = 0; i < n_row; i++) {
        const int r = row ? (*row)[fm_at(i)] : i;
        if (r < 0 || r >= n) continue;
        std::vector<uint16_t> want(fm_at(k));
        std::vector<float>    right(fm_at(blocks));
        right_quantise(want.data(), right.data(), &x[fm_at(r) * fm_at(k)], k);
        for (int b = 0; b < blocks; b++)
            FM_CHECK(fm_bits_of_f32(factor[fm_at(i * blocks + b)]) ==
                     fm_bits_of_f32(right[fm_at(b)]));
        for (int c = 0; c < k; c++)
            FM_CHECK(fm_f32_of_fp8(got[fm_at(i) * fm_at(k) + fm_at(c)]) ==
                     fm_f32_of_bf16(want[fm_at(c)]));
    }
}

FM_TEST(quantised_rows_are_the_cpus)
{
    fm_numbers r(1);
    for (int k : {8, 128, 136, 512, 1000}) check_rows(fm_hard_rows(r, 19, k), 19, k, NULL);
    check_rows(std::vector<uint16_t>(256), 2, 128, NULL); /* zeros */
}

FM_TEST(quantised_rows_are_picked)
{
    fm_numbers             r(2);
    const std::vector<int> row = {3, 3, 0, -1, 17, 999, 5};
    check_rows(fm_hard_rows(r, 18, 264), 18, 264, &row);
}

/* What is quantised in one order and copied is what is quantised in the other. */
FM_TEST(quantised_rows_are_copied_in_another_order)
{
    fm_numbers             r(3);
    const std::vector<int> row = {3, 3, 0, -1, 17, 999, 5};
    for (int k : {16, 272, 7168}) {
        const int             n = 18, blocks = (k + 127) / 128;
        fm_device<uint16_t>   from(fm_hard_rows(r, n, k));
        fm_device<uint8_t>    all(fm_at(n * k)), want(row.size() * fm_at(k), 0xee),
            got(row.size() * fm_at(k), 0xee);
        fm_device<float>      s_all(fm_at(n * blocks)), s_want(row.size() * fm_at(blocks), 0xee),
            s_got(row.size() * fm_at(blocks), 0xee);
        fm_device<int>        list(row);
        fm_cuda_quantise_args a = {};
        a.x = from.data(), a.y = all.data(), a.scale = s_all.data();
        a.n_row = a.n_x = n, a.k = a.ldx = k;
        FM_CHECK(fm_cuda_quantise(&a, NULL) == FM_OK);
        a.row = list.data(), a.y = want.data(), a.scale = s_want.data(), a.n_row = (int)row.size();
        FM_CHECK(fm_cuda_quantise(&a, NULL) == FM_OK);
        const fm_cuda_pick_args p = {all.data(), s_all.data(),    list.data(), got.data(),
                                     s_got.data(), (int)row.size(), n,           k};
        FM_CHECK(fm_cuda_pick(&p, NULL) == FM_OK);
        FM_CHECK_EQUAL(got.host(), want.host());
        FM_CHECK_EQUAL(s_got.host(), s_want.host());
    }
}

FM_TEST(what_is_not_finite_stays_so)
{
    std::vector<uint16_t> x(128, 0x3f80);
    x[7] = 0x7f80;
    fm_device<uint16_t>   from(x);
    fm_device<uint8_t>    y(128);
    fm_device<float>      scale(1);
    fm_cuda_quantise_args a = {};
    a.x                     = from.data();
    a.y                     = y.data();
    a.scale                 = scale.data();
    a.n_row = a.n_x = 1;
    a.k = a.ldx = 128;
    FM_CHECK(fm_cuda_quantise(&a, NULL) == FM_OK);
    FM_CHECK(!isfinite(fm_f32_of_fp8(y.host()[7]) * scale.host()[0]));
}

/* Weights in blocks of 128 x 128: the scale is the block's, and every value is the nearest under it. */
FM_TEST(quantised_weights_share_a_scale_for_each_block)
{
    fm_numbers r(4);
    for (const int n : {1, 127, 128, 300})
        for (const int k : {16, 128, 272}) {
            const int                   deep = (n + 127) / 128, wide = (k + 127) / 128;
            const std::vector<uint16_t> w = fm_hard_rows(r, n, k);
            fm_device<uint16_t>         from(w);
            fm_device<uint8_t>          to(fm_at(n * k));
            fm_device<float>            scale(fm_at(deep * wide));
            const fm_cuda_quantise_weights_args a = {from.data(), to.data(), scale.data(), n, k};
            FM_CHECK(fm_cuda_quantise_weights(&a, NULL) == FM_OK);
            const std::vector<uint8_t> got    = to.host();
            const std::vector<float>   factor = scale.host();
            std::vector<float>         most(fm_at(deep * wide), 0x1p-100f);
            for (int i = 0; i < n * k; i++) {
                float &m = most[fm_at(i / k / 128 * wide + i % k / 128)];
                m        = fmaxf(m, fabsf(fm_f32_of_bf16(w[fm_at(i)])));
            }
            for (int b = 0; b < deep * wide; b++) FM_CHECK(factor[fm_at(b)] == most[fm_at(b)] / 448);
            for (int i = 0; i < n * k; i++) { /* half of the last bit; below 2^-6 that is 2^-10 */
                const float x = fm_f32_of_bf16(w[fm_at(i)]) *
                                (448 / most[fm_at(i / k / 128 * wide + i % k / 128)]);
                FM_CHECK(fabsf(fm_f32_of_fp8(got[fm_at(i)]) - x) <= fmaxf(fabsf(x) / 16, 0x1p-10f));
            }
        }
}
