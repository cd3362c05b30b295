/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "fathom/fathom.h"

#define K(KIND, field, ...) FM_KNOB(fm_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_engine_knobs[] = {
    K(WORD, model_path, "model-path", NULL, 0, 0, "MODEL",
      "directory, Hugging Face cache name, or built-in shape (r1-mini, v2-lite, r1)"),
    K(WORD, tokenizer_path, "tokenizer-path", NULL, 0, 0, "DIR", "where tokenizer.json is, if not beside the model"),
    K(WORD, load_format, "load-format", "auto", 0, 0, "HOW", "auto, safetensors, or dummy (random weights)"),
    K(WORD, dtype, "dtype", "auto", 0, 0, "TYPE", "auto or bfloat16; float32 is the reference arithmetic"),
    K(WORD, json_model_override_args, "json-model-override-args", "{}", 0, 0, "JSON", "replaces fields of config.json"),
    K(INT, context_length, "context-length", "0", 0, 1 << 24, "N", "tokens of one sequence; 0: what the model allows"),
    K(WORD, device, "device", "auto", 0, 0, "NAME", "where to compute: cpu, cuda, or auto, a GPU if one can be used"),
    K(INT, threads, "threads", "0", 0, 4096, "N", "CPU threads; 0: the cores of this process"),
    K(WORD, cpu_bind, "cpu-bind", NULL, 0, 0, "HOW", "auto: a core for each thread (default); none; or a list of CPUs such as 0-7,16"),
    K(INT, seed, "random-seed", "0", 0, 9e15, "N", "of dummy weights and of requests without a seed"),

    K(REAL, mem_fraction_static, "mem-fraction-static", "0", 0, 1, "F",
      "share of memory for weights, workspace and KV; 0: all that is free minus a margin"),
    K(INT, max_total_tokens, "max-total-tokens", "0", 0, 2e9, "N", "tokens in the KV pool; 0: as many as fit"),
    K(INT, page_size, "page-size", "16", 1, 64, "N", "tokens per KV page"),
    K(WORD, kv_cache_dtype, "kv-cache-dtype", "auto", 0, 0, "TYPE", "auto or bfloat16; fp8_e4m3 on a GPU"),
    K(WORD, fp8_activations, "fp8-activations", "auto", 0, 0, "HOW",
      "multiply FP8 weights with activations in FP8: on, off, or auto, as the checkpoint says"),
    K(INT, attention_split_tile_size, "attention-split-tile-size", "512", 512, 4096, "N",
      "GPU: cached tokens whose attention is summed in one piece: 512, 1024, 2048 or 4096; more for large batches of long texts"),
    K(FLAG, disable_radix_cache, "disable-radix-cache", NULL, 0, 0, NULL, "share no prefixes between requests"),
    K(FLAG, deterministic, "deterministic", NULL, 0, 0, NULL, "never reuse another request's generated tokens"),

    K(FLAG, enable_hierarchical_cache, "enable-hierarchical-cache", NULL, 0, 0, NULL, "keep prefixes that leave the pool in host memory (GPU) or files"),
    K(REAL, hicache_ratio, "hicache-ratio", "2", 0, 1000, "F", "GPU: host memory for prefixes, in sizes of the pool, at most three quarters of what is free"),
    K(REAL, hicache_size, "hicache-size", "0", 0, 1e6, "GB", "GPU: host memory for prefixes of each rank; 0: by the ratio"),
    K(WORD, hicache_write_policy, "hicache-write-policy", "write_through", 0, 0, "P", "write_through, write_through_selective (from the second use on) or write_back (when evicted)"),
    K(WORD, hicache_storage_backend, "hicache-storage-backend", NULL, 0, 0, "HOW", "file: keep prefixes in a directory, where they outlive the process"),
    K(WORD, hicache_storage_dir, "hicache-storage-dir", NULL, 0, 0, "DIR", "the directory (implies file); processes may share it"),
    K(REAL, hicache_storage_size, "hicache-storage-size", "0", 0, 1e9, "GIB", "of the directory, least recently used pages are removed; 0: no limit"),
    K(REAL, hicache_debug_faults, "hicache-debug-faults", "0", 0, 1, "F", "for tests: share of file operations that fail, and of pages in host memory that are altered"),
    K(FLAG, hicache_debug_demote, "hicache-debug-demote", NULL, 0, 0, NULL, "for tests: every step empties the pool of prefixes"),

    K(INT, max_running_requests, "max-running-requests", "0", 0, 65536, "N", "sequences in one step; 0: 256, on a GPU 1024 or what suits its memory"),
    K(INT, chunked_prefill_size, "chunked-prefill-size", "2048", -1, 1 << 20, "N", "prompt tokens per step; -1: no chunking"),
    K(INT, max_prefill_tokens, "max-prefill-tokens", "16384", 1, 1 << 24, "N", "prompt tokens of one prefill, when not chunked"),
    K(WORD, schedule_policy, "schedule-policy", "fcfs", 0, 0, "P", "fcfs, or lpm (longest cached prefix first)"),
    K(REAL, schedule_conservativeness, "schedule-conservativeness", "1", 0, 100, "F", "larger: expect longer outputs at admission"),

    K(WORD, speculative_algorithm, "speculative-algorithm", NULL, 0, 0, "HOW", "draft tokens ahead and verify them: NEXTN (or EAGLE) by the model's MTP layer, NGRAM from the request's own text, NEXTN,NGRAM by both; auto: NEXTN where the model has that layer"),
    K(INT, speculative_num_steps, "speculative-num-steps", "0", 0, 16, "N", "draft tokens of one request in a step; 0: as many as -num-draft-tokens says, or 3"),
    K(INT, speculative_num_draft_tokens, "speculative-num-draft-tokens", "0", 0, 17, "N", "rows that verify one request, its own included: steps + 1, and steps decide; 1 alone: no drafts"),
    K(INT, speculative_eagle_topk, "speculative-eagle-topk", "1", 1, 64, "N", "drafts are a chain: 1"),
    K(FLAG, speculative_adaptive, "speculative-adaptive", NULL, 0, 0, NULL, "as many drafts as pay, by measured cost and acceptance (default)"),
    K(FLAG, disable_speculative_adaptive, "disable-speculative-adaptive", NULL, 0, 0, NULL, "always as many drafts as there are"),
    K(REAL, speculative_simulate_accept_length, "speculative-simulate-accept-length", "0", 0, 17, "X", "dummy weights: accept as many drafts as give X tokens a step, whatever they are; for measurements"),
    K(INT, ngram_min, "speculative-ngram-min-match-window-size", "2", 1, 16, "N", "NGRAM: tokens that must match"),
    K(INT, ngram_max, "speculative-ngram-max-match-window-size", "12", 1, 64, "N", "NGRAM: tokens that are compared"),
    K(INT, ngram_depth, "speculative-ngram-max-trie-depth", "0", 0, 1 << 20, "N", "NGRAM: tokens that are compared, and one draft; 0: as the match window says"),

    K(INT, tp_size, "tp-size", "1", 1, 65536, "N", "ranks that divide each layer; start tp x pp x dp ranks by mpirun"),
    K(INT, pp_size, "pp-size", "1", 1, 65536, "N", "stages of consecutive layers"),
    K(INT, dp_size, "dp-size", "1", 1, 65536, "N", "replicas; with --enable-dp-attention groups of the tp ranks"),
    K(INT, ep_size, "ep-size", "1", 1, 65536, "N", "sets of whole experts among the tp ranks"),
    K(FLAG, enable_dp_attention, "enable-dp-attention", NULL, 0, 0, NULL, "each of dp groups of the tp ranks has sequences of its own"),
    K(WORD, pp_layer_partition, "pp-layer-partition", NULL, 0, 0, "LIST", "layers of each stage, such as 30,31; by cost if not given"),

    K(FLAG, disable_cuda_graph, "disable-cuda-graph", NULL, 0, 0, NULL, "GPU: start every kernel of a decode step one by one"),
    K(FLAG, shadow, "shadow", NULL, 0, 0, NULL, "compute on the CPU and a GPU, compare every op, stop at the first difference"),
    K(FLAG, disable_overlap_schedule, "disable-overlap-schedule", NULL, 0, 0, NULL, "GPU: plan a step only when the tokens of the last are known"),
    K(WORD, trace, "trace", NULL, 0, 0, "FILE", "record where time goes; fathom trace FILE explains it; of several ranks, FILE.rankN"),
    K(INT, trace_size, "trace-size", "0", 0, 65536, "MIB", "spans kept of a rank; 0: 64 MiB, and at most 100 MB of files for all ranks"),
    K(FLAG, skip_tokenizer_init, "skip-tokenizer-init", NULL, 0, 0, NULL, "work on token ids alone"),
    K(FLAG, quiet, "quiet", NULL, 0, 0, NULL, "no plan table, no progress bars"),
};
/* clang-format on */
const int fm_n_engine_knob = (int)(sizeof fm_engine_knobs / sizeof fm_engine_knobs[0]);

