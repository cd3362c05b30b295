/* SPDX-License-Identifier: Apache-2.0 */
/* The expanded form against a loop in double precision; and that neither the
 * cut into chunks, nor cached prefixes, nor passes, nor company move a bit. */
#include "attention/mla.h"

#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/attention/mla_internal.h"

/* Sequences with their queries, latents in shuffled pages, and keys and values
 * as an expansion would leave them. */
struct expanded_scene {
    int   n_head, nope, rope, v_dim;
    int   kv_lora = 32, page_size = 16, e4m3 = 0, n_seq, longest;
    float scale = 0.1f, most_q = 1;
    int   width, max_page, seed = 1;

    std::vector<int32_t> page;   /* [n_seq, max_page] */
    bf16s                q;      /* [n_seq, longest, n_head, nope + rope] */
    bf16s                kv;     /* [n_seq, longest, n_head, nope + v_dim] */
    bf16s                latent; /* [slots, width] */
    std::vector<uint8_t> bytes;
    std::vector<float>   slot_scale;

    expanded_scene(int heads, int nope_, int rope_, int v_dim_, int n_seq_, int longest_)
        : n_head(heads), nope(nope_), rope(rope_), v_dim(v_dim_), n_seq(n_seq_), longest(longest_)
    {
    }
    void   fill();
    size_t slot(int seq, int pos) const
    {
        return (size_t)(page[(size_t)(seq * max_page + pos / page_size)] * page_size +
                        pos % page_size);
    }
    float latent_at(int seq, int pos, int col) const
    {
        const size_t at = slot(seq, pos), i = at * (size_t)width + (size_t)col;
        return e4m3 ? fm_f32_of_bf16(fm_bf16_of_f32(fm_f32_of_fp8(bytes[i]) * slot_scale[at]))
                    : fm_f32_of_bf16(latent[i]);
    }
};

void expanded_scene::fill()
{
    fm_numbers r((uint64_t)seed);
    width    = (kv_lora + rope + 31) / 32 * 32;
    max_page = (longest + page_size - 1) / page_size;
    page     = shuffled(r, n_seq * max_page);
    const size_t slots  = page.size() * (size_t)page_size,
                 tokens = (size_t)(n_seq * longest * n_head);
    q      = random_bf16(r, tokens * (size_t)(nope + rope), most_q);
    kv     = random_bf16(r, tokens * (size_t)(nope + v_dim), 1);
    latent = random_bf16(r, slots * (size_t)width, 1);
    if (!e4m3) return;
    bytes.resize(latent.size());
    for (uint8_t &b : bytes) b = (uint8_t)(r.u32() & 0xf7);
    slot_scale = r.floats(slots, 0.001f, 0.01f);
}

/* Rows pos0 .. pos0+n of a sequence; where they are in the batch follows from the order. */
struct piece {
    int seq, pos0, n;
};

typedef fm_status attend_fn(const fm_mla_expanded_args *a, fm_stream stream);

