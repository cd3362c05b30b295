/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form against a loop in double precision, and its promise that a
 * row's bits are its own. */
#include "attention/mla.h"

#include "llm/kernel/cuda/attention/mla.h"

/* Rows with their own sequences, cached in shuffled pages.  What no row may see
 * is NaN: the first page, and the slots behind a sequence's end. */
struct absorbed_scene {
    int   n_head, kv_lora, rope, page_size, part;
    float scale = 0.05f, most_q = 1;
    int   e4m3 = 0, slot_scales = 0, n_sm = 3, max_unit = 0, seed = 1;
    int   few = 0; /* the kernels for few units */

    std::vector<int32_t> n_key, table, page;
    bf16s                q, latent;      /* as the kernel sees them, e4m3 widened and scaled */
    std::vector<uint8_t> bytes;
    std::vector<float>   slot_scale;
    int                  width, max_page;
    mutable bf16s              part_z;   /* what the last run left, in f16 */
    mutable std::vector<float> part_sum;

    absorbed_scene(int heads, int lora, int rope_, int page_size_, int part_,
                   std::vector<int32_t> keys)
        : n_head(heads), kv_lora(lora), rope(rope_), page_size(page_size_), part(part_), n_key(keys)
    {
    }
    void fill();
    bf16s run(std::vector<int> rows) const;
    void check(const char *file, int line, const char *what) const;
    int  slot(int row, int pos) const
    {
        return page[(size_t)(table[(size_t)row] * max_page + pos / page_size)] * page_size +
               pos % page_size;
    }
    float value(int at, int col) const
    {
        const float x = fm_f32_of_bf16(latent[(size_t)at * (size_t)width + (size_t)col]);
        return e4m3 ? x * slot_scale[(size_t)at] : x;
    }
};

void absorbed_scene::fill()
{
    fm_numbers r((uint64_t)seed);
    const int  n = (int)n_key.size();
    int        longest = 1;
    for (int k : n_key) longest = k > longest ? k : longest;
    width    = (kv_lora + rope + 31) / 32 * 32;
    max_page = (longest + page_size - 1) / page_size;
    page     = shuffled(r, n * max_page);
    table    = shuffled(r, n);
    for (int32_t &p : page) p++;
    const size_t slots = (size_t)((n * max_page + 1) * page_size);
    q      = random_bf16(r, (size_t)(n * n_head * width), most_q);
    latent = random_bf16(r, slots * (size_t)width, 1);
    for (size_t i = 0; i < (size_t)(n * n_head); i++)
        for (int c = kv_lora + rope; c < width; c++) q[i * (size_t)width + (size_t)c] = 0;
    std::vector<bool> seen(slots);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n_key[(size_t)i]; k++) seen[(size_t)slot(i, k)] = true;
    for (size_t i = 0; i < latent.size(); i++)
        if (!seen[i / (size_t)width]) latent[i] = 0x7fc0;
    if (!e4m3) return;
    bytes.resize(latent.size());
    for (size_t i = 0; i < latent.size(); i++) {
        do bytes[i] = (uint8_t)r.u32();
        while ((bytes[i] & 0x7f) == 0x7f); /* NaN */
        latent[i] = fm_bf16_of_f32(fm_f32_of_fp8(bytes[i]));
    }
    slot_scale.assign(slots, 0.0078125f);
    for (size_t i = 0; slot_scales && i < slots; i++)
        slot_scale[i] = seen[i] ? r.between(0.001f, 0.01f) : NAN;
}

