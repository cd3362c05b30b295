/* SPDX-License-Identifier: Apache-2.0 */
/* Generated rows out of the batch and back into it. */
#include "mla.h"

#include "llm/kernel/cuda/mla.h"

FM_TEST(queries_taken_from_scattered_rows)
{
    const int            T = 7, H = 3, nope = 16, rope = 24, lora = 32, width = 64;
    fm_numbers           r(1);
    const bf16s          q = random_bf16(r, (size_t)(T * H * (nope + rope)), 1);
    std::vector<int32_t> row = {5, -1, 0, 6};
    bf16s                own(4 * H * nope, 0xffff), latent(4 * H * width, 0xffff);
    for (int i = 0; i < 3; i += 2) /* the fourth is behind n_row */
        for (int h = 0; h < H; h++) {
            const uint16_t *from = &q[(size_t)((row[(size_t)i] * H + h) * (nope + rope))];
            uint16_t       *to   = &latent[(size_t)((i * H + h) * width)];
            memcpy(&own[(size_t)((i * H + h) * nope)], from, (size_t)nope * 2);
            memcpy(to + lora, from + nope, (size_t)rope * 2);
            memset(to + lora + rope, 0, (size_t)(width - lora - rope) * 2);
        }
    fm_device<int32_t>     d_n(std::vector<int32_t>{3}), d_row(row);
    fm_device<uint16_t>    d_q(q), d_own(own.size()), d_latent(latent.size());
    const fm_mla_take_args a = {4,    d_n.data(), d_row.data(), H,          nope,           rope,
                                lora, width,      d_q.data(),   d_own.data(), d_latent.data()};
    FM_CHECK(fm_cuda_mla_take(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(d_own.host(), own);
    FM_CHECK_EQUAL(d_latent.host(), latent);
}

FM_TEST(answers_put_into_scattered_rows)
{
    const int             width = 40;
    fm_numbers            r(2);
    const bf16s           y = random_bf16(r, 3 * width, 1);
    bf16s                 o(6 * width, 0xffff);
    fm_device<int32_t>    d_n(std::vector<int32_t>{3}), d_row(std::vector<int32_t>{4, -1, 1});
    fm_device<uint16_t>   d_y(y), d_o(o.size());
    const fm_mla_put_args a = {3, d_n.data(), d_row.data(), width, d_y.data(), d_o.data()};
    FM_CHECK(fm_cuda_mla_put(&a, NULL) == FM_OK);
    std::copy(y.begin(), y.begin() + width, o.begin() + 4 * width);
    std::copy(y.begin() + 2 * width, y.end(), o.begin() + width);
    FM_CHECK_EQUAL(d_o.host(), o);
}

FM_TEST(rows_refuse_odd_widths)
{
    fm_mla_take_args t = {};
    t.nope = 16, t.rope = 8, t.kv_lora = 32, t.width = 64;
    FM_CHECK(fm_cuda_mla_take(&t, NULL) == FM_OK);
    t.rope = 4;
    FM_CHECK(fm_cuda_mla_take(&t, NULL) == FM_E_NOSUP);
    t.rope = 40;
    FM_CHECK(fm_cuda_mla_take(&t, NULL) == FM_E_NOSUP);
    fm_mla_put_args p = {};
    p.width           = 12;
    FM_CHECK(fm_cuda_mla_put(&p, NULL) == FM_E_NOSUP);
}