/* The answers of all pieces, computed together, the keys in passes of `pass`. */
static bf16s run(const expanded_scene &s, const std::vector<piece> &pieces, int pass = 1 << 20,
                 attend_fn *attend = fm_cuda_mla_expanded)
{
    const size_t row_q  = (size_t)(s.n_head * (s.nope + s.rope)),
                 row_kv = (size_t)(s.n_head * (s.nope + s.v_dim));
    std::vector<fm_mla_span> span;
    bf16s                    q;
    int                      n_row = 0, n_tile = 0, n_key = 0, all_keys = 0;
    for (const piece &p : pieces) {
        span.push_back({n_row, p.n, p.pos0, p.seq});
        const long at = (long)row_q * (p.seq * s.longest + p.pos0);
        q.insert(q.end(), s.q.begin() + at, s.q.begin() + at + (long)row_q * p.n);
        n_row += p.n;
        n_tile += (p.n + FM_MLA_TILE_ROWS - 1) / FM_MLA_TILE_ROWS;
        n_key = p.pos0 + p.n > n_key ? p.pos0 + p.n : n_key;
        all_keys += p.pos0 + p.n;
    }
    const size_t             rows = (size_t)(n_row * s.n_head), n_span = span.size();
    fm_device<int32_t>       d_n(std::vector<int32_t>{(int32_t)n_span}), d_page(s.page),
        d_key0(n_span + 1), d_n_tile(1);
    fm_device<fm_mla_span>   d_span(span);
    fm_device<fm_mla_tile>   d_tile((size_t)n_tile);
    fm_device<uint16_t>      d_q(q), d_cache(s.latent), d_latent((size_t)(all_keys * s.width));
    fm_device<uint16_t>      d_o(rows * (size_t)s.v_dim);
    fm_device<uint8_t>       d_bytes(s.bytes);
    fm_device<float> d_scale(s.slot_scale), d_state(rows * (size_t)s.v_dim), d_sum(rows * 5);

    fm_mla_expanded_args a = {};
    a.spans                = {(int)n_span, n_tile,        d_n.data(),      d_span.data(), 0,
                              0,           d_key0.data(), d_n_tile.data(), d_tile.data()};
    a.n_head = s.n_head, a.nope = s.nope, a.rope = s.rope, a.v_dim = s.v_dim, a.scale = s.scale;
    a.q = d_q.data(), a.o = d_o.data(), a.key_rope = d_latent.data() + s.kv_lora,
    a.rope_stride = s.width;
    a.key_stride = (int)row_kv, a.head_stride = s.nope + s.v_dim;
    if (pass < n_key) a.state_o = d_state.data(), a.state_sum = d_sum.data();
    FM_CHECK(fm_cuda_mla_init() == FM_OK);
    for (int begin = 0; begin < n_key; begin += pass) {
        a.spans.key_begin = begin, a.spans.key_end = begin + pass;
        bf16s kv; /* what the expansion of this pass's latents would be */
        for (const piece &p : pieces)
            for (int k = begin; k < p.pos0 + p.n && k < begin + pass; k++) {
                const long at = (long)row_kv * (p.seq * s.longest + k);
                kv.insert(kv.end(), s.kv.begin() + at, s.kv.begin() + at + (long)row_kv);
            }
        fm_device<uint16_t> d_kv(kv);
        a.key = d_kv.data(), a.value = d_kv.data() + s.nope;
        fm_mla_gather_args g = {};
        g.spans = a.spans, g.max_key = all_keys, g.latent = d_latent.data();
        g.cache = {s.e4m3 ? (void *)d_bytes.data() : (void *)d_cache.data(), s.e4m3, 0,
                   s.e4m3 ? d_scale.data() : NULL, s.width, s.page_size, d_page.data(), s.max_page};
        FM_CHECK(fm_cuda_mla_tiles(&a.spans, NULL) == FM_OK);
        FM_CHECK(fm_cuda_mla_gather(&g, NULL) == FM_OK);
        FM_CHECK(attend(&a, NULL) == FM_OK);
        (void)d_o.host(); /* before d_kv goes */
    }
    return d_o.host();
}

static void check(const char *file, int line, const expanded_scene &s,
                  const std::vector<piece> &pieces, const char *what)
{
    const bf16s o   = run(s, pieces);
    int         row = 0;
    for (const piece &p : pieces)
        for (int i = 0; i < p.n; i++, row++)
            for (int h = 0; h < s.n_head; h++) {
                const int       pos = p.pos0 + i, qk = s.nope + s.rope;
                const uint16_t *q = &s.q[(size_t)(((p.seq * s.longest + pos) * s.n_head + h) * qk)];
                const uint16_t *kv =
                    &s.kv[(size_t)((p.seq * s.longest * s.n_head + h) * (s.nope + s.v_dim))];
                const size_t    step = (size_t)(s.n_head * (s.nope + s.v_dim));
                const exact_row want = attend_exactly(
                    pos + 1, qk, s.v_dim, s.scale, [&](int c) { return fm_f32_of_bf16(q[c]); },
                    [&](int k, int c) {
                        return c < s.nope ? fm_f32_of_bf16(kv[step * (size_t)k + (size_t)c])
                                          : s.latent_at(p.seq, k, s.kv_lora + c - s.nope);
                    },
                    [&](int k, int c) {
                        return fm_f32_of_bf16(kv[step * (size_t)k + (size_t)(s.nope + c)]);
                    });
                check_row(file, line, &o[(size_t)((row * s.n_head + h) * s.v_dim)], want, what, row,
                          h);
            }
}

