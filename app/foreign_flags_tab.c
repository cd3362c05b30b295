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
#define NO_SPEC "ignored, drafts come from the MTP layer or the request's text; the output is the same"
#define NO_TIER "not built in; --hicache-storage-backend file keeps prefixes in a directory"
#define NO_PROF "ignored, a trace has everything and is small"
#define PROFILE "bench records its timed call, a server by /start_profile, every command by --trace FILE"
#define NO_CODE "not needed, fathom runs no model code"
#define LOGS "ignored, FM_LOG=info,room=debug selects what is logged"
#define ONE_ENGINE "prefill and decode share one engine"
#define LISTED "list workers in --worker-file, or let them join by POST /workers"
#define KEPT "responses are kept by the worker that gave them"
#define KEYS "requests are let in by --api-key"
#define NO_SPANS "no spans are exported; traceparent is passed on to workers"
#define ROUTED "ignored, the router knows what workers have cached and weighs it against their load"

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
    VALUE("hicache-io-backend", "ignored, pages are copied by DMA"),
    VALUE("hicache-mem-layout", "ignored, a page lies in one piece in host memory and in its file"),
    VALUE("hicache-storage-prefetch-policy", "ignored, a prefix is loaded if that takes less time than computing it"),
    VALUE("hicache-storage-backend-extra-config", "ignored, --hicache-storage-dir and --hicache-storage-size say it all"),
    FLAG ("enable-lmcache", NO_TIER),
    VALUE("swa-full-tokens-ratio", "the model attends to its whole context"),
    FLAG ("allow-auto-truncate", "ignored, a prompt that cannot fit is refused"),
    VALUE("watchdog-timeout", "ignored, a step cannot hang"),
    VALUE("soft-watchdog-timeout", "ignored, a step cannot hang"),

    /* speculation */
    VALUE("speculative-draft-model-path", NO_SPEC),
    VALUE("speculative-token-map", NO_SPEC),
    VALUE("speculative-attention-mode", NO_SPEC),
    VALUE("speculative-draft-model-revision", NO_SPEC),
    VALUE("speculative-draft-model-quantization", NO_SPEC),
    VALUE("speculative-draft-attention-backend", OWN),
    VALUE("speculative-draft-kv-cache-dtype", "ignored, the MTP layer's cache has the type of the others; the output is the same"),
    FLAG ("speculative-use-rejection-sampling", "not needed, a draft is accepted if it is what would have been sampled there: not only the distribution is the same"),
    ONLY ("speculative-accept-threshold-single", "1|1.0", "a draft is accepted only if it is what would have been sampled, which is 1.0; less changes the output"),
    ONLY ("speculative-accept-threshold-acc", "1|1.0", "a draft is accepted only if it is what would have been sampled, which is 1.0; less changes the output"),
    VALUE("speculative-ngram-capacity", "not needed, the index is of the request's own text and no longer than that"),
    VALUE("speculative-ngram-match-type", "ignored, the longest match is drafted from, of equal ones the newest; the output is the same"),
    VALUE("speculative-ngram-min-bfs-breadth", "ignored, drafts are a chain; the output is the same"),
    VALUE("speculative-ngram-max-bfs-breadth", "ignored, drafts are a chain; the output is the same"),

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
    FLAG ("profile", PROFILE),
    MANY ("profile-activities", NO_PROF),
    VALUE("profile-steps", NO_PROF),
    VALUE("profile-num-steps", NO_PROF),
    VALUE("profile-filename-prefix", PROFILE),
    FLAG ("profile-record-shapes", NO_PROF),
    ONLY ("backend", "engine|runtime|sglang|fathom", "there is one backend, the engine in this process"),
    /* SGLang's router */
    VALUE("cache-threshold", ROUTED),
    VALUE("balance-abs-threshold", ROUTED),
    VALUE("balance-rel-threshold", ROUTED),
    VALUE("eviction-interval-secs", ROUTED),
    VALUE("max-tree-size", ROUTED),
    VALUE("worker-startup-timeout-secs", "workers may come at any time"),
    VALUE("worker-startup-check-interval", "workers may come at any time"),
    VALUE("cb-window-duration-secs", "the circuit breaker counts failures in a row"),
    VALUE("prometheus-port", "metrics are at /metrics of the router's own port"),
    VALUE("prometheus-host", "metrics are at /metrics of the router's own port"),
    VALUE("max-payload-size", "--max-body-mb bounds the body"),
    MANY ("request-id-headers", "x-request-id is read and passed on"),
    VALUE("bucket-adjust-interval-secs", ROUTED),
    VALUE("max-idle-secs", ROUTED),
    VALUE("assignment-mode", ROUTED),
    FLAG ("dp-aware", "replicas inside a worker are balanced by the worker"),
    FLAG ("disable-health-check", "ignored, workers are always checked: streams move when one hangs"),
    VALUE("log-dir", "ignored, logs go to standard error"),
    MANY ("prometheus-duration-buckets", "ignored, histograms have fixed buckets"),
    FLAG ("tokenizer-cache-enable-l0", "not needed, tokenising is not the bottleneck"),
    VALUE("tokenizer-cache-l0-max-entries", "not needed, tokenising is not the bottleneck"),
    FLAG ("tokenizer-cache-enable-l1", "not needed, tokenising is not the bottleneck"),
    VALUE("tokenizer-cache-l1-max-memory", "not needed, tokenising is not the bottleneck"),
    FLAG ("enable-trace", NO_SPANS),
    VALUE("otlp-traces-endpoint", NO_SPANS),
    FLAG ("control-plane-audit-enabled", "changes of the table of workers are always logged"),
    ONLY ("history-backend", "memory|none", KEPT),
    NEVER("oracle-wallet-path", VALUE, KEPT),
    NEVER("oracle-tns-alias", VALUE, KEPT),
    NEVER("oracle-connect-descriptor", VALUE, KEPT),
    NEVER("oracle-username", VALUE, KEPT),
    NEVER("oracle-password", VALUE, KEPT),
    NEVER("oracle-pool-min", VALUE, KEPT),
    NEVER("oracle-pool-max", VALUE, KEPT),
    NEVER("oracle-pool-timeout-secs", VALUE, KEPT),
    NEVER("postgres-db-url", VALUE, KEPT),
    NEVER("postgres-pool-max", VALUE, KEPT),
    NEVER("redis-url", VALUE, KEPT),
    NEVER("redis-pool-max", VALUE, KEPT),
    NEVER("redis-retention-days", VALUE, KEPT),
    NEVER("mcp-config-path", VALUE, "tools are called by the client"),
    NEVER("enable-igw", NOTHING, "a router has one model"),
    NEVER("pd-disaggregation", NOTHING, ONE_ENGINE),
    NEVER("mini-lb", NOTHING, ONE_ENGINE),
    NEVER("prefill", MANY, ONE_ENGINE),
    NEVER("decode", VALUE, ONE_ENGINE),
    NEVER("prefill-policy", VALUE, ONE_ENGINE),
    NEVER("decode-policy", VALUE, ONE_ENGINE),
    NEVER("prefill-selector", MANY, ONE_ENGINE),
    NEVER("decode-selector", MANY, ONE_ENGINE),
    NEVER("service-discovery", NOTHING, LISTED),
    NEVER("service-discovery-port", VALUE, LISTED),
    NEVER("service-discovery-namespace", VALUE, LISTED),
    NEVER("selector", MANY, LISTED),
    NEVER("client-cert-path", VALUE, KEYS),
    NEVER("client-key-path", VALUE, KEYS),
    NEVER("ca-cert-paths", MANY, "workers' certificates are checked against the system's authorities (SSL_CERT_FILE)"),
    NEVER("control-plane-api-keys", MANY, KEYS),
    NEVER("jwt-issuer", VALUE, KEYS),
    NEVER("jwt-audience", VALUE, KEYS),
    NEVER("jwt-jwks-uri", VALUE, KEYS),
    NEVER("jwt-role-mapping", MANY, KEYS),
};
/* clang-format on */
const int fm_n_foreign_flag = (int)(sizeof fm_foreign_flags / sizeof fm_foreign_flags[0]);
