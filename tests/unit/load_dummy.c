/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "llm/load/config_read.h"
#include "llm/load/dummy.h"
#include "llm/load/model_path.h"
#include "llm/load/source.h"
#include "llm/load/weights_fill.h"

static fm_model_config shape(const char *overrides)
{
    fm_model_config c;
    const char     *text = fm_builtin_config("r1-mini");
    if (fm_config_parse(&c, text, strlen(text), "r1-mini", overrides) != FM_OK)
        fail_msg("%s", fm_why());
    return c;
}

static fm_source *open_dummy(const fm_model_config *c, uint64_t seed)
{
    fm_source *s = NULL;
    if (fm_source_open_dummy(&s, c, seed) != FM_OK) fail_msg("%s", fm_why());
    return s;
}

static fm_tensor find(const fm_source *s, const char *name)
{
    fm_tensor t;
    if (fm_source_find(s, name, &t) != FM_OK) fail_msg("%s", fm_why());
    return t;
}

static const char fp8_shape[] =
    "{\"num_hidden_layers\": 2, \"quantization_config\": {\"quant_method\": \"fp8\", "
    "\"weight_block_size\": [128, 128]}}";

static const char int4_shape[] =
    "{\"num_hidden_layers\": 2, \"quantization_config\": {\"quant_method\": "
    "\"compressed-tensors\", "
    "\"format\": \"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], "
    "\"weights\": {\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": "
    "\"group\", \"group_size\": 32}}}, \"ignore\": [\"lm_head\", \"re:.*self_attn.*\"]}}";

static const char *const sample[] = {
    "model.layers.1.mlp.experts.5.up_proj.weight",
    "model.layers.0.self_attn.kv_a_proj_with_mqa.weight",
    "model.layers.1.mlp.gate.weight",
    "model.norm.weight",
    "model.layers.1.mlp.gate.e_score_correction_bias",
    "model.layers.0.self_attn.kv_b_proj.weight",
};

/* The promise ranks rely on: a part holds what the whole holds there. */
static void a_part_equals_the_whole(void **state)
{
    (void)state;
    const fm_model_config c = shape(fp8_shape);
    fm_source            *s = open_dummy(&c, 42);
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        const fm_tensor t    = find(s, sample[i]);
        const size_t    size = fm_dtype_bytes(t.dtype);
        char *all = malloc((size_t)(t.rows * t.cols) * size), *part = malloc((size_t)t.cols * size);
        fm_source_read(s, &t, 0, t.rows, 0, t.cols, t.dtype, all);
        for (int k = 0; k < 50; k++) {
            const int64_t r = (k * 37) % t.rows, c0 = (k * 13) % t.cols,
                          n = 1 + (k * 29) % (t.cols - c0);
            fm_source_read(s, &t, r, 1, c0, n, t.dtype, part);
            assert_memory_equal(part, all + (size_t)(r * t.cols + c0) * size, (size_t)n * size);
        }
        free(all);
        free(part);
    }
    fm_source_close(s);
}

/* The documented rule, element by element. */
static void values_follow_the_rule(void **state)
{
    (void)state;
    const fm_model_config c   = shape(fp8_shape);
    fm_source            *s   = open_dummy(&c, 7);
    const uint64_t        key = fm_rng_key("lm_head.weight", 7), key8 = fm_rng_key(sample[0], 7);
    const float           step = (float)(sqrt(3) / sqrt(1024) * 0x1p-23);
    fm_tensor             t    = find(s, "lm_head.weight");
    fm_bf16               b[1024];
    fm_fp8                f[1024];

    for (uint64_t row = 0; row < 1024; row++) { /* a million: some are halfway between two */
        fm_source_read(s, &t, (int64_t)row, 1, 0, 1024, FM_BF16, b);
        for (uint64_t i = 0; i < 1024; i++) {
            const float want = fm_dummy_f32(fm_rng_u32(key, row * 1024 + i), 0, step);
            if (b[i] != fm_bf16_of_f32(want)) fail_msg("[%d, %d]", (int)row, (int)i);
        }
    }
    t = find(s, sample[0]);
    assert_int_equal(t.dtype, FM_FP8);
    fm_source_read(s, &t, 77, 1, 0, 1024, FM_FP8, f);
    for (uint64_t i = 0; i < 1024; i++)
        assert_int_equal(f[i], fm_dummy_fp8(fm_rng_u32(key8, 77 * 1024 + i)));
    fm_source_close(s);
}

