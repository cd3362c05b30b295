/* SPDX-License-Identifier: Apache-2.0 */
/* Row kernels against the CPU's row functions. */
#include <math.h>

#include "base/number.h"
#include "check.h"
#include "definition.h"
#include "llm/kernel/cuda/rows/rows.h"

typedef std::vector<float>    floats;
typedef std::vector<uint16_t> bf16s;
typedef std::vector<int32_t>  ints;

static bf16s rounded(const floats &x)
{
    bf16s y(x.size());
    for (size_t i = 0; i < x.size(); i++) y[i] = fm_bf16_of_f32(x[i]);
    return y;
}

static floats widened(const bf16s &x)
{
    floats y(x.size());
    for (size_t i = 0; i < x.size(); i++) y[i] = fm_f32_of_bf16(x[i]);
    return y;
}

/* The norm's sum has its own order, so an f32 result may be off by a few ulp
 * before it is rounded: it must round to bf16 from within that distance. */
static bool rounds_to(float exact, uint16_t got)
{
    const float slack = fabsf(exact) * 4e-7f;
    const float lo    = fm_f32_of_bf16(fm_bf16_of_f32(exact - slack)),
                hi    = fm_f32_of_bf16(fm_bf16_of_f32(exact + slack));
    const float x     = fm_f32_of_bf16(got);
    return x >= lo && x <= hi;
}

static void check_norm(const bf16s &got, const floats &x, const floats &w, const ints &row,
                       int width)
{
    floats y((size_t)width);
    int    wrong = 0;
    for (size_t i = 0; i < row.size(); i++) {
        right_rmsnorm_f32(y.data(), &x[(size_t)row[i] * (size_t)width], w.data(), 1e-6f, width);
        for (size_t j = 0; j < (size_t)width; j++)
            wrong += !rounds_to(y[j], got[i * (size_t)width + j]);
    }
    FM_CHECK(wrong == 0);
}

static ints upto(int n)
{
    ints v((size_t)n);
    for (int i = 0; i < n; i++) v[(size_t)i] = i;
    return v;
}

static const int widths[] = {4, 32, 512, 1020, 1024, 1028, 1536, 2048, 7168, 9000};

FM_TEST(embed_copies_rows_and_zeros_bad_tokens)
{
    fm_numbers               r(1);
    const int                vocab = 7, width = 1032, n = 6;
    const bf16s              table = rounded(r.floats((size_t)(vocab * width), -3, 3));
    const ints               token = {3, 0, 6, -1, 7, 3};
    fm_device<uint16_t>      t(table);
    fm_device<int32_t>       id(token);
    fm_device<float>         x((size_t)(n * width));
    const fm_cuda_embed_args a = {x.data(), t.data(), id.data(), n, width, vocab, NULL};
    FM_CHECK(fm_cuda_embed(&a, NULL) == FM_OK);
    floats want((size_t)(n * width), 0.0f);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < width && token[(size_t)i] >= 0 && token[(size_t)i] < vocab; j++)
            want[(size_t)(i * width + j)] =
                fm_f32_of_bf16(table[(size_t)(token[(size_t)i] * width + j)]);
    FM_CHECK_EQUAL(x.host(), want);
}

FM_TEST(rmsnorm_of_all_widths)
{
    for (const int width : widths) {
        fm_numbers   r((uint64_t)width);
        const int    n = 3;
        const floats x = r.floats((size_t)(n * width), -4, 4),
                     w = r.floats((size_t)width, 0.5f, 1.5f);
        fm_device<float>     dx(x), dw(w);
        fm_device<uint16_t>  y((size_t)(n * width));
        fm_cuda_rmsnorm_args a = {};
        a.y = y.data(), a.x = dx.data(), a.w = dw.data(), a.eps = 1e-6f, a.n_row = n,
        a.width = width;
        FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
        check_norm(y.host(), x, w, upto(n), width);
        FM_CHECK_EQUAL(dx.host(), x);
    }
}