#define CHECK_PIECES(s, what, ...) check(__FILE__, __LINE__, s, __VA_ARGS__, what)

FM_TEST(expanded_lengths_around_blocks_and_tiles)
{
    expanded_scene s(2, 128, 64, 128, 1, 130);
    s.fill();
    for (int n : {1, 15, 16, 63, 64, 65, 128, 130}) CHECK_PIECES(s, "length", {{0, 0, n}});
}

FM_TEST(expanded_cached_prefix)
{
    expanded_scene s(2, 128, 64, 128, 1, 260);
    s.fill();
    for (int pos0 : {1, 37, 64, 127, 250}) CHECK_PIECES(s, "prefix", {{0, pos0, 9}});
}

FM_TEST(expanded_ragged_spans)
{
    expanded_scene s(3, 128, 64, 128, 4, 150);
    s.page_size = 5;
    s.fill();
    CHECK_PIECES(s, "spans", {{2, 0, 70}, {0, 100, 1}, {3, 64, 66}, {1, 0, 150}});
}

FM_TEST(expanded_other_widths)
{
    const int shape[][3] = {{32, 16, 32}, {24, 8, 40}, {128, 64, 64},
                            {64, 0, 128}, {0, 24, 8},  {96, 32, 96}};
    for (auto &w : shape) {
        expanded_scene s(2, w[0], w[1], w[2], 1, 100);
        s.page_size = 1;
        s.fill();
        CHECK_PIECES(s, "width", {{0, 20, 75}});
    }
}

FM_TEST(expanded_ranges_of_scores)
{
    for (float most : {1e-4f, 1.0f, 64.0f, 1e4f}) {
        expanded_scene s(1, 128, 64, 128, 1, 140);
        s.most_q = most;
        s.fill();
        CHECK_PIECES(s, "range", {{0, 0, 140}});
    }
}

FM_TEST(expanded_8_bit_cache)
{
    expanded_scene s(2, 32, 64, 32, 1, 90);
    s.e4m3 = 1;
    s.fill();
    CHECK_PIECES(s, "e4m3", {{0, 0, 90}});
}

/* --- the same bits ---------------------------------------------------------------- */

static bf16s joined(const std::vector<bf16s> &parts)
{
    bf16s all;
    for (const bf16s &p : parts) all.insert(all.end(), p.begin(), p.end());
    return all;
}

FM_TEST(expanded_chunks_move_no_bit)
{
    expanded_scene s(2, 128, 64, 128, 1, 300);
    s.fill();
    const bf16s whole = run(s, {{0, 0, 300}});
    const int   cuts[][4] = {
          {64, 128, 192, 300}, {50, 77, 130, 300}, {1, 2, 299, 300}, {129, 200, 201, 300}};
    for (auto &cut : cuts) {
        std::vector<bf16s> chunks;
        for (int i = 0, from = 0; i < 4; from = cut[i++])
            chunks.push_back(run(s, {{0, from, cut[i] - from}}));
        FM_CHECK_EQUAL(joined(chunks), whole);
    }
}

FM_TEST(expanded_company_moves_no_bit)
{
    expanded_scene s(2, 128, 64, 128, 3, 140);
    s.fill();
    const std::vector<piece> pieces = {{0, 30, 110}, {1, 0, 33}, {2, 139, 1}};
    std::vector<bf16s>       alone;
    for (const piece &p : pieces) alone.push_back(run(s, {p}));
    FM_CHECK_EQUAL(run(s, pieces), joined(alone));
}

FM_TEST(expanded_passes_move_no_bit)
{
    expanded_scene s(2, 128, 64, 128, 3, 270);
    s.fill();
    const std::vector<piece> pieces = {{0, 0, 40}, {1, 7, 263}, {2, 128, 2}, {0, 190, 10}};
    const bf16s              whole = run(s, pieces);
    for (int pass : {64, 128, 192}) FM_CHECK_EQUAL(run(s, pieces, pass), whole);
}

