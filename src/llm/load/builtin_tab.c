/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in shapes: config.json as published, weights to be made up.  r1-mini is R1 shrunk to
 * 1.28 billion parameters. */
#include <string.h>

#include "llm/load/model_path.h"

/* clang-format off */
static const char r1_mini[] =
    "{\n"
    "  \"model_type\": \"deepseek_v3\",\n"
    "  \"architectures\": [\"DeepseekV3ForCausalLM\"],\n"
    "  \"hidden_act\": \"silu\",\n"
    "  \"attention_bias\": false,\n"
    "  \"tie_word_embeddings\": false,\n"
    "  \"rms_norm_eps\": 1e-06,\n"
    "  \"rope_theta\": 10000,\n"
    "  \"max_position_embeddings\": 16384,\n"
    "  \"moe_layer_freq\": 1,\n"
    "  \"torch_dtype\": \"bfloat16\",\n"
    "  \"bos_token_id\": 0,\n"
    "  \"eos_token_id\": 1,\n"
    "  \"vocab_size\": 32768,\n"
    "  \"hidden_size\": 1024,\n"
    "  \"intermediate_size\": 4096,\n"
    "  \"moe_intermediate_size\": 512,\n"
    "  \"num_hidden_layers\": 12,\n"
    "  \"num_nextn_predict_layers\": 1,\n"
    "  \"num_attention_heads\": 16,\n"
    "  \"num_key_value_heads\": 16,\n"
    "  \"n_shared_experts\": 1,\n"
    "  \"n_routed_experts\": 64,\n"
    "  \"num_experts_per_tok\": 8,\n"
    "  \"routed_scaling_factor\": 2.5,\n"
    "  \"scoring_func\": \"sigmoid\",\n"
    "  \"topk_method\": \"noaux_tc\",\n"
    "  \"n_group\": 8,\n"
    "  \"topk_group\": 4,\n"
    "  \"norm_topk_prob\": true,\n"
    "  \"first_k_dense_replace\": 1,\n"
    "  \"q_lora_rank\": 384,\n"
    "  \"kv_lora_rank\": 512,\n"
    "  \"qk_nope_head_dim\": 128,\n"
    "  \"qk_rope_head_dim\": 64,\n"
    "  \"v_head_dim\": 128,\n"
    "  \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, \"beta_fast\": 32, "
    "\"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0, "
    "\"original_max_position_embeddings\": 4096}\n"
    "}\n";

static const char r1[] =
    "{\n"
    "  \"model_type\": \"deepseek_v3\",\n"
    "  \"architectures\": [\"DeepseekV3ForCausalLM\"],\n"
    "  \"hidden_act\": \"silu\",\n"
    "  \"attention_bias\": false,\n"
    "  \"tie_word_embeddings\": false,\n"
    "  \"rms_norm_eps\": 1e-06,\n"
    "  \"rope_theta\": 10000,\n"
    "  \"max_position_embeddings\": 163840,\n"
    "  \"moe_layer_freq\": 1,\n"
    "  \"torch_dtype\": \"bfloat16\",\n"
    "  \"bos_token_id\": 0,\n"
    "  \"eos_token_id\": 1,\n"
    "  \"vocab_size\": 129280,\n"
    "  \"hidden_size\": 7168,\n"
    "  \"intermediate_size\": 18432,\n"
    "  \"moe_intermediate_size\": 2048,\n"
    "  \"num_hidden_layers\": 61,\n"
    "  \"num_nextn_predict_layers\": 1,\n"
    "  \"num_attention_heads\": 128,\n"
    "  \"num_key_value_heads\": 128,\n"
    "  \"n_shared_experts\": 1,\n"
    "  \"n_routed_experts\": 256,\n"
    "  \"num_experts_per_tok\": 8,\n"
    "  \"routed_scaling_factor\": 2.5,\n"
    "  \"scoring_func\": \"sigmoid\",\n"
    "  \"topk_method\": \"noaux_tc\",\n"
    "  \"n_group\": 8,\n"
    "  \"topk_group\": 4,\n"
    "  \"norm_topk_prob\": true,\n"
    "  \"first_k_dense_replace\": 3,\n"
    "  \"q_lora_rank\": 1536,\n"
    "  \"kv_lora_rank\": 512,\n"
    "  \"qk_nope_head_dim\": 128,\n"
    "  \"qk_rope_head_dim\": 64,\n"
    "  \"v_head_dim\": 128,\n"
    "  \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, \"beta_fast\": 32, "
    "\"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0, "
    "\"original_max_position_embeddings\": 4096},\n"
    "  \"quantization_config\": {\"activation_scheme\": \"dynamic\", \"fmt\": \"e4m3\", "
    "\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}\n"
    "}\n";

static const char v2_lite[] =
    "{\n"
    "  \"model_type\": \"deepseek_v2\",\n"
    "  \"architectures\": [\"DeepseekV2ForCausalLM\"],\n"
    "  \"hidden_act\": \"silu\",\n"
    "  \"attention_bias\": false,\n"
    "  \"tie_word_embeddings\": false,\n"
    "  \"rms_norm_eps\": 1e-06,\n"
    "  \"rope_theta\": 10000,\n"
    "  \"max_position_embeddings\": 163840,\n"
    "  \"moe_layer_freq\": 1,\n"
    "  \"torch_dtype\": \"bfloat16\",\n"
    "  \"bos_token_id\": 100000,\n"
    "  \"eos_token_id\": 100001,\n"
    "  \"vocab_size\": 102400,\n"
    "  \"hidden_size\": 2048,\n"
    "  \"intermediate_size\": 10944,\n"
    "  \"moe_intermediate_size\": 1408,\n"
    "  \"num_hidden_layers\": 27,\n"
    "  \"num_attention_heads\": 16,\n"
    "  \"num_key_value_heads\": 16,\n"
    "  \"n_shared_experts\": 2,\n"
    "  \"n_routed_experts\": 64,\n"
    "  \"num_experts_per_tok\": 6,\n"
    "  \"routed_scaling_factor\": 1.0,\n"
    "  \"scoring_func\": \"softmax\",\n"
    "  \"topk_method\": \"greedy\",\n"
    "  \"n_group\": 1,\n"
    "  \"topk_group\": 1,\n"
    "  \"norm_topk_prob\": false,\n"
    "  \"first_k_dense_replace\": 1,\n"
    "  \"q_lora_rank\": null,\n"
    "  \"kv_lora_rank\": 512,\n"
    "  \"qk_nope_head_dim\": 128,\n"
    "  \"qk_rope_head_dim\": 64,\n"
    "  \"v_head_dim\": 128,\n"
    "  \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, \"beta_fast\": 32, "
    "\"beta_slow\": 1, \"mscale\": 0.707, \"mscale_all_dim\": 0.707, "
    "\"original_max_position_embeddings\": 4096}\n"
    "}\n";

static const struct {
    const char *name, *config;
} builtin[] = {
    {"r1-mini", r1_mini},
    {"r1", r1},
    {"v2-lite", v2_lite},
};
/* clang-format on */

const char *fm_builtin_config(const char *name)
{
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++)
        if (!strcmp(name, builtin[i].name)) return builtin[i].config;
    return NULL;
}