/* E4M3 beside bf16 is what quantising the bf16 gives. */
FM_TEST(rmsnorm_quantises_its_rows)
{
    for (const int width : {128, 136, 1532, 2048, 7168}) {
        fm_numbers   r((uint64_t)width);
        const int    n = 3, blocks = (width + 127) / 128;
        const floats x = r.floats((size_t)(n * width), -4, 4),
                     w = r.floats((size_t)width, 0.5f, 1.5f);
        fm_device<float>     dx(x), dw(w), scale((size_t)(n * blocks));
        fm_device<uint16_t>  y((size_t)(n * width));
        fm_device<uint8_t>   y8((size_t)(n * width));
        fm_cuda_rmsnorm_args a = {};
        a.y = y.data(), a.x = dx.data(), a.w = dw.data(), a.eps = 1e-6f, a.n_row = n,
        a.width = width, a.y8 = y8.data(), a.y8_scale = scale.data();
        FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
        const bf16s                rows = y.host();
        const std::vector<uint8_t> got  = y8.host();
        bf16s                      want((size_t)width);
        floats                     factor((size_t)blocks), all;
        for (int i = 0; i < n; i++) {
            right_quantise(want.data(), factor.data(), &rows[(size_t)(i * width)], width);
            all.insert(all.end(), factor.begin(), factor.end());
            for (int c = 0; c < width; c++)
                FM_CHECK(fm_f32_of_fp8(got[(size_t)(i * width + c)]) ==
                         fm_f32_of_bf16(want[(size_t)c]));
        }
        FM_CHECK_EQUAL(scale.host(), all);
    }
}

/* Experts, shared expert, residual sum and norm in one launch, and in three. */
static void check_norm_with_experts(int n, int width, int accumulate)
{
    fm_numbers   r((uint64_t)width);
    const int    k = 6;
    const floats x = r.floats((size_t)(n * width), -4, 4), y = r.floats((size_t)(n * width), -4, 4),
                 w = r.floats((size_t)width, 0.5f, 1.5f);
    ints pair((size_t)(n * k));
    for (size_t i = 0; i < pair.size(); i++) pair[i] = (int)(i * 5 % pair.size());
    pair[1] = pair[8] = -1;
    fm_device<float> dx(x), dx2(x), dy(y), dw(w), part(r.floats((size_t)(n * k), 0, 1));
    fm_device<int32_t>   dp(pair);
    fm_device<uint16_t>  fused((size_t)(n * width)), apart((size_t)(n * width)),
        out(rounded(r.floats((size_t)(n * k * width), -1, 1)));
    fm_cuda_rmsnorm_args a = {};
    a.y = fused.data(), a.x = dx.data(), a.add = dy.data(), a.w = dw.data();
    a.eps = 1e-6f, a.n_row = n, a.width = width;
    a.experts = {dy.data(), out.data(), dp.data(), part.data(), accumulate, n, k, width};
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(dy.host(), y);
    FM_CHECK(fm_cuda_combine(&a.experts, NULL) == FM_OK);
    a.y = apart.data(), a.x = dx2.data(), a.experts.top_k = 0;
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(fused.host(), apart.host());
    FM_CHECK_EQUAL(dx.host(), dx2.host());
}

FM_TEST(norm_takes_the_experts_along)
{
    for (int n : {3, 65}) /* few rows, and more */
        for (int width : {1020, 2044, 2048, 2052, 7168})
            for (int accumulate : {0, 1}) check_norm_with_experts(n, width, accumulate);
}

/* The bits of a row do not depend on how many there are, nor on its place. */
FM_TEST(rmsnorm_of_a_row_alone_and_in_company)
{
    fm_numbers   r(3);
    const int    width = 1532, n = 17;
    const floats x = r.floats((size_t)(n * width), -4, 4), w = r.floats((size_t)width, 0.5f, 1.5f);
    fm_device<float>     dx(x), dw(w);
    fm_device<uint16_t>  all((size_t)(n * width)), one((size_t)width);
    fm_cuda_rmsnorm_args a = {};
    a.y = all.data(), a.x = dx.data(), a.w = dw.data(), a.eps = 1e-6f, a.n_row = n, a.width = width;
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
    const bf16s together = all.host();
    for (int i = 0; i < n; i += 5) {
        a.y = one.data(), a.x = dx.data() + i * width, a.n_row = 1;
        FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
        FM_CHECK_EQUAL(one.host(),
                       bf16s(together.begin() + i * width, together.begin() + (i + 1) * width));
    }
}