static void check_agreement(int n_head, int longest, const std::vector<piece> &pieces, int pass)
{
    expanded_scene s(n_head, 128, 64, 128, 3, longest);
    s.most_q = 8;
    s.fill();
    FM_CHECK_EQUAL(run(s, pieces, pass, fm__mla_expanded_wide),
                   run(s, pieces, pass, fm__mla_expanded_any));
}

/* Two laps of the ring; more heads than run side by side, and tiles of which a
 * warpgroup has few rows, or none. */
FM_TEST(expanded_kernels_agree_in_every_bit)
{
    check_agreement(1, 800, {{0, 630, 170}, {1, 700, 3}}, 1 << 20);
    check_agreement(1, 800, {{0, 630, 170}, {1, 700, 65}}, 448);
    check_agreement(11, 170, {{0, 0, 64}, {2, 100, 65}, {1, 150, 3}}, 1 << 20);
}

/* Values of which whole columns are zero, of either sign, under scores that
 * drown each other: a result must not show in its sign which blocks were skipped. */
FM_TEST(expanded_zeros_have_one_sign)
{
    expanded_scene s(1, 128, 64, 128, 1, 200);
    s.most_q = 1e4f;
    s.fill();
    for (size_t i = 0; i < s.kv.size(); i++)
        if (i % 256 >= 192) s.kv[i] = i % 3 ? 0x8000 : 0;
    const bf16s whole = run(s, {{0, 0, 200}});
    FM_CHECK_EQUAL(joined({run(s, {{0, 0, 90}}), run(s, {{0, 90, 110}})}), whole);
}

/* --- lists ---------------------------------------------------------------------------- */

FM_TEST(expanded_tiles_of_many_spans)
{
    fm_numbers               r(3);
    std::vector<fm_mla_span> span;
    std::vector<int32_t>     key0;
    std::vector<fm_mla_tile> want;
    int                      n_key = 0;
    for (int i = 0; i < 300; i++) {
        const int n = r.below(400), pos0 = r.below(300),
                  keys = (pos0 + n < 256 ? pos0 + n : 256) - 128;
        span.push_back({0, n, pos0, 0});
        key0.push_back(n_key);
        if (n == 0 || keys <= 0) continue;
        n_key += keys;
        for (int t = (n - 1) / 128; t >= 0; t--) want.push_back({i, t * 128});
    }
    key0.push_back(n_key);
    fm_device<int32_t>     d_n(std::vector<int32_t>{300}), d_key0(301), d_n_tile(1);
    fm_device<fm_mla_span> d_span(span);
    fm_device<fm_mla_tile> d_tile(want.size());
    const fm_mla_spans     a = {300, (int)want.size(), d_n.data(),      d_span.data(), 128,
                                256, d_key0.data(),    d_n_tile.data(), d_tile.data()};
    FM_CHECK(fm_cuda_mla_tiles(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(d_key0.host(), key0);
    FM_CHECK(d_n_tile.host()[0] == (int)want.size());
    const std::vector<fm_mla_tile> got = d_tile.host();
    FM_CHECK(memcmp(got.data(), want.data(), want.size() * sizeof want[0]) == 0);
}

FM_TEST(expanded_refuses_what_no_kernel_takes)
{
    fm_mla_expanded_args good = {};
    good.n_head = 1, good.nope = 128, good.rope = 64, good.v_dim = 128, good.scale = 1;
    FM_CHECK(fm_cuda_mla_expanded(&good, NULL) == FM_OK); /* no tiles: nothing to do */
    fm_mla_expanded_args bad[5] = {good, good, good, good, good};
    bad[0].nope = 192, bad[1].v_dim = 192, bad[2].rope = 20, bad[3].key_stride = 4,
    bad[4].scale = 0;
    for (const fm_mla_expanded_args &a : bad)
        FM_CHECK(fm_cuda_mla_expanded(&a, NULL) == FM_E_NOSUP);
    good.spans.key_begin = 64;
    FM_CHECK(fm_cuda_mla_expanded(&good, NULL) == FM_E_ARG); /* and no state */
    good.spans.key_begin = 10;
    FM_CHECK(fm_cuda_mla_tiles(&good.spans, NULL) == FM_E_NOSUP);
}
