/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation and the cache write against the CPU's row functions. */
#include <math.h>

#include "base/number.h"
#include "check.h"
#include "definition.h"
#include "llm/kernel/cuda/rows/rows.h"

typedef std::vector<float>    floats;
typedef std::vector<uint16_t> bf16s;
typedef std::vector<int32_t>  ints;

enum { CONTEXT = 40 };

namespace
{
struct rope_table {
    floats cos, sin;
    explicit rope_table(int rope) : cos((size_t)(CONTEXT * rope / 2)), sin(cos.size())
    {
        for (size_t i = 0; i < cos.size(); i++) {
            cos[i] = cosf((float)i * 0.37f) * 1.1f;
            sin[i] = sinf((float)i * 0.37f) * 1.1f;
        }
    }
};
} // namespace

static void check_rope(int n_head, int nope, int rope, int interleaved)
{
    fm_numbers       r((uint64_t)(n_head + rope));
    const int        n = 4, width = nope + rope;
    const ints       pos = {0, 39, 7, 7};
    const rope_table t(rope);
    bf16s            q((size_t)(n * n_head * width));
    for (uint16_t &x : q) x = fm_bf16_of_f32(r.between(-2, 2));
    fm_device<uint16_t> dq(q);
    fm_device<float>    dc(t.cos), ds(t.sin);
    fm_device<int32_t>  dp(pos);
    fm_cuda_rope_args   a = {};
    a.q = dq.data(), a.cos = dc.data(), a.sin = ds.data(), a.pos = dp.data();
    a.n_row = n, a.n_head = n_head, a.nope = nope, a.rope = rope, a.interleaved = interleaved;
    FM_CHECK(fm_cuda_rope(&a, NULL) == FM_OK);
    for (int i = 0; i < n * n_head; i++) {
        uint16_t    *part = &q[(size_t)(i * width + nope)];
        const size_t at   = (size_t)pos[(size_t)(i / n_head)] * (size_t)(rope / 2);
        floats       x((size_t)rope);
        for (int j = 0; j < rope; j++) x[(size_t)j] = fm_f32_of_bf16(part[j]);
        right_rotate(x.data(), &t.cos[at], &t.sin[at], rope, interleaved);
        for (int j = 0; j < rope; j++) part[j] = fm_bf16_of_f32(x[(size_t)j]);
    }
    FM_CHECK_EQUAL(dq.host(), q);
}

FM_TEST(rope_of_queries_equals_the_cpu)
{
    check_rope(16, 128, 64, 1);
    check_rope(128, 16, 64, 0);
    check_rope(1, 0, 2, 1);
    check_rope(3, 6, 10, 0);
}

namespace
{
/* Queries of four rows, of which three end in the latent space. */
struct query_case {
    int                 nope, rope, kv_lora, width;
    rope_table          table;
    fm_device<float>    cos, sin;
    fm_device<int32_t>  pos;
    fm_device<uint16_t> q, latent;
    fm_cuda_rope_args   a;
    query_case(int nope_, int rope_, int kv_lora_, int width_, int interleaved)
        : nope(nope_), rope(rope_), kv_lora(kv_lora_), width(width_), table(rope_), cos(table.cos),
          sin(table.sin), pos(ints{3, 39, 0, 12}), q(some(4 * HEADS * (nope_ + rope_))),
          latent((size_t)(3 * HEADS * width_), 0xee), a()
    {
        a.q = q.data(), a.cos = cos.data(), a.sin = sin.data(), a.pos = pos.data();
        a.n_row = 4, a.n_head = HEADS, a.nope = nope, a.rope = rope, a.interleaved = interleaved;
        a.latent = latent.data(), a.n_latent = 3, a.kv_lora = kv_lora, a.width = width;
    }
    enum { HEADS = 5 };
    static bf16s some(int n)
    {
        fm_numbers r((uint64_t)n);
        bf16s      v((size_t)n);
        for (uint16_t &x : v) x = fm_bf16_of_f32(r.between(-2, 2));
        return v;
    }
};
} // namespace

/* What lies in the latent space after the rotation, given the rotated queries. */
static bf16s ends_of(const query_case &c, const bf16s &q)
{
    bf16s want((size_t)(3 * query_case::HEADS * c.width), 0xeeee); /* what is before stays */
    for (int i = 0; i < 3 * query_case::HEADS; i++)
        for (int j = c.kv_lora; j < c.width; j++)
            want[(size_t)(i * c.width + j)] =
                j < c.kv_lora + c.rope ? q[(size_t)(i * (c.nope + c.rope) + c.nope + j - c.kv_lora)]
                                       : (uint16_t)0;
    return want;
}

