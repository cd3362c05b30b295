/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign_flags.h"

#include <stddef.h>

#define FLAG(name, why)                                                                            \
    {                                                                                              \
        name, FM_TAKES_NOTHING, NULL, why                                                          \
    }
#define VALUE(name, why)                                                                           \
    {                                                                                              \
        name, FM_TAKES_VALUE, NULL, why                                                            \
    }
#define MANY(name, why)                                                                            \
    {                                                                                              \
        name, FM_TAKES_MANY, NULL, why                                                             \
    }
#define ONLY(name, harmless, why)                                                                  \
    {                                                                                              \
        name, FM_TAKES_VALUE, harmless, why                                                        \
    }
#define NEVER(name, takes, why)                                                                    \
    {                                                                                              \
        name, FM_TAKES_##takes, "", why                                                            \
    }

#define LAUNCHER "ignored, mpirun or srun starts the ranks and says where"
#define BY_SIZES "ignored, --tp-size, --ep-size and --dp-size say it all"
#define NO_EPLB "experts stay where they are; answers are the same without it"
#define PLANNED "not needed, sizes and places are planned at start"
#define AHEAD "not needed, everything is compiled ahead of time"
#define ALWAYS "always so here"
#define OWN "ignored, fathom has its own kernels"
#define NO_SERVER "ignored, no server is started"
#define NO_SPEC "ignored, drafts come from NGRAM alone; the output is the same"
#define NO_TIER "no second cache tier yet; answers are the same without it"
#define NO_PROF "profiling is not available yet"
#define NO_CODE "not needed, fathom runs no model code"
#define LOGS "ignored, FM_LOG=info,room=debug selects what is logged"