FM_TEST(rmsnorm_of_extreme_rows)
{
    const int width = 2048;
    floats    x((size_t)(4 * width), 0.0f), w((size_t)width, 1.0f);
    for (size_t j = 0; j < (size_t)width; j++) {
        x[(size_t)width + j]       = 1e-20f;                      /* squares underflow */
        x[(size_t)(2 * width) + j] = j == 77 ? 60000.0f : 0.001f; /* one outlier */
        x[(size_t)(3 * width) + j] = j % 2 ? -1e15f : 1e15f;
    }
    fm_device<float>     dx(x), dw(w);
    fm_device<uint16_t>  y((size_t)(4 * width));
    fm_cuda_rmsnorm_args a = {};
    a.y = y.data(), a.x = dx.data(), a.w = dw.data(), a.eps = 1e-6f, a.n_row = 4, a.width = width;
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
    check_norm(y.host(), x, w, upto(4), width);
}

FM_TEST(norm_of_gathered_rows)
{
    fm_numbers   r(4);
    const int    width = 2048, n = 9;
    const floats x = r.floats((size_t)(n * width), -4, 4), w = r.floats((size_t)width, 0.5f, 1.5f);
    const ints   row = {8, 0, 3, 3};
    fm_device<float>     dx(x), dw(w);
    fm_device<int32_t>   dr(row);
    fm_device<uint16_t>  y(row.size() * (size_t)width);
    fm_cuda_rmsnorm_args a = {};
    a.y = y.data(), a.x = dx.data(), a.w = dw.data(), a.gather = dr.data();
    a.eps = 1e-6f, a.n_row = (int)row.size(), a.width = width;
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
    check_norm(y.host(), x, w, row, width);

    const floats     more = r.floats(x.size(), -4, 4);
    floats           sum(x);
    fm_device<float> dm(more);
    for (size_t i = 0; i < sum.size(); i++) sum[i] += more[i];
    a.add = dm.data();
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
    check_norm(y.host(), sum, w, row, width);
    FM_CHECK_EQUAL(dx.host(), x); /* a row may be gathered twice: the sum is not kept */
}

FM_TEST(residual_sum_and_norm_in_one)
{
    for (const int width : {64, 1028, 7168}) {
        fm_numbers   r((uint64_t)width);
        const int    n   = 3;
        const floats x   = r.floats((size_t)(n * width), -4, 4),
                     y   = r.floats((size_t)(n * width), -4, 4);
        const floats w   = r.floats((size_t)width, 0.5f, 1.5f);
        floats       sum = x;
        for (size_t i = 0; i < sum.size(); i++) sum[i] += y[i];
        fm_device<float>     dx(x), dx2(x), dy(y), dw(w);
        fm_device<uint16_t>  fused((size_t)(n * width)), apart((size_t)(n * width));
        fm_cuda_rmsnorm_args a = {};
        a.y = fused.data(), a.x = dx.data(), a.add = dy.data(), a.w = dw.data();
        a.eps = 1e-6f, a.n_row = n, a.width = width;
        FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
        FM_CHECK_EQUAL(dx.host(), sum);
        check_norm(fused.host(), sum, w, upto(n), width);

        const fm_cuda_add_args b = {dx2.data(), dy.data(), n, width};
        FM_CHECK(fm_cuda_add(&b, NULL) == FM_OK);
        FM_CHECK_EQUAL(dx2.host(), sum);
        a.y = apart.data(), a.x = dx2.data(), a.add = NULL;
        FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
        FM_CHECK_EQUAL(apart.host(), fused.host());
    }
}

FM_TEST(rows_too_wide_are_refused)
{
    fm_cuda_rmsnorm_args a = {};
    a.n_row = 1, a.width = FM_CUDA_NORM_MAX + 4;
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_E_NOSUP);
}

FM_TEST(no_rows_is_nothing_to_do)
{
    fm_cuda_rmsnorm_args a = {};
    fm_cuda_embed_args   b = {};
    fm_cuda_combine_args c = {};
    a.width = b.width = c.width = 32;
    FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
    FM_CHECK(fm_cuda_embed(&b, NULL) == FM_OK);
    FM_CHECK(fm_cuda_combine(&c, NULL) == FM_OK);
}