/* The answers of some rows, computed together in this order. */
bf16s absorbed_scene::run(std::vector<int> rows) const
{
    const int            n = (int)rows.size();
    const size_t         row_q = (size_t)(n_head * width);
    std::vector<int32_t> keys, tables;
    bf16s                queries;
    int                  units = 0;
    for (int i : rows) {
        keys.push_back(n_key[(size_t)i]);
        tables.push_back(table[(size_t)i]);
        queries.insert(queries.end(), q.begin() + (long)(row_q * (size_t)i),
                       q.begin() + (long)(row_q * (size_t)(i + 1)));
        units += fm_mla_parts(n_key[(size_t)i], part);
    }
    if (max_unit) units = max_unit;
    fm_device<int32_t>     d_n(std::vector<int32_t>{n}), d_key(keys), d_table(tables), d_page(page);
    fm_device<int32_t>     d_unit0((size_t)n + 2);
    fm_device<fm_mla_unit> d_unit((size_t)units);
    fm_device<uint16_t>    d_q(queries), d_latent(latent), d_z((size_t)(n * n_head * kv_lora));
    fm_device<uint8_t>     d_bytes(bytes);
    fm_device<float>       d_scale(slot_scale);
    fm_device<uint16_t>    d_part((size_t)(units * n_head * kv_lora));
    fm_device<float>       d_sum((size_t)(units * n_head * 2));
    const int              n_done = units * FM_MLA_SLICES * ((n_head + 15) / 16);
    fm_device<int32_t>     d_done((size_t)n_done);
    fm_device<float>       d_score((size_t)(units * n_head * fm_mla_last_max(part)));

    fm_mla_absorbed_args a = {};
    a.rows  = {n, units, part, d_n.data(), d_key.data(), d_table.data(), d_unit0.data(),
               d_unit.data(), d_done.data(), n_done};
    a.cache = {e4m3 ? (void *)d_bytes.data() : (void *)d_latent.data(),
               e4m3,
               e4m3 ? slot_scale[0] : 0,
               slot_scales ? d_scale.data() : NULL,
               width,
               page_size,
               d_page.data(),
               max_page};
    a.n_head = n_head, a.kv_lora = kv_lora, a.scale = scale, a.n_sm = n_sm;
    a.q = d_q.data(), a.part_z = d_part.data(), a.part_sum = d_sum.data(), a.z = d_z.data();
    a.few = few, a.score = d_score.data();
    FM_CHECK(fm_cuda_mla_init() == FM_OK);
    FM_CHECK(fm_cuda_mla_plan(&a.rows, NULL) == FM_OK);
    FM_CHECK(fm_cuda_mla_absorbed(&a, NULL) == FM_OK);
    FM_CHECK(fm_cuda_mla_absorbed(&a, NULL) == FM_OK); /* the next layer counts from zero again */
    part_z = d_part.host(), part_sum = d_sum.host();
    return d_z.host();
}

static std::vector<int> all_rows(const absorbed_scene &s)
{
    std::vector<int> v;
    for (int i = 0; i < (int)s.n_key.size(); i++) v.push_back(i);
    return v;
}

/* Both ways, where there are two, and the first against the definition. */
void absorbed_scene::check(const char *file, int line, const char *what) const
{
    const bf16s z = run(all_rows(*this));
    absorbed_scene cut = *this;
    cut.few            = part <= FM_MLA_FEW_PART;
    if (cut.run(all_rows(*this)) != z)
        fm_check_failed(file, line, "%s: other bits where there are few parts", what);
    for (int i = 0; i < (int)n_key.size(); i++)
        for (int h = 0; h < n_head; h++) {
            const size_t    at = (size_t)(i * n_head + h);
            const uint16_t *qh = &q[at * (size_t)width];
            const exact_row want = attend_exactly(
                n_key[(size_t)i], width, kv_lora, scale,
                [&](int c) { return fm_f32_of_bf16(qh[c]); },
                [&](int k, int c) { return value(slot(i, k), c); },
                [&](int k, int c) { return value(slot(i, k), c); });
            check_row(file, line, &z[at * (size_t)kv_lora], want, what, i, h);
        }
}

#define CHECK_SCENE(s, what) ((s).fill(), (s).check(__FILE__, __LINE__, what))

FM_TEST(absorbed_numbers_of_keys_around_blocks_and_parts)
{
    absorbed_scene s(16, 512, 64, 16, 64, {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257});
    CHECK_SCENE(s, "lengths");
}

FM_TEST(absorbed_long_parts)
{
    absorbed_scene s(4, 512, 64, 64, 512, {511, 513, 767, 768, 769, 1030});
    CHECK_SCENE(s, "parts of 512");
}

FM_TEST(absorbed_parts_beyond_512)
{
    for (int e4m3 : {0, 1}) {
        absorbed_scene ring(4, 512, 64, 64, 4096, {6145, 4097}), wide(64, 512, 64, 16, 1024, {1537, 700});
        ring.e4m3 = wide.e4m3 = e4m3, ring.scale = wide.scale = 0.02f;
        CHECK_SCENE(ring, "parts of 4096");
        CHECK_SCENE(wide, "parts of 1024");
    }
}

