/* SPDX-License-Identifier: Apache-2.0 */
/* The whole forward pass on the GPU back end against the CPU's: the same bf16
 * weights and sums in f32, other orders of summation. */
#include <stdlib.h>

#include <string>

#include "backend_model.h"
#include "check.h"

/* Another machine may have the tests' data elsewhere. */
static std::string data(const char *name)
{
    const char *dir = getenv("FM_TEST_DATA");
    return std::string(dir ? dir : FM_TEST_DATA) + "/" + name;
}

/* `most`: relative error of a row of logits. */
static void compare(const fm_both_options &o, double most = 0.02)
{
    const char *why  = "";
    fm_both    *both = fm_both_open(&o, &why);
    if (!both) {
        fm_check_failed(__FILE__, __LINE__, "%s", why);
        return;
    }
    for (int step = 0; step < 4; step++) {
        const double off = fm_both_pass(both, step, &why);
        if (!(off >= 0 && off < most))
            fm_check_failed(__FILE__, __LINE__, "%s, pass %d: logits are off by %g; %s",
                            o.dir ? o.dir : o.json, step, off, why);
    }
    if (fm_both_tokens_differ(both, &why) != 0)
        fm_check_failed(__FILE__, __LINE__, "tokens differ from the CPU's choice; %s", why);
    if (!fm_both_is_invariant(both, &why))
        fm_check_failed(__FILE__, __LINE__, "chunks move bits; %s", why);
    fm_both_close(both);
}

FM_TEST(v3_checkpoint)
{
    const std::string dir = data("v3");
    compare({dir.c_str(), NULL, NULL, 16, 1, 0, 17, 0});
}

FM_TEST(v2lite_checkpoint)
{
    const std::string dir = data("v2lite");
    compare({dir.c_str(), NULL, NULL, 1, 0, 0, 23, 0});
}

FM_TEST(fp8_checkpoint)
{
    const std::string dir = data("v3wide-fp8");
    compare({dir.c_str(), NULL, NULL, 64, 1, 0, 17, 0});
}

/* Read from packed tensors, multiplied out and rounded to BF16 when they are loaded. */
FM_TEST(int4_checkpoint)
{
    const std::string dir = data("v3-int4");
    compare({dir.c_str(), NULL, NULL, 16, 1, 0, 25, 0}); /* at 17 and 23 two experts nearly tie */
}

FM_TEST(dummy_int4)
{
    compare({NULL, "r1-mini",
             "{\"num_hidden_layers\": 2, \"first_k_dense_replace\": 1, \"hidden_size\": 160, "
             "\"intermediate_size\": 288, \"moe_intermediate_size\": 160, \"n_routed_experts\": 8, "
             "\"num_experts_per_tok\": 3, \"n_group\": 2, \"topk_group\": 1, "
             "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"q_lora_rank\": 96, "
             "\"kv_lora_rank\": 128, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 32, "
             "\"v_head_dim\": 32, \"vocab_size\": 320, \"quantization_config\": {\"quant_method\": "
             "\"compressed-tensors\", \"format\": \"pack-quantized\", \"config_groups\": {\"g\": "
             "{\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 4, \"type\": \"int\", "
             "\"symmetric\": true, \"strategy\": \"group\", \"group_size\": 32}}}, \"ignore\": "
             "[\"lm_head\", \"re:.*self_attn.*\"]}}",
             16, 0, 0, 17, 0});
}

/* Dummy weights are made on the device; no q_lora, no groups, no shared expert. */
FM_TEST(dummy_bf16)
{
    compare({NULL, "r1-mini",
             "{\"num_hidden_layers\": 2, \"first_k_dense_replace\": 1, \"hidden_size\": 96, "
             "\"intermediate_size\": 160, \"moe_intermediate_size\": 32, \"n_routed_experts\": 6, "
             "\"num_experts_per_tok\": 2, \"n_group\": 1, \"topk_group\": 1, \"n_shared_experts\": 0, "
             "\"num_attention_heads\": 6, \"num_key_value_heads\": 6, \"q_lora_rank\": null, "
             "\"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 16, "
             "\"v_head_dim\": 16, \"vocab_size\": 200}",
             8, 1, 0, 17, 0});
}

FM_TEST(dummy_fp8)
{
    compare({NULL, "r1-mini",
             "{\"num_hidden_layers\": 2, \"first_k_dense_replace\": 1, \"hidden_size\": 160, "
             "\"intermediate_size\": 288, \"moe_intermediate_size\": 160, \"n_routed_experts\": 8, "
             "\"num_experts_per_tok\": 3, \"n_group\": 2, \"topk_group\": 1, "
             "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"q_lora_rank\": 96, "
             "\"kv_lora_rank\": 128, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 32, "
             "\"v_head_dim\": 32, \"vocab_size\": 320, \"quantization_config\": "
             "{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}}",
             16, 0, 0, 17, 0});
}

/* The same passes with no row beside the batch's own. */
FM_TEST(fp8_checkpoint_not_padded)
{
    const std::string dir = data("v3wide-fp8");
    compare({dir.c_str(), NULL, NULL, 64, 0, 0, 17, 0});
}

/* Activations in E4M3, too.  Inside a tensor-core step the GPU keeps fewer bits, so another
 * neighbour may be chosen when a row is quantised: 7 % of the logits in this model of random weights.  Without experts, of which
 * another one might be chosen. */
FM_TEST(fp8_activations)
{
    compare({NULL, "r1-mini",
             "{\"num_hidden_layers\": 3, \"first_k_dense_replace\": 3, \"hidden_size\": 160, "
             "\"intermediate_size\": 288, \"num_attention_heads\": 4, \"num_key_value_heads\": 4, "
             "\"q_lora_rank\": 96, \"kv_lora_rank\": 128, \"qk_nope_head_dim\": 32, "
             "\"qk_rope_head_dim\": 32, \"v_head_dim\": 32, \"vocab_size\": 320, "
             "\"quantization_config\": {\"quant_method\": \"fp8\", \"activation_scheme\": "
             "\"dynamic\", \"weight_block_size\": [128, 128]}}",
             16, 1, 0, 17, 1},
            0.1);
}

/* With experts the routes of the two soon differ; what chunks and padding must not move is bits. */
FM_TEST(fp8_activations_of_experts)
{
    const std::string dir = data("v3wide-fp8");
    compare({dir.c_str(), NULL, NULL, 64, 1, 0, 17, 1}, 4);
}

/* Three bits of mantissa: up to 2^-4 of a value, less of a sum.  Without experts,
 * of which another one might be chosen. */
FM_TEST(kv_in_8_bits)
{
    compare({NULL, "r1-mini",
             "{\"num_hidden_layers\": 3, \"first_k_dense_replace\": 3, \"hidden_size\": 128, "
             "\"intermediate_size\": 160, \"num_attention_heads\": 4, \"num_key_value_heads\": 4, "
             "\"q_lora_rank\": 64, \"kv_lora_rank\": 128, \"qk_nope_head_dim\": 32, "
             "\"qk_rope_head_dim\": 32, \"v_head_dim\": 32, \"vocab_size\": 200}",
             16, 1, 1, 17, 0},
            0.06);
}