/* Any even part of a row, and the same spread as the other types have. */
static void int4_follows_its_rule(void **state)
{
    (void)state;
    const fm_model_config c    = shape(int4_shape);
    fm_source            *s    = open_dummy(&c, 7);
    const char           *name = "model.layers.1.mlp.experts.2.down_proj.weight";
    const uint64_t  key   = fm_rng_key("model.layers.1.mlp.experts.2.down_proj.weight_packed", 7);
    const fm_tensor t     = find(s, name),
                    scale = find(s, "model.layers.1.mlp.experts.2.down_proj.weight_scale");
    uint8_t all[1024], part[8];
    float   factor, row[2048];
    double  sum = 0;
    assert_int_equal(t.dtype, FM_INT4);
    assert_true(scale.dtype == FM_BF16 && scale.rows == t.rows && scale.cols == t.cols / 32);
    fm_source_read(s, &t, 3, 1, 0, t.cols, FM_INT4, all);
    fm_source_read(s, &t, 3, 1, 10, 16, FM_INT4, part);
    assert_memory_equal(part, all + 5, sizeof part);
    for (int64_t i = 0; i < t.cols; i++)
        assert_int_equal(all[i / 2] >> i % 2 * 4 & 15,
                         fm_dummy_int4(fm_rng_u32(key, (uint64_t)(3 * t.cols + i))));
    fm_source_read(s, &scale, 5, 1, 1, 1, FM_F32, &factor);
    for (int64_t r = 0; r < t.rows; r++) {
        fm_source_read(s, &t, r, 1, 0, t.cols, FM_F32, row);
        for (int64_t i = 0; i < t.cols; i++) sum += pow((double)(row[i] * factor), 2);
    }
    const double std = sqrt(sum / (double)(t.rows * t.cols)) * sqrt((double)t.cols);
    assert_true(std > 0.98 && std < 1.02);
    assert_int_equal(find(s, "model.layers.1.self_attn.o_proj.weight").dtype,
                     FM_BF16); /* ignored */
    fm_source_close(s);
}

/* Golden: these bits are a promise to every other implementation of the rule. */
static void golden_bits(void **state)
{
    (void)state;
    const fm_model_config c = shape(fp8_shape);
    fm_source            *s = open_dummy(&c, 1);
    fm_tensor             t = find(s, "lm_head.weight");
    fm_bf16               b[4];
    fm_fp8                f[4];
    fm_source_read(s, &t, 3, 1, 5, 4, FM_BF16, b);
    t = find(s, sample[0]);
    fm_source_read(s, &t, 3, 1, 5, 4, FM_FP8, f);
    static const fm_bf16 want_b[] = {0xbd2a, 0xbd03, 0x3bc6, 0x3d44};
    static const fm_fp8  want_f[] = {0xfb, 0xdb, 0x78, 0xfc};
    assert_memory_equal(b, want_b, sizeof b);
    assert_memory_equal(f, want_f, sizeof f);
    fm_source_close(s);
}

static void check_moments(const fm_source *s, const char *name, float scale, double mean,
                          double std)
{
    const fm_tensor t = find(s, name);
    const int64_t   n = t.rows * t.cols;
    float          *v = malloc((size_t)n * sizeof *v);
    double          m = 0, q = 0;
    fm_source_read(s, &t, 0, t.rows, 0, t.cols, FM_F32, v);
    for (int64_t i = 0; i < n; i++) m += (double)v[i] * scale / (double)n;
    for (int64_t i = 0; i < n; i++) q += (v[i] * scale - m) * (v[i] * scale - m) / (double)n;
    const double noise = 4 / sqrt((double)n);
    if (!(fabs(m - mean) < noise * std) || !(fabs(sqrt(q) / std - 1) < noise + 2e-3))
        fail_msg("%s: mean %g, std %g, wanted %g and %g", name, m, sqrt(q), mean, std);
    free(v);
}