/* Parts are merged eight at a time; and no thread is left over by narrow rows. */
FM_TEST(absorbed_more_parts_than_come_at_once)
{
    for (int lora : {48, 512})
        for (int heads : {3, 40}) {
            absorbed_scene s(heads, lora, 64, 16, 64, {8 * 64, 9 * 64, 17 * 64 + 40});
            CHECK_SCENE(s, "many parts");
        }
}

/* Up to half a part is taken along by the last one. */
FM_TEST(absorbed_tails_of_rows)
{
    for (int heads : {3, 33})
        for (int e4m3 : {0, 1}) {
            absorbed_scene s(heads, 512, 64, 16, 128, {129, 192, 193, 321});
            s.e4m3 = e4m3, s.scale = 0.02f;
            CHECK_SCENE(s, "tails");
        }
}

FM_TEST(absorbed_numbers_of_heads)
{
    for (int heads : {1, 2, 8, 17, 32, 33, 64, 128}) {
        absorbed_scene s(heads, 512, 64, 16, 64, {heads < 64 ? 70 : 40});
        CHECK_SCENE(s, "heads");
    }
}

FM_TEST(absorbed_page_sizes)
{
    for (int page_size : {1, 3, 16, 64}) {
        absorbed_scene s(2, 512, 64, page_size, 64, {100, 7, 193});
        CHECK_SCENE(s, "page size");
    }
}

FM_TEST(absorbed_other_widths)
{
    const int shape[][2] = {{128, 32}, {32, 16}, {512, 32}, {256, 64}, {48, 0}, {480, 96}};
    for (auto &w : shape)
        for (int heads : {4, 40}) {
            absorbed_scene s(heads, w[0], w[1], 5, 64, {1, 97});
            CHECK_SCENE(s, "width");
        }
}

/* Weights from nearly equal to a single one, and sums that must shrink often. */
FM_TEST(absorbed_ranges_of_scores)
{
    for (float most : {1e-4f, 1.0f, 64.0f, 1e4f})
        for (int heads : {16, 40}) {
            absorbed_scene s(heads, 512, 64, 16, 256, {200, 3, 350});
            s.most_q = most;
            CHECK_SCENE(s, "range");
        }
}

/* Every score rises from key to key by much: the last key has all the weight. */
FM_TEST(absorbed_rising_scores)
{
    absorbed_scene s(16, 512, 64, 16, 64, {150});
    s.fill();
    for (uint16_t &x : s.q) x = 0;
    for (int h = 0; h < 16; h++) s.q[(size_t)(h * s.width + 575)] = fm_bf16_of_f32(1e6f);
    for (int k = 0; k < 150; k++)
        s.latent[(size_t)(s.slot(0, k) * s.width + 575)] = fm_bf16_of_f32((float)k - 200);
    s.check(__FILE__, __LINE__, "rising");
}

FM_TEST(absorbed_8_bit_cache)
{
    for (int slot_scales : {0, 1})
        for (int heads : {4, 40}) {
            absorbed_scene s(heads, 512, 64, 7, 64, {1, 33, 100});
            s.e4m3 = 1, s.slot_scales = slot_scales, s.scale = 0.02f;
            CHECK_SCENE(s, "e4m3");
        }
}

/* Queries follow keys in the ring, behind as many blocks as a part has. */
FM_TEST(absorbed_8_bit_cache_one_block_takes_all)
{
    for (int part : {64, 128, 192, 256, 512})
        for (int heads : {2, 40}) {
            absorbed_scene s(heads, 512, 64, 16, part, {129, part + 70});
            s.e4m3 = 1, s.scale = 0.02f, s.n_sm = 1;
            CHECK_SCENE(s, "parts one after the other");
        }
}

FM_TEST(absorbed_8_bit_cache_of_other_widths)
{
    const int shape[][2] = {{96, 32}, {32, 0}, {480, 96}, {512, 32}};
    for (auto &w : shape)
        for (int heads : {2, 40}) {
            absorbed_scene s(heads, w[0], w[1], 7, 128, {40, 300, 1, 65});
            s.e4m3 = 1, s.slot_scales = heads > 16, s.scale = 0.02f, s.n_sm = heads > 16 ? 3 : 1;
            CHECK_SCENE(s, "e4m3 of another width");
        }
}

