/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "load_support.h"

static fm_status parse(fm_model_config *c, const char *text, const char *overrides)
{
    return fm_config_parse(c, text, strlen(text), "config.json", overrides);
}

static fm_model_config builtin(const char *name, const char *overrides)
{
    fm_model_config c;
    const char     *text = fm_builtin_config(name);
    assert_non_null(text);
    if (parse(&c, text, overrides) != FM_OK) fail_msg("%s: %s", name, fm_why());
    return c;
}

static void v2_lite(void **state)
{
    (void)state;
    const fm_model_config c = builtin("v2-lite", NULL);
    assert_string_equal(c.model_type, "deepseek_v2");
    assert_int_equal(c.q_lora, 0);
    assert_int_equal(c.route, FM_ROUTE_GREEDY);
    assert_int_equal(c.score, FM_SCORE_SOFTMAX);
    assert_int_equal(c.norm_top_k, 0);
    assert_int_equal(c.n_mtp, 0);
    assert_int_equal(c.bos, 100000);
    assert_int_equal(c.eos[0], 100001);
    assert_int_equal(fm_param_count(&c), 15706484224);
}

static void r1(void **state)
{
    (void)state;
    const fm_model_config c = builtin("r1", NULL);
    assert_int_equal(c.hidden, 7168);
    assert_int_equal(c.n_layer, 61);
    assert_int_equal(c.n_mtp, 1);
    assert_int_equal(c.route, FM_ROUTE_NOAUX_TC);
    assert_int_equal(c.score, FM_SCORE_SIGMOID);
    assert_true(c.routed_scale == 2.5f && c.norm_top_k && c.fp8 && c.yarn && c.rope_interleave);
    assert_int_equal(c.fp8_activations, 1);
    assert_int_equal(fm_kv_width(&c), 576);
    assert_true(fm_param_count(&c) / 1000000000 == 671);
    assert_true(fm_param_active(&c) / 100000000 == 366);
}

static void r1_mini(void **state)
{
    (void)state;
    const fm_model_config c = builtin("r1-mini", NULL);
    assert_true(fm_param_count(&c) / 10000000 == 128);
    assert_int_equal(c.fp8, 0);
    assert_null(fm_builtin_config("r2"));
}

static void overrides_replace_and_merge(void **state)
{
    (void)state;
    const fm_model_config c =
        builtin("r1", "{\"num_hidden_layers\": 2, \"rope_scaling\": {\"factor\": 8}, "
                      "\"quantization_config\": null, \"eos_token_id\": [7, 9]}");
    assert_int_equal(c.n_layer, 2);
    assert_true(c.yarn_factor == 8 && c.yarn_original == 4096);
    assert_int_equal(c.fp8, 0);
    assert_int_equal(c.n_eos, 2);
    assert_int_equal(c.eos[1], 9);
    const fm_model_config plain = builtin("r1", "{\"rope_scaling\": null}");
    assert_int_equal(plain.yarn, 0);
}

/* transformers 5 puts everything about RoPE elsewhere; the numbers agree. */
/* Kimi-K2's list: attention, shared experts, dense layers and the head keep their type. */
static void int4_spares_what_the_config_ignores(void **state)
{
    (void)state;
    const fm_model_config c = builtin(
        "r1-mini",
        "{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
        "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
        "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
        "\"group_size\": 32}}}, \"ignore\": [\"lm_head\", \"re:.*self_attn.*\", "
        "\"re:.*shared_experts.*\", \"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\"]}}");
    assert_true(c.int4 && !c.fp8 && c.n_int4_ignore == 4);
    assert_true(fm_config_keeps_int4(&c, "model.layers.3.mlp.experts.7.down_proj.weight"));
    assert_false(fm_config_keeps_int4(&c, "lm_head.weight"));
    assert_false(fm_config_keeps_int4(&c, "model.layers.3.self_attn.o_proj.weight"));
    assert_false(fm_config_keeps_int4(&c, "model.layers.3.mlp.shared_experts.up_proj.weight"));
    assert_false(fm_config_keeps_int4(&c, "model.layers.0.mlp.down_proj.weight"));
}