FM_TEST(queries_in_the_latent_space_end_with_their_rotated_part)
{
    query_case wide(128, 64, 512, 576, 1), padded(8, 16, 32, 64, 1), odd(6, 10, 14, 32, 1),
        halves(8, 16, 32, 48, 0);
    for (query_case *c : {&wide, &padded, &odd, &halves}) {
        FM_CHECK(fm_cuda_rope(&c->a, NULL) == FM_OK);
        FM_CHECK_EQUAL(c->latent.host(), ends_of(*c, c->q.host()));
    }
}

FM_TEST(slots_follow_the_page_table)
{
    const ints               page = {5, 2, -1, 9, 0, 1}; /* two tables of three pages */
    const ints               pos = {0, 6, 7, 13, 14, 20, 21, -1}, table = {0, 0, 0, 0, 0, 1, 1, 1};
    fm_device<int32_t>       dpage(page), dpos(pos), dtable(table), slot(pos.size());
    const fm_cuda_slots_args a = {
        slot.data(), dpos.data(), dtable.data(), dpage.data(), (int)pos.size(), 7, 3};
    FM_CHECK(fm_cuda_slots(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(slot.host(), (ints{35, 41, 14, 20, -1, 1 * 7 + 6, -1, -1}));
}

namespace
{
struct token_case {
    int        kv_lora, rope, width, interleaved;
    ints       pos, slot;
    floats     ckv, norm;
    rope_table table;
    int        n() const
    {
        return (int)pos.size();
    }
    token_case(int kv_lora_, int rope_, int width_, int interleaved_)
        : kv_lora(kv_lora_), rope(rope_), width(width_),
          interleaved(interleaved_), pos{3, 39, 0, 12}, slot{15, 0, -1, 16}, table(rope_)
    {
        fm_numbers r(9);
        ckv  = r.floats((size_t)(n() * (kv_lora + rope)), -5, 5);
        norm = r.floats((size_t)kv_lora, 0.5f, 1.5f);
    }
    /* what the CPU would cache for row i, in f32 */
    floats right(int i) const
    {
        floats       v((size_t)width, 0.0f), key(ckv.begin() + i * (kv_lora + rope) + kv_lora,
                                                 ckv.begin() + (i + 1) * (kv_lora + rope));
        const size_t at = (size_t)pos[(size_t)i] * (size_t)(rope / 2);
        right_rmsnorm_f32(v.data(), &ckv[(size_t)(i * (kv_lora + rope))], norm.data(), 1e-6f,
                          kv_lora);
        right_rotate(key.data(), &table.cos[at], &table.sin[at], rope, interleaved);
        for (int j = 0; j < rope; j++) v[(size_t)(kv_lora + j)] = key[(size_t)j];
        return v;
    }
};
} // namespace

namespace
{
struct on_device {
    fm_device<float>      ckv, norm, cos, sin;
    fm_device<int32_t>    pos, slot;
    fm_cuda_store_kv_args a;
    explicit on_device(const token_case &c)
        : ckv(c.ckv), norm(c.norm), cos(c.table.cos), sin(c.table.sin), pos(c.pos), slot(c.slot),
          a()
    {
        a.ckv = ckv.data(), a.norm = norm.data(), a.cos = cos.data(), a.sin = sin.data();
        a.pos = pos.data(), a.slot = slot.data(), a.eps = 1e-6f;
        a.n_row = c.n(), a.kv_lora = c.kv_lora, a.rope = c.rope, a.width = c.width,
        a.interleaved = c.interleaved;
    }
};
} // namespace

enum { SLOTS = 17 };

static void check_store(const token_case &c)
{
    on_device           d(c);
    fm_device<uint16_t> cache((size_t)(SLOTS * c.width), 0xee);
    d.a.cache = cache.data();
    FM_CHECK(fm_cuda_store_kv(&d.a, NULL) == FM_OK);
    const bf16s got = cache.host();
    bf16s       rest(got);
    int         wrong = 0;
    for (int i = 0; i < c.n(); i++) {
        if (c.slot[(size_t)i] < 0) continue;
        const floats want = c.right(i);
        for (int j = 0; j < c.width; j++) {
            const size_t at    = (size_t)(c.slot[(size_t)i] * c.width + j);
            const float  slack = j < c.kv_lora ? fabsf(want[(size_t)j]) * 4e-7f : 0;
            const float  x     = fm_f32_of_bf16(got[at]);
            wrong += !(x >= fm_f32_of_bf16(fm_bf16_of_f32(want[(size_t)j] - slack)) &&
                       x <= fm_f32_of_bf16(fm_bf16_of_f32(want[(size_t)j] + slack)));
            rest[at] = 0xeeee;
        }
    }
    FM_CHECK(wrong == 0);
    FM_CHECK_EQUAL(rest, bf16s(rest.size(), 0xeeee)); /* no other slot was touched */
}

FM_TEST(tokens_are_stored_in_their_slots)
{
    check_store(token_case(512, 64, 576, 1));
    check_store(token_case(512, 64, 576, 0));
    check_store(token_case(96, 10, 128, 1));
    check_store(token_case(1024, 64, 1088, 1)); /* wider than any model's */
    check_store(token_case(2, 2, 32, 0));
}

/* One launch for the usual widths, two for others: the same bytes as alone. */
FM_TEST(queries_are_rotated_and_tokens_stored_at_once)
{
    for (int usual : {1, 0}) {
        query_case          alone(128, 64, 512, 576, usual), both(128, 64, 512, 576, usual);
        on_device           d(token_case(512, 64, 576, usual));
        fm_device<uint16_t> apart((size_t)(SLOTS * 576), 0xee), cache((size_t)(SLOTS * 576), 0xee);
        d.a.cache = apart.data();
        FM_CHECK(fm_cuda_rope(&alone.a, NULL) == FM_OK);
        FM_CHECK(fm_cuda_store_kv(&d.a, NULL) == FM_OK);
        d.a.cache = cache.data();
        FM_CHECK(fm_cuda_rope_and_store(&both.a, &d.a, NULL) == FM_OK);
        FM_CHECK_EQUAL(both.q.host(), alone.q.host());
        FM_CHECK_EQUAL(both.latent.host(), alone.latent.host());
        FM_CHECK_EQUAL(cache.host(), apart.host());
    }
}

static int wrong_bytes(const std::vector<uint8_t> &got, const floats &want, size_t at, float scale)
{
    int wrong = 0;
    for (size_t j = 0; j < want.size(); j++) {
        const float x = fm_f32_of_fp8(got[at + j]) * scale, y = want[j];
        /* half a step of e4m3: 2^-4 of the value, or half the smallest step */
        wrong += !(fabsf(x - y) <= fmaxf(fabsf(y) * (0x1p-4f + 1e-6f), 0x1p-10f * scale));
    }
    return wrong;
}

FM_TEST(tokens_are_stored_in_8_bits)
{
    token_case         c(512, 64, 576, 1);
    on_device          d(c);
    fm_device<uint8_t> fixed((size_t)(SLOTS * c.width), 0xee), own((size_t)(SLOTS * c.width), 0xee);
    fm_device<float>   scale(SLOTS);
    d.a.e4m3 = 1, d.a.scale = 0.5f, d.a.cache = fixed.data();
    FM_CHECK(fm_cuda_store_kv(&d.a, NULL) == FM_OK);
    d.a.cache = own.data(), d.a.slot_scale = scale.data();
    FM_CHECK(fm_cuda_store_kv(&d.a, NULL) == FM_OK);
    const std::vector<uint8_t> f = fixed.host(), o = own.host();
    const floats               s = scale.host();
    for (int i = 0; i < c.n(); i++) {
        if (c.slot[(size_t)i] < 0) continue;
        const floats want = c.right(i);
        const size_t slot = (size_t)c.slot[(size_t)i], at = slot * (size_t)c.width;
        float        most = 0;
        for (const float x : want) most = fmaxf(most, fabsf(x));
        FM_CHECK(fabsf(s[slot] * 448 - most) <= most * 1e-6f);
        FM_CHECK(wrong_bytes(f, want, at, 0.5f) == 0);
        FM_CHECK(wrong_bytes(o, want, at, s[slot]) == 0);
    }
    FM_CHECK(f[1 * (size_t)c.width] == 0xee && isnan(s[1]));
}

FM_TEST(a_token_of_zeros_has_a_scale)
{
    token_case c(32, 32, 64, 1);
    c.ckv.assign(c.ckv.size(), 0.0f);
    on_device          d(c);
    fm_device<uint8_t> cache((size_t)(SLOTS * c.width), 0xee);
    fm_device<float>   scale(SLOTS);
    d.a.e4m3 = 1, d.a.cache = cache.data(), d.a.slot_scale = scale.data();
    FM_CHECK(fm_cuda_store_kv(&d.a, NULL) == FM_OK);
    FM_CHECK(scale.host()[15] == 1.0f && cache.host()[15 * 64] == 0);
}

FM_TEST(a_token_too_wide_is_refused)
{
    fm_cuda_store_kv_args a = {};
    a.kv_lora = 2048, a.rope = 64, a.width = 2112, a.n_row = 1;
    FM_CHECK(fm_cuda_store_kv(&a, NULL) == FM_E_NOSUP);
}