static void spread_is_as_promised(void **state)
{
    (void)state;
    const fm_model_config c = shape(fp8_shape);
    fm_source            *s = open_dummy(&c, 3);
    float                 scale;
    const fm_tensor       t = find(s, "model.layers.1.mlp.experts.5.up_proj.weight_scale_inv");
    assert_int_equal(t.rows, 4);
    assert_int_equal(t.cols, 8);
    fm_source_read(s, &t, 3, 1, 7, 1, FM_F32, &scale);

    check_moments(s, "model.layers.1.mlp.experts.5.up_proj.weight", scale, 0, 1 / sqrt(1024));
    check_moments(s, "model.embed_tokens.weight", 1, 0, 1);
    check_moments(s, "model.layers.1.mlp.gate.weight", 1, 0, 1 / sqrt(1024));
    check_moments(s, "model.norm.weight", 1, 1, 1.0 / 32);
    check_moments(s, "model.layers.1.mlp.gate.e_score_correction_bias", 1, 0, 1.0 / 32);
    fm_source_close(s);
}

static void fp8_is_never_nan(void **state)
{
    (void)state;
    int seen[256] = {0}, distinct = 0;
    for (uint32_t u = 0; u < 1 << 16; u++) seen[fm_dummy_fp8(u << 17 | (u >> 15))]++;
    for (int i = 0; i < 256; i++) distinct += seen[i] > 0;
    assert_int_equal(seen[0x7f] + seen[0xff], 0);
    assert_true(distinct > 100);
    assert_true(fm_f32_of_fp8(fm_dummy_fp8(UINT32_MAX)) == -448);
}

static void seeds_and_names_differ(void **state)
{
    (void)state;
    const fm_model_config c = shape("{\"num_hidden_layers\": 1}");
    fm_source            *a = open_dummy(&c, 1), *b = open_dummy(&c, 2);
    fm_bf16               x[64], y[64], z[64];
    fm_tensor             t = find(a, "lm_head.weight"), u = find(a, "model.embed_tokens.weight");
    fm_source_read(a, &t, 0, 1, 0, 64, FM_BF16, x);
    fm_source_read(b, &t, 0, 1, 0, 64, FM_BF16, y);
    fm_source_read(a, &u, 0, 1, 0, 64, FM_BF16, z);
    assert_memory_not_equal(x, y, sizeof x);
    assert_memory_not_equal(x, z, sizeof x);
    fm_source_close(a);
    fm_source_close(b);
}

/* The tensors are those a checkpoint would have, the MTP layer's among them. */
static void names_and_types(void **state)
{
    (void)state;
    const fm_model_config c = shape(fp8_shape), plain = shape(NULL);
    fm_source            *s = open_dummy(&c, 1), *p = open_dummy(&plain, 1);
    assert_int_equal(find(s, "model.layers.0.self_attn.kv_b_proj.weight").dtype, FM_FP8);
    assert_true(fm_source_has(s, "model.layers.0.self_attn.kv_b_proj.weight_scale_inv"));
    assert_int_equal(find(s, "model.layers.1.mlp.gate.weight").dtype, FM_BF16);
    assert_int_equal(find(s, "lm_head.weight").dtype, FM_BF16);
    assert_false(fm_source_has(s, "lm_head.weight_scale_inv"));
    assert_int_equal(find(p, "model.layers.11.mlp.shared_experts.down_proj.weight").dtype, FM_BF16);
    assert_false(fm_source_has(p, "model.layers.1.self_attn.q_proj.weight"));
    assert_int_equal(fm_source_mtp_layers(p, &plain), plain.n_mtp);
    assert_int_equal(plain.n_mtp, 1);
    assert_null(fm_source_data(p, &(fm_tensor){.index = 0}));
    fm_source_close(s);
    fm_source_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_equals_the_whole), cmocka_unit_test(values_follow_the_rule),
        cmocka_unit_test(int4_follows_its_rule),   cmocka_unit_test(golden_bits),
        cmocka_unit_test(spread_is_as_promised),   cmocka_unit_test(fp8_is_never_nan),
        cmocka_unit_test(seeds_and_names_differ),  cmocka_unit_test(names_and_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