static void both_spellings_agree(void **state)
{
    (void)state;
    fm_model_config a = builtin("r1-mini", "{\"rope_theta\": 50000}");
    fm_model_config b = builtin(
        "r1-mini", "{\"rope_scaling\": null, \"rope_theta\": null, \"topk_method\": null, "
                   "\"scoring_func\": null, \"moe_layer_freq\": null, \"rope_parameters\": "
                   "{\"rope_type\": \"deepseek_yarn\", \"rope_theta\": 50000.0, \"factor\": null, "
                   "\"mscale\": 1.0, \"mscale_all_dim\": 1.0, "
                   "\"original_max_position_embeddings\": 4096, \"attention_factor\": null}}");
    assert_true(b.yarn_factor == 4); /* null: 16384 / 4096 */
    b.yarn_factor = a.yarn_factor;
    assert_memory_equal(&a, &b, sizeof a);

    const fm_model_config c = builtin(
        "r1-mini", "{\"rope_scaling\": null, \"rope_parameters\": {\"rope_type\": \"default\"}, "
                   "\"rope_interleave\": false}");
    assert_int_equal(c.yarn, 0);
    assert_int_equal(c.rope_interleave, 0);
    assert_true(c.rope_theta == 10000);
}

static void family_defaults(void **state)
{
    (void)state;
    static const char drop[] =
        "{\"topk_method\": null, \"scoring_func\": null, \"norm_topk_prob\": null}";
    const fm_model_config v2 = builtin("v2-lite", drop), v3 = builtin("r1-mini", drop);
    assert_int_equal(v2.route, FM_ROUTE_GREEDY);
    assert_int_equal(v2.norm_top_k, 0);
    assert_int_equal(v3.route, FM_ROUTE_NOAUX_TC);
    assert_int_equal(v3.norm_top_k, 1);

    const fm_model_config kimi = builtin(
        "r1-mini", "{\"model_type\": \"kimi_k2\", \"topk_method\": null, \"scoring_func\": null}");
    assert_int_equal(kimi.score, FM_SCORE_SIGMOID);
    const fm_model_config v2_236b =
        builtin("v2-lite",
                "{\"topk_method\": \"group_limited_greedy\", \"n_group\": 8, \"topk_group\": 3}");
    assert_int_equal(v2_236b.route, FM_ROUTE_GROUP_LIMITED);
    const fm_model_config dense = builtin("r1-mini", "{\"n_routed_experts\": null}");
    assert_int_equal(dense.n_expert, 0);
    assert_false(fm_layer_is_moe(&dense, 5));
}

static void reference_checkpoints(void **state)
{
    (void)state;
    static const char *const names[] = {"v3", "v2lite", "v3wide-fp8"};
    for (size_t i = 0; i < 3; i++) {
        char            path[512];
        fm_model_config c;
        snprintf(path, sizeof path, FM_TEST_DATA "/%s/config.json", names[i]);
        if (fm_config_read(&c, path, NULL) != FM_OK) fail_msg("%s", fm_why());
        assert_true(c.yarn && c.yarn_factor == 4 && c.yarn_original == 128);
        assert_int_equal(c.fp8, i == 2);
        assert_int_equal(c.fp8_activations, i == 2);
        assert_int_equal(c.n_group, i == 0 ? 4 : i == 1 ? 1 : 2);
    }
}

static void generation_config_adds_eos(void **state)
{
    (void)state;
    temp_dir        d;
    fm_model_config c;
    char            path[300];
    temp_dir_make(&d);
    temp_text(&d, "config.json", fm_builtin_config("r1-mini"));
    snprintf(path, sizeof path, "%s/config.json", d.path);

    temp_text(&d, "generation_config.json", "{\"eos_token_id\": [1, 5, 6]}");
    assert_int_equal(fm_config_read(&c, path, NULL), FM_OK);
    assert_int_equal(c.n_eos, 3); /* 1 was known */
    assert_int_equal(c.eos[2], 6);

    temp_text(&d, "generation_config.json", "{\"eos_token_id\": [1, \"</s>\"]}");
    assert_int_equal(fm_config_read(&c, path, NULL), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "generation_config.json: eos_token_id"));
    temp_text(&d, "generation_config.json", "[]");
    assert_int_equal(fm_config_read(&c, path, NULL), FM_E_FORMAT);
    temp_dir_remove(&d);

    assert_int_equal(fm_config_read(&c, path, NULL), FM_E_IO);
    assert_non_null(strstr(fm_why(), "config.json"));
}

/* --- what must be refused, and what the sentence must name ---------------- */

typedef struct {
    const char *override, *field;
    fm_status   want;
} fault;