/* --- a row's bits are its own -------------------------------------------------- */

static bf16s row_of(const absorbed_scene &s, const bf16s &z, int i)
{
    const long n = s.n_head * s.kv_lora;
    return bf16s(z.begin() + i * n, z.begin() + (i + 1) * n);
}

FM_TEST(absorbed_rows_alone_and_in_company)
{
    absorbed_scene s(8, 512, 64, 16, 64, {65, 1, 190, 64, 33});
    s.fill();
    const bf16s together = s.run({0, 1, 2, 3, 4}), turned = s.run({4, 3, 2, 1, 0});
    s.n_sm = 1;
    for (int i = 0; i < 5; i++) {
        FM_CHECK_EQUAL(s.run({i}), row_of(s, together, i));
        FM_CHECK_EQUAL(row_of(s, turned, 4 - i), row_of(s, together, i));
    }
}

FM_TEST(absorbed_pages_move_no_bit)
{
    absorbed_scene a(4, 128, 32, 16, 64, {150}), b(4, 128, 32, 3, 64, {150});
    a.fill(), b.fill();
    b.q = a.q;
    for (int k = 0; k < 150; k++)
        memcpy(&b.latent[(size_t)(b.slot(0, k) * b.width)],
               &a.latent[(size_t)(a.slot(0, k) * a.width)], (size_t)a.width * 2);
    FM_CHECK_EQUAL(b.run({0}), a.run({0}));
}

/* The columns of 16 heads out of 48, unit by unit. */
template <class T>
static std::vector<T> some_heads(const std::vector<T> &x, int head0, int columns)
{
    std::vector<T> v;
    for (size_t unit = 0; unit < x.size() / (size_t)(48 * columns); unit++)
        for (int i = 0; i < 16 * columns; i++)
            v.push_back(x[(unit * 48 + (size_t)head0) * (size_t)columns + (size_t)i]);
    return v;
}

/* Few heads and many take different kernels; under tensor parallelism a head
 * may meet either. */
FM_TEST(absorbed_heads_alone_and_in_company)
{
    const int length[][2] = {{192, 300}, {1024, 1600}}; /* of a part and the row */
    for (int i = 0; i < 4; i++) {
        const int      e4m3 = i % 2, part = length[i / 2][0], keys = length[i / 2][1];
        absorbed_scene many(48, 512, 64, 16, part, {keys}), few(16, 512, 64, 16, part, {keys});
        many.e4m3 = few.e4m3 = e4m3;
        many.fill(), few.fill();
        few.page = many.page, few.latent = many.latent, few.bytes = many.bytes;
        const bf16s z = many.run({0});
        for (int h = 0; h < 48; h += 16) {
            few.q = bf16s(many.q.begin() + h * 576, many.q.begin() + (h + 16) * 576);
            FM_CHECK_EQUAL(few.run({0}), bf16s(z.begin() + h * 512, z.begin() + (h + 16) * 512));
            FM_CHECK_EQUAL(few.part_z, some_heads(many.part_z, h, 512));
            FM_CHECK_EQUAL(few.part_sum, some_heads(many.part_sum, h, 2));
        }
    }
}

/* Blocks of keys go round between two warpgroups, whatever the parts' numbers of them;
 * one thread block takes all parts, or several share them.  Pages of 8 and 16 hold whole
 * boxes of keys; more than 64 heads have them come to two thread blocks at once. */
FM_TEST(absorbed_many_heads_of_odd_numbers_of_blocks)
{
    for (int e4m3 : {0, 1}) {
        absorbed_scene s(72, 512, 64, 3, 64, {1, 100, 64});
        s.e4m3 = e4m3, s.slot_scales = e4m3, s.scale = 0.02f, s.n_sm = 1 + e4m3;
        CHECK_SCENE(s, "parts of one and two blocks");
        absorbed_scene l(40, 512, 64, 16, 192, {150, 63, 300});
        l.e4m3 = e4m3, l.scale = 0.02f, l.n_sm = 2 - e4m3;
        CHECK_SCENE(l, "parts of one, three and five");
    }
    for (int e4m3 : {0, 1}) {
        absorbed_scene b(72, 512, 64, 8, 64, {1, 100, 64});
        b.e4m3 = e4m3, b.slot_scales = e4m3, b.scale = 0.02f, b.n_sm = 2;
        CHECK_SCENE(b, "boxes of 8");
    }
}