fm_status fm_options_create(fm_options **out)
{
    if (!out) return fm_fail(FM_E_ARG, "fm_options_create: out is NULL");
    *out          = NULL;
    fm_options *o = calloc(1, sizeof *o);
    if (!o) return fm_fail(FM_E_OOM, "options");
    fm_status rc = fm_knobs_init(fm_engine_knobs, fm_n_engine_knob, o);
    if (rc == FM_OK) rc = fm_knobs_init(fm_world_knobs, fm_n_world_knob, &o->world);
    if (rc != FM_OK) {
        fm_options_destroy(o);
        return rc;
    }
    *out = o;
    return FM_OK;
}

static fm_status refuse(const char *name)
{
    fm_nearest like = {.word = name + strspn(name, "-")};
    for (int i = 0; i < fm_n_engine_knob; i++) fm_nearest_offer(&like, fm_engine_knobs[i].name);
    for (int i = 0; i < fm_n_world_knob; i++) fm_nearest_offer(&like, fm_world_knobs[i].name);
    if (!like.name) return fm_fail(FM_E_ARG, "there is no option \"%s\"", name);
    return fm_fail(FM_E_ARG, "there is no option \"%s\"; is \"%s\" meant?", name, like.name);
}

fm_status fm_options_set(fm_options *o, const char *name, const char *value)
{
    if (!o || !name) return fm_fail(FM_E_ARG, "fm_options_set: options or name is NULL");
    const fm_knob *k = fm_knob_find(fm_engine_knobs, fm_n_engine_knob, name);
    if (k) return fm_knob_set(k, o, value);
    k = fm_knob_find(fm_world_knobs, fm_n_world_knob, name);
    if (k) return fm_knob_set(k, &o->world, value);
    return refuse(name);
}

void fm_options_destroy(fm_options *o)
{
    if (!o) return;
    fm_knobs_fini(fm_engine_knobs, fm_n_engine_knob, o);
    fm_knobs_fini(fm_world_knobs, fm_n_world_knob, &o->world);
    free(o);
}
