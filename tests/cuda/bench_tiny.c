/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_tiny.h"

#include "bench/cuda/model.h"

void fm_bench_tiny(int no_graphs)
{
    const fm_gpu_sizes sizes = {.batch     = FM_TINY_BATCH,
                                .context   = 20,
                                .prompt    = FM_TINY_PROMPT,
                                .page      = 8,
                                .no_graphs = no_graphs};
    fm_gpu_measure_model(
        "r1-mini",
        "{\"num_hidden_layers\": 2, \"first_k_dense_replace\": 1, \"hidden_size\": 96, "
        "\"intermediate_size\": 160, \"moe_intermediate_size\": 32, \"n_routed_experts\": 6, "
        "\"num_experts_per_tok\": 2, \"n_group\": 1, \"topk_group\": 1, \"n_shared_experts\": 1, "
        "\"num_attention_heads\": 6, \"num_key_value_heads\": 6, \"q_lora_rank\": 64, "
        "\"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 16, "
        "\"v_head_dim\": 16, \"vocab_size\": 200}",
        &sizes);
}