static const fault faults[] = {
    {"{\"architectures\": null}", "architectures", FM_E_FORMAT},
    {"{\"architectures\": []}", "architectures", FM_E_FORMAT},
    {"{\"architectures\": [3]}", "architectures", FM_E_FORMAT},
    {"{\"architectures\": [\"LlamaForCausalLM\"]}", "LlamaForCausalLM", FM_E_NOSUP},
    {"{\"architectures\": [\"DeepseekV32ForCausalLM\"]}", "DeepseekV32ForCausalLM", FM_E_NOSUP},
    {"{\"model_type\": 3}", "model_type", FM_E_FORMAT},
    {"{\"model_type\": \"a_very_long_name_that_no_model_type_ever_had\"}", "model_type",
     FM_E_FORMAT},
    {"{\"hidden_act\": \"gelu\"}", "hidden_act", FM_E_NOSUP},
    {"{\"attention_bias\": true}", "attention_bias", FM_E_NOSUP},
    {"{\"tie_word_embeddings\": true}", "tie_word_embeddings", FM_E_NOSUP},
    {"{\"vocab_size\": 1}", "vocab_size", FM_E_FORMAT},
    {"{\"vocab_size\": 1e30}", "vocab_size", FM_E_FORMAT},
    {"{\"hidden_size\": 0}", "hidden_size", FM_E_FORMAT},
    {"{\"hidden_size\": -1024}", "hidden_size", FM_E_FORMAT},
    {"{\"hidden_size\": 1000}", "hidden_size", FM_E_FORMAT},
    {"{\"hidden_size\": 1048576}", "hidden_size", FM_E_FORMAT},
    {"{\"hidden_size\": \"1024\"}", "hidden_size", FM_E_FORMAT},
    {"{\"hidden_size\": null}", "hidden_size", FM_E_FORMAT},
    {"{\"hidden_size\": 1024.5}", "hidden_size", FM_E_FORMAT},
    {"{\"num_hidden_layers\": 0}", "num_hidden_layers", FM_E_FORMAT},
    {"{\"num_hidden_layers\": 1000000}", "num_hidden_layers", FM_E_FORMAT},
    {"{\"num_attention_heads\": []}", "num_attention_heads", FM_E_FORMAT},
    {"{\"num_key_value_heads\": 2}", "num_key_value_heads", FM_E_NOSUP},
    {"{\"q_lora_rank\": 33}", "q_lora_rank", FM_E_FORMAT},
    {"{\"kv_lora_rank\": 48}", "kv_lora_rank", FM_E_FORMAT},
    {"{\"qk_nope_head_dim\": 16}", "qk_nope_head_dim", FM_E_FORMAT},
    {"{\"qk_rope_head_dim\": 63}", "qk_rope_head_dim", FM_E_FORMAT},
    {"{\"v_head_dim\": 24}", "v_head_dim", FM_E_FORMAT},
    {"{\"num_attention_heads\": 1, \"num_key_value_heads\": 1, \"v_head_dim\": 16}", "v_head_dim",
     FM_E_FORMAT},
    {"{\"intermediate_size\": 100}", "intermediate_size", FM_E_FORMAT},
    {"{\"moe_intermediate_size\": null}", "moe_intermediate_size", FM_E_FORMAT},
    {"{\"n_routed_experts\": 100000}", "n_routed_experts", FM_E_FORMAT},
    {"{\"n_routed_experts\": 8192, \"num_hidden_layers\": 1000}", "n_routed_experts", FM_E_FORMAT},
    {"{\"n_group\": 7}", "n_group", FM_E_FORMAT},
    {"{\"n_group\": 0}", "n_group", FM_E_FORMAT},
    {"{\"n_group\": 64, \"topk_group\": 64}", "n_group", FM_E_FORMAT},
    {"{\"topk_group\": 9}", "topk_group", FM_E_FORMAT},
    {"{\"num_experts_per_tok\": 65}", "num_experts_per_tok", FM_E_FORMAT},
    {"{\"num_experts_per_tok\": 0}", "num_experts_per_tok", FM_E_FORMAT},
    {"{\"topk_group\": 1, \"num_experts_per_tok\": 9}", "num_experts_per_tok", FM_E_FORMAT},
    {"{\"topk_method\": \"random\"}", "topk_method", FM_E_NOSUP},
    {"{\"scoring_func\": \"softmax\"}", "scoring_func", FM_E_NOSUP},
    {"{\"first_k_dense_replace\": -1}", "first_k_dense_replace", FM_E_FORMAT},
    {"{\"moe_layer_freq\": 0}", "moe_layer_freq", FM_E_FORMAT},
    {"{\"routed_scaling_factor\": -1}", "routed_scaling_factor", FM_E_FORMAT},
    {"{\"norm_topk_prob\": 1}", "norm_topk_prob", FM_E_FORMAT},
    {"{\"rms_norm_eps\": 0}", "rms_norm_eps", FM_E_FORMAT},
    {"{\"rope_theta\": 0}", "rope_theta", FM_E_FORMAT},
    {"{\"rope_scaling\": 3}", "rope_scaling", FM_E_FORMAT},
    {"{\"rope_scaling\": {\"type\": \"linear\"}}", "rope_scaling.type", FM_E_NOSUP},
    {"{\"rope_scaling\": {\"factor\": \"40\"}}", "rope_scaling.factor", FM_E_FORMAT},
    {"{\"rope_scaling\": {\"factor\": 0.5}}", "rope_scaling.factor", FM_E_FORMAT},
    {"{\"rope_scaling\": {\"beta_slow\": 64}}", "rope_scaling.beta_slow", FM_E_FORMAT},
    {"{\"rope_scaling\": {\"original_max_position_embeddings\": 0}}",
     "rope_scaling.original_max_position_embeddings", FM_E_FORMAT},
    {"{\"rope_scaling\": {\"factor\": null, \"original_max_position_embeddings\": 99999}}",
     "rope_scaling.original_max_position_embeddings", FM_E_FORMAT},
    {"{\"rope_parameters\": []}", "rope_parameters", FM_E_FORMAT},
    {"{\"max_position_embeddings\": 0}", "max_position_embeddings", FM_E_FORMAT},
    {"{\"bos_token_id\": 32768}", "bos_token_id", FM_E_FORMAT},
    {"{\"eos_token_id\": -1}", "eos_token_id", FM_E_FORMAT},
    {"{\"eos_token_id\": 32768}", "eos_token_id", FM_E_FORMAT},
    {"{\"eos_token_id\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}", "eos_token_id", FM_E_FORMAT},
    {"{\"eos_token_id\": {}}", "eos_token_id", FM_E_FORMAT},
    {"{\"quantization_config\": true}", "quantization_config", FM_E_FORMAT},
    {"{\"quantization_config\": {}}", "quantization_config.quant_method", FM_E_FORMAT},
    {"{\"quantization_config\": {\"quant_method\": \"awq\"}}", "awq", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\"}}",
     "quantization_config.format", FM_E_FORMAT},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"float-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}}}}}",
     "quantization_config.format float-quantized", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 8, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}}}}}",
     "num_bits 8", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": false, \"strategy\": \"group\", "
     "\"group_size\": 32}}}}}",
     "symmetric false", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"channel\", "
     "\"group_size\": 32}}}}}",
     "strategy channel", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 128}}}}}",
     "group_size 128", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}, \"input_activations\": {\"num_bits\": 8}}}}}",
     "input_activations", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Embedding\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}}}}}",
     "targets Embedding", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}}, \"h\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 4, "
     "\"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", \"group_size\": 32}}}}}",
     "2 groups", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}}}, \"ignore\": [3]}}",
     "ignore", FM_E_FORMAT},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}}}, \"ignore\": [\"re:(\"]}}",
     "ignore", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e5m2\"}}",
     "quantization_config.fmt", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [64, 64]}}",
     "quantization_config.weight_block_size", FM_E_NOSUP},
    {"{\"quantization_config\": {\"quant_method\": \"fp8\"}}",
     "quantization_config.weight_block_size", FM_E_NOSUP},
    {"{\"hidden_size\": 65536, \"vocab_size\": 4194304, \"moe_intermediate_size\": 262144, "
     "\"n_routed_experts\": 4096, \"num_hidden_layers\": 32}",
     "parameters", FM_E_FORMAT},
};