FM_TEST(combine_adds_in_slot_order)
{
    fm_numbers   r(6);
    const int    n = 5, k = 11, width = 1036;
    const bf16s  out    = rounded(r.floats((size_t)(n * k * width), -1, 1));
    const floats wide   = widened(out), weight = r.floats((size_t)(n * k), 0, 1);
    const floats y0     = r.floats((size_t)(n * width), -1, 1);
    ints         pair((size_t)(n * k));
    for (size_t i = 0; i < pair.size(); i++) pair[i] = (int)(i * 7 % pair.size());
    pair[3] = -1; /* one slot without expert */
    for (size_t i = (size_t)(4 * k); i < pair.size(); i++) pair[i] = -1; /* a whole row */
    fm_device<uint16_t>  d_out(out);
    fm_device<float>     d_weight(weight), y((size_t)(n * width)), more(y0);
    fm_device<int32_t>   d_pair(pair);
    fm_cuda_combine_args a = {y.data(), d_out.data(), d_pair.data(), d_weight.data(), 0, n,
                              k,        width};
    FM_CHECK(fm_cuda_combine(&a, NULL) == FM_OK);
    a.y = more.data(), a.accumulate = 1;
    FM_CHECK(fm_cuda_combine(&a, NULL) == FM_OK);
    floats want((size_t)(n * width), 0.0f), want_more(y0);
    for (int i = 0; i < n; i++)
        for (int s = 0; s < k; s++) {
            const int p = pair[(size_t)(i * k + s)];
            if (p < 0) continue;
            right_scale_add(&want[(size_t)(i * width)], &wide[(size_t)(p * width)],
                            weight[(size_t)(i * k + s)], width);
        }
    for (size_t i = 0; i < want.size(); i++)
        want_more[i] += want[i]; /* the sum is complete first */
    FM_CHECK_EQUAL(y.host(), want);
    FM_CHECK_EQUAL(more.host(), want_more);
}

/* The state before a row: of another row, kept, or none; rows' own states are kept where asked. */
FM_TEST(hidden_states_are_found_and_kept)
{
    for (int width : {32, 1020, 7168}) {
        fm_numbers   r((uint64_t)width);
        const int    n = 5, places = 6;
        const size_t D = (size_t)width;
        const floats x = r.floats(n * D, -4, 4), norm = r.floats(D, 0.5f, 1.5f),
                     w = r.floats(D, 0.5f, 1.5f);
        const bf16s         kept   = rounded(r.floats(places * D, -2, 2));
        const ints          before = {FM_CUDA_NO_STATE, 0, -1 - 3, 2, -1 - 0}, keep = {1, -1, 4, 5, -1};
        fm_device<float>    dx(x), dn(norm), dw(w);
        fm_device<uint16_t> dk(kept), y(n * D);
        fm_device<int32_t>  db(before), dp(keep);
        const fm_cuda_hidden_args a = {y.data(),  dx.data(), dn.data(), dw.data(), dk.data(),
                                       db.data(), dp.data(), 1e-6f,     n,         width};
        FM_CHECK(fm_cuda_hidden(&a, NULL) == FM_OK);
        const bf16s got = dk.host(), out = y.host();
        bf16s       want = kept;
        for (int i = 0; i < n; i++) {
            if (keep[(size_t)i] < 0) continue;
            const bf16s mine(got.begin() + keep[(size_t)i] * width,
                             got.begin() + (keep[(size_t)i] + 1) * width);
            check_norm(mine, x, norm, {i}, width);
            std::copy(mine.begin(), mine.end(), want.begin() + keep[(size_t)i] * width);
        }
        FM_CHECK(got == want); /* and nothing else was written */
        floats state(2 * D); /* before rows 2 and 4: as they were kept */
        for (size_t j = 0; j < D; j++) {
            state[j]     = fm_f32_of_bf16(kept[3 * D + j]);
            state[D + j] = fm_f32_of_bf16(kept[j]);
        }
        check_norm(bf16s(out.begin() + 2 * width, out.begin() + 3 * width), state, w, {0}, width);
        check_norm(bf16s(out.begin() + 4 * width, out.begin() + 5 * width), state, w, {1}, width);
        for (size_t j = 0; j < D; j++) FM_CHECK(out[j] == 0); /* no state: zeros */
        floats seen(D); /* before row 3: row 2's, which was kept */
        for (size_t j = 0; j < D; j++) seen[j] = fm_f32_of_bf16(got[4 * D + j]);
        check_norm(bf16s(out.begin() + 3 * width, out.begin() + 4 * width), seen, w, {0}, width);
    }
}