/* --- lists that are not full, or too short ----------------------------------------- */

FM_TEST(absorbed_rows_that_are_not_there)
{
    absorbed_scene s(4, 128, 32, 16, 64, {70, 0, 5});
    s.fill();
    const bf16s z = s.run({0, 1, 2});
    FM_CHECK_EQUAL(row_of(s, z, 1), bf16s(4 * 128, 0xffff));
    FM_CHECK_EQUAL(row_of(s, z, 2), s.run({2}));
    s.few = 1;
    FM_CHECK_EQUAL(s.run({0, 1, 2}), z);
}

FM_TEST(absorbed_too_many_units)
{
    absorbed_scene s(4, 128, 32, 16, 64, {70, 200, 5});
    s.fill();
    const bf16s whole = s.run({0, 1, 2});
    s.max_unit        = 4; /* of 2 + 4 + 1 */
    const bf16s z     = s.run({0, 1, 2});
    FM_CHECK_EQUAL(row_of(s, z, 0), row_of(s, whole, 0));
    FM_CHECK_EQUAL(row_of(s, z, 1), bf16s(4 * 128, 0xffff));
}

/* The last one has up to 64 keys more. */
static int parts_of_128(int n_key)
{
    int n = 0;
    for (int at = 0; at < n_key; n++) at = n_key - at <= 192 ? n_key : at + 128;
    return n;
}

FM_TEST(absorbed_plan_of_many_rows)
{
    fm_numbers             r(5);
    std::vector<int32_t>   keys;
    std::vector<int32_t>   unit0;
    int                    n_unit = 0, n_several = 0;
    for (int i = 0; i < 700; i++) {
        keys.push_back(r.below(600));
        unit0.push_back(n_unit);
        n_unit += parts_of_128(keys.back());
        n_several += keys.back() > 192;
    }
    unit0.push_back(n_unit);
    unit0.push_back(n_several);
    fm_device<int32_t>     d_n(std::vector<int32_t>{700}), d_key(keys), d_unit0(702), d_done(5);
    fm_device<fm_mla_unit> d_unit((size_t)n_unit);
    std::vector<int32_t>   table;
    for (int i = 0; i < 700; i++) table.push_back(1000 - i);
    fm_device<int32_t>     d_table(table);
    const fm_mla_rows      a = {700,
                                n_unit,
                                128,
                                d_n.data(),
                                d_key.data(),
                                d_table.data(),
                                d_unit0.data(),
                                d_unit.data(),
                                d_done.data(),
                                5};
    FM_CHECK(fm_cuda_mla_plan(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(d_unit0.host(), unit0);
    const std::vector<fm_mla_unit> unit = d_unit.host();
    for (int i = 0; i < 700; i++)
        for (int k = unit0[(size_t)i]; k < unit0[(size_t)i + 1]; k++)
            FM_CHECK(unit[(size_t)k].row == i && unit[(size_t)k].part == k - unit0[(size_t)i] &&
                     unit[(size_t)k].n_key == keys[(size_t)i] && unit[(size_t)k].table == 1000 - i);
    FM_CHECK_EQUAL(d_done.host(), std::vector<int32_t>(5, 0));
}

FM_TEST(absorbed_refuses_what_no_kernel_takes)
{
    fm_mla_absorbed_args good = {};
    good.rows.part = 256, good.cache.width = 576, good.cache.page_size = 16;
    good.n_head = 16, good.kv_lora = 512, good.scale = 1, good.n_sm = 1;
    FM_CHECK(fm_cuda_mla_absorbed(&good, NULL) == FM_OK); /* no rows: nothing to do */
    fm_mla_absorbed_args bad[7] = {good, good, good, good, good, good, good};
    bad[0].kv_lora = 1024, bad[1].cache.width = 608, bad[2].cache.width = 570,
    bad[3].rows.part = 100;
    bad[4].rows.part = 8192, bad[5].cache.page_size = 0;
    bad[6].rows.part = 1024, bad[6].few = 1;
    for (const fm_mla_absorbed_args &a : bad)
        FM_CHECK(fm_cuda_mla_absorbed(&a, NULL) == FM_E_NOSUP);
    FM_CHECK(fm_cuda_mla_plan(&bad[3].rows, NULL) == FM_E_NOSUP);
}