static void faults_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fm_model_config c, before;
        memset(&c, 0x5a, sizeof c);
        memset(&before, 0x5a, sizeof before);
        const fm_status rc = parse(&c, fm_builtin_config("r1-mini"), faults[i].override);
        if (rc != faults[i].want)
            fail_msg("%s: status %d, want %d", faults[i].override, rc, faults[i].want);
        if (!strstr(fm_why(), faults[i].field) || !strstr(fm_why(), "config.json"))
            fail_msg("%s: the sentence is: %s", faults[i].override, fm_why());
        assert_memory_equal(&c, &before, sizeof c);
    }
}

static void not_even_json(void **state)
{
    (void)state;
    static const char *const texts[] = {"",          "{", "[]", "3", "null", "{\"a\": 1, \"a\": 2}",
                                        "\xff\xfe{}"};
    fm_model_config          c;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(parse(&c, texts[i], NULL), FM_E_FORMAT);
        assert_non_null(strstr(fm_why(), "config.json"));
    }
    assert_int_equal(parse(&c, fm_builtin_config("r1"), "{\"a\""), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "--json-model-override-args"));
    assert_int_equal(parse(&c, fm_builtin_config("r1"), "[1]"), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "--json-model-override-args"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v2_lite),
        cmocka_unit_test(r1),
        cmocka_unit_test(r1_mini),
        cmocka_unit_test(overrides_replace_and_merge),
        cmocka_unit_test(int4_spares_what_the_config_ignores),
        cmocka_unit_test(both_spellings_agree),
        cmocka_unit_test(family_defaults),
        cmocka_unit_test(reference_checkpoints),
        cmocka_unit_test(generation_config_adds_eos),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(not_even_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