/* clang-format off */
const fm_foreign_flag fm_foreign_flags[] = {
    /* code and weights */
    FLAG ("trust-remote-code", NO_CODE),
    VALUE("model-impl", NO_CODE),
    VALUE("model-loader-extra-config", "ignored, weights are mapped and loaded in parallel"),
    FLAG ("weight-loader-disable-mmap", "ignored, weights are mapped and loaded in parallel"),
    VALUE("download-dir", "nothing is downloaded; give a directory or a name in the Hugging Face cache"),
    ONLY ("revision", "main", "the newest snapshot in the cache is used"),
    ONLY ("tokenizer-mode", "auto|slow|fast|deepseek_v3", "there is one tokenizer, as exact as the reference"),
    VALUE("tokenizer-worker-num", "ignored, tokenising is not the bottleneck"),
    ONLY ("quantization", "fp8|compressed-tensors|none", "the checkpoint's own types are computed with"),
    ONLY ("quantization-param-path", "", "KV scales are not applied"),
    NEVER("torchao-config", VALUE, "the checkpoint's own types are computed with"),
    NEVER("lora-paths", MANY, "adapters are not supported"),
    NEVER("enable-lora", NOTHING, "adapters are not supported"),
    NEVER("is-embedding", NOTHING, "only text generation is supported"),
    NEVER("chat-template", VALUE, "the tokenizer's own layout is used"),
    FLAG ("enable-multimodal", "text models only"),
    FLAG ("delete-ckpt-after-loading", "ignored, the checkpoint is left alone"),
    FLAG ("enable-memory-saver", "ignored, memory is planned before loading"),

    /* ranks and nodes */
    VALUE("nnodes", LAUNCHER),
    VALUE("node-rank", LAUNCHER),
    VALUE("dist-init-addr", LAUNCHER),
    VALUE("nccl-init-addr", LAUNCHER),
    VALUE("nccl-port", LAUNCHER),
    VALUE("dist-timeout", "ignored, --comm-timeout is its name here"),
    VALUE("load-balance-method", "ignored, the replica with the fewest tokens to do is next"),
    VALUE("distributed-executor-backend", LAUNCHER),
    VALUE("attention-context-parallel-size", BY_SIZES),
    VALUE("pp-max-micro-batch-size", "ignored, every stage has a micro-batch, of up to --max-running-requests / --pp-size"),
    VALUE("moe-dense-tp-size", BY_SIZES),
    VALUE("moe-data-parallel-size", BY_SIZES),
    FLAG ("enable-dp-lm-head", BY_SIZES),
    FLAG ("enable-ep-moe", BY_SIZES),
    FLAG ("enable-expert-parallel", BY_SIZES),
    FLAG ("enable-deepep-moe", BY_SIZES),
    FLAG ("enable-two-batch-overlap", OWN),
    FLAG ("enable-single-batch-overlap", OWN),
    VALUE("deepep-mode", OWN),
    VALUE("deepep-config", OWN),
    FLAG ("enable-eplb", NO_EPLB),
    VALUE("eplb-algorithm", NO_EPLB),
    VALUE("eplb-rebalance-num-iterations", NO_EPLB),
    VALUE("ep-num-redundant-experts", NO_EPLB),
    VALUE("ep-dispatch-algorithm", NO_EPLB),
    VALUE("init-expert-location", NO_EPLB),
    FLAG ("disable-custom-all-reduce", OWN),
    FLAG ("enable-nccl-nvls", OWN),
    FLAG ("enable-symm-mem", OWN),
    FLAG ("enable-mscclpp", OWN),
    FLAG ("enable-torch-symm-mem", OWN),
    FLAG ("enable-p2p-check", OWN),
    ONLY ("disaggregation-mode", "null", "prefill and decode share one engine"),

    /* kernels and graphs */
    VALUE("attention-backend", OWN),
    VALUE("prefill-attention-backend", OWN),
    VALUE("decode-attention-backend", OWN),
    VALUE("mm-attention-backend", OWN),
    VALUE("sampling-backend", OWN),
    VALUE("grammar-backend", OWN),
    VALUE("moe-runner-backend", OWN),
    VALUE("moe-a2a-backend", OWN),
    VALUE("fp8-gemm-backend", OWN),
    FLAG ("enable-flashinfer-mla", OWN),
    FLAG ("enable-flashmla", OWN),
    FLAG ("enable-flashinfer-cutlass-moe", OWN),
    FLAG ("flashinfer-mla-disable-ragged", OWN),
    FLAG ("disable-flashinfer-autotune", OWN),
    FLAG ("triton-attention-reduce-in-fp32", OWN),
    VALUE("triton-attention-num-kv-splits", OWN),
    VALUE("num-continuous-decode-steps", OWN),
    FLAG ("disable-shared-experts-fusion", OWN),
    FLAG ("disable-chunked-prefix-cache", OWN),
    FLAG ("disable-mla", "ignored, the cache is always MLA's latent; answers are the same"),
    VALUE("n-share-experts-fusion", OWN),
    FLAG ("disable-cuda-graph-padding", PLANNED),
    FLAG ("enable-profile-cuda-graph", PLANNED),
    FLAG ("enable-cudagraph-gc", PLANNED),
    VALUE("cuda-graph-max-bs", PLANNED),
    MANY ("cuda-graph-bs", PLANNED),
    VALUE("base-gpu-id", PLANNED),
    VALUE("gpu-id-step", PLANNED),
    FLAG ("enforce-eager", PLANNED),
    VALUE("max-seq-len-to-capture", PLANNED),
    VALUE("swap-space", PLANNED),
    VALUE("cpu-offload-gb", PLANNED),
    FLAG ("enable-torch-compile", AHEAD),
    VALUE("torch-compile-max-bs", AHEAD),
    FLAG ("enable-piecewise-cuda-graph", AHEAD),
    FLAG ("disable-piecewise-cuda-graph", AHEAD),
    FLAG ("skip-server-warmup", AHEAD),

    /* scheduler and cache */
    FLAG ("enable-mixed-chunk", ALWAYS),
    FLAG ("enable-chunked-prefill", ALWAYS),
    FLAG ("enable-prefix-caching", ALWAYS),
    VALUE("stream-interval", "ignored, text comes token by token"),
    VALUE("prefill-max-requests", "ignored, --chunked-prefill-size bounds a step"),
    ONLY ("radix-eviction-policy", "lru", "the least recently used prefix goes first"),
    FLAG ("enable-hierarchical-cache", NO_TIER),
    VALUE("hicache-ratio", NO_TIER),
    VALUE("hicache-size", NO_TIER),
    VALUE("hicache-write-policy", NO_TIER),
    VALUE("hicache-io-backend", NO_TIER),
    VALUE("hicache-storage-backend", NO_TIER),
    FLAG ("enable-lmcache", NO_TIER),
    VALUE("swa-full-tokens-ratio", "the model attends to its whole context"),
    FLAG ("allow-auto-truncate", "ignored, a prompt that cannot fit is refused"),
    VALUE("watchdog-timeout", "ignored, a step cannot hang"),
    VALUE("soft-watchdog-timeout", "ignored, a step cannot hang"),

    /* speculation */
    VALUE("speculative-draft-model-path", NO_SPEC),
    VALUE("speculative-token-map", NO_SPEC),
    VALUE("speculative-attention-mode", NO_SPEC),

    /* server, logs, profiles */
    VALUE("host", NO_SERVER),
    VALUE("port", NO_SERVER),
    VALUE("api-key", NO_SERVER),
    VALUE("served-model-name", NO_SERVER),
    VALUE("reasoning-parser", NO_SERVER),
    VALUE("tool-call-parser", NO_SERVER),
    FLAG ("enable-metrics", NO_SERVER),
    FLAG ("enable-cache-report", NO_SERVER),
    VALUE("max-queued-requests", NO_SERVER),
    VALUE("log-level", LOGS),
    VALUE("log-level-http", LOGS),
    FLAG ("log-requests", LOGS),
    VALUE("log-requests-level", LOGS),
    VALUE("decode-log-interval", LOGS),
    FLAG ("show-time-cost", LOGS),
    VALUE("crash-dump-folder", LOGS),
    FLAG ("disable-log-stats", LOGS),
    FLAG ("disable-log-requests", LOGS),
    VALUE("constrained-json-whitespace-pattern", NO_SERVER),
    FLAG ("constrained-json-disable-any-whitespace", NO_SERVER),
    FLAG ("disable-any-whitespace", NO_SERVER),
    FLAG ("disable-outlines-disk-cache", OWN),
    FLAG ("profile", NO_PROF),
    MANY ("profile-activities", NO_PROF),
    VALUE("profile-steps", NO_PROF),
    VALUE("profile-num-steps", NO_PROF),
    VALUE("profile-filename-prefix", NO_PROF),
    FLAG ("profile-record-shapes", NO_PROF),
    ONLY ("backend", "engine|runtime|sglang|fathom", "there is one backend, the engine in this process"),
};
/* clang-format on */
const int fm_n_foreign_flag = (int)(sizeof fm_foreign_flags / sizeof fm_foreign_flags[0]);
