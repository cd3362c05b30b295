/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_online.h"

#define K(KIND, field, ...) FM_KNOB(fm_online_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_online_knobs[] = {
    K(WORD, base_url, "base-url", NULL, 0, 0, "URL", "measure the server at this address, e.g. http://127.0.0.1:30000"),
    K(FLAG, online, "online", NULL, 0, 0, NULL, "measure the server at --host and --port"),
    K(WORD, host, "host", "127.0.0.1", 0, 0, "ADDRESS", "of the server, with --online"),
    K(INT, port, "port", "30000", 1, 65535, "N", "of the server, with --online"),
    K(WORD, backend, "backend", NULL, 0, 0, "NAME",
      "how to ask: sglang (/generate), sglang-oai (/v1/completions) or sglang-oai-chat (/v1/chat/completions)"),
    K(WORD, request_rate, "request-rate", "inf", 0, 0, "R", "requests per second, with random gaps; inf: all at once"),
    K(INT, max_concurrency, "max-concurrency", "0", 0, 1 << 20, "N", "requests in flight; 0: no limit"),
    K(INT, warmup_requests, "warmup-requests", "1", 0, 1 << 20, "N", "requests before the clock starts"),
    K(FLAG, flush_cache, "flush-cache", NULL, 0, 0, NULL, "empty the server's prefix cache after the warm-up"),
    K(FLAG, cache_report, "cache-report", NULL, 0, 0, NULL, "print how many prompt tokens the server found in its cache, and where"),
    K(FLAG, disable_stream, "disable-stream", NULL, 0, 0, NULL, "ask for whole answers"),
    K(REAL, temperature, "temperature", "0", 0, 100, "T", "of every request"),
    K(REAL, top_p, "top-p", "1", 0, 1, "P", "of every request"),
    K(WORD, served_model_name, "served-model-name", NULL, 0, 0, "NAME", "the model to ask for; without it, the server's first"),
    K(WORD, api_key, "api-key", NULL, 0, 0, "KEY", "sent as Authorization: Bearer KEY"),
    K(WORD, header, "header", NULL, 0, 0, "NAME=VALUE", "a header of every request"),
    K(REAL, timeout, "request-timeout", "21600", 1, 1e7, "S", "a request fails when nothing is heard for so long"),
    K(WORD, output_file, "output-file", NULL, 0, 0, "FILE", "append the result as one JSON line, as --result-filename does"),
    K(WORD, tag, "tag", NULL, 0, 0, "TEXT", "a name in the JSON line"),
};
/* clang-format on */
const int fm_n_online_knob = (int)(sizeof fm_online_knobs / sizeof fm_online_knobs[0]);
