/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/serve.h"

#define K(KIND, field, ...) FM_KNOB(fm_serve_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_serve_knobs[] = {
    K(WORD, host, "host", "127.0.0.1", 0, 0, "ADDRESS", "address to listen on; 0.0.0.0 or :: for all"),
    K(INT, port, "port", "30000", 0, 65535, "N", "port to listen on; 0: any free one, printed at start"),
    K(WORD, api_key, "api-key", NULL, 0, 0, "KEY", "requests must carry it as Authorization: Bearer KEY"),
    K(WORD, served_model_name, "served-model-name", NULL, 0, 0, "NAME", "the model's name in replies"),
    K(WORD, ssl_certfile, "ssl-certfile", NULL, 0, 0, "FILE", "PEM certificate chain; serves HTTPS"),
    K(WORD, ssl_keyfile, "ssl-keyfile", NULL, 0, 0, "FILE", "PEM private key, if not in the certificate's file"),
    K(WORD, cors_origins, "cors-origins", NULL, 0, 0, "LIST", "pages of these origins may use the API, e.g. https://a.example,https://b.example; *: any"),
    K(INT, max_queued_requests, "max-queued-requests", "4096", 0, 1 << 20, "N", "answers that may wait beyond those that run; more get 429"),
    K(REAL, request_timeout, "request-timeout", "0", 0, 1e9, "S", "seconds until a request is given up; 0: never"),
    K(INT, max_connections, "max-connections", "8192", 1, 1 << 20, "N", "connections open at once"),
    K(INT, max_body_mb, "max-body-mb", "32", 1, 4096, "N", "largest request body in MiB"),
    K(INT, tokenizer_worker_num, "tokenizer-worker-num", "2", 1, 64, "N", "threads that read requests and tokenise"),
    K(WORD, reasoning_parser, "reasoning-parser", "auto", 0, 0, "P", "deepseek-r1, deepseek-v3, kimi_k2, none, or auto: by the chat template"),
    K(WORD, tool_call_parser, "tool-call-parser", "auto", 0, 0, "P", "deepseekv3, deepseekv31, kimi_k2, none, or auto: by the chat template"),
    K(WORD, sampling_defaults, "sampling-defaults", "model", 0, 0, "WHOSE", "model: generation_config.json's temperature and cuts where a request has none; openai: 1"),
    K(FLAG, compact_json, "constrained-json-disable-any-whitespace", NULL, 0, 0, NULL, "constrained JSON has no white space"),
    K(FLAG, compact_json, "disable-any-whitespace", NULL, 0, 0, NULL, "the same"),
    K(WORD, json_space, "constrained-json-whitespace-pattern", NULL, 0, 0, "REGEX", "white space between the parts of constrained JSON, where a request has none of its own"),
    K(WORD, profile_dir, "profile-dir", ".", 0, 0, "DIR", "where /start_profile leaves its traces"),
    K(WORD, metrics_prefix, "metrics-prefix", "fathom", 0, 0, "WORD", "of the names at /metrics; sglang for existing dashboards"),
    K(FLAG, incremental_streaming_output, "incremental-streaming-output", NULL, 0, 0, NULL, "/generate streams what is new, not all so far"),
    K(FLAG, log_requests, "log-requests", NULL, 0, 0, NULL, "a JSON line per request on stderr"),
    K(INT, decode_log_interval, "decode-log-interval", "40", 1, 1e9, "N", "a line on stderr for every N steps that generate, and one per prefill; none with --quiet"),
    K(FLAG, enable_metrics, "enable-metrics", NULL, 0, 0, NULL, "accepted; /metrics is always there"),
    K(FLAG, enable_cache_report, "enable-cache-report", NULL, 0, 0, NULL, "accepted; cached tokens are always reported"),
};
/* clang-format on */
const int fm_n_serve_knob = (int)(sizeof fm_serve_knobs / sizeof fm_serve_knobs[0]);
