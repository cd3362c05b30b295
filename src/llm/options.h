/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine can be told, under the names SGLang's users know. */
#ifndef FM_LLM_OPTIONS_H
#define FM_LLM_OPTIONS_H

#include "base/knobs.h"
#include "comm/world.h"

typedef struct fm_options {
    char   *model_path, *tokenizer_path, *load_format, *dtype, *json_model_override_args;
    char   *schedule_policy, *device, *kv_cache_dtype, *pp_layer_partition, *speculative_algorithm, *fp8_activations;
    char   *trace; /* file to record to; NULL: none */
    char   *hicache_write_policy, *hicache_storage_backend, *hicache_storage_dir;
    double  hicache_ratio, hicache_size, hicache_storage_size, hicache_debug_faults;
    int     enable_hierarchical_cache, hicache_debug_demote;
    char   *cpu_bind; /* NULL: auto in a command, none in another's program */
    int64_t seed, threads, trace_size;
    int64_t page_size, attention_split_tile_size, max_total_tokens, max_running_requests, max_prefill_tokens;
    int64_t chunked_prefill_size, context_length;
    int64_t speculative_num_steps, speculative_num_draft_tokens, speculative_eagle_topk;
    int64_t ngram_min, ngram_max, ngram_depth;
    int64_t tp_size, pp_size, dp_size, ep_size;
    double  mem_fraction_static, schedule_conservativeness, speculative_simulate_accept_length;
    int     disable_radix_cache, deterministic, skip_tokenizer_init, quiet, disable_cuda_graph, shadow, disable_overlap_schedule, enable_dp_attention;
    int     speculative_adaptive, disable_speculative_adaptive;

    fm_world_options world; /* by fm_world_knobs */
} fm_options;

extern const fm_knob fm_engine_knobs[];
extern const int     fm_n_engine_knob;

#endif
