/* SPDX-License-Identifier: Apache-2.0 */
/* The server: an engine behind HTTP, in the dialects of OpenAI, SGLang,
 * Anthropic and Ollama.
 *
 *     loop thread        worker threads          engine thread
 *     ───────────        ──────────────          ─────────────
 *     HTTP request ────> JSON, template,
 *     admission   <────  tokens
 *         └────────────────────────────────────> submit, step
 *     SSE, JSON   <──────────────────────────────  events
 *
 * The loop owns every call from its first byte to its last; the others get
 * messages and send messages.  A client that leaves cancels its call, and one
 * that reads too slowly is cut off: neither can hold up the engine. */
#ifndef FM_LLM_SERVE_SERVE_H
#define FM_LLM_SERVE_SERVE_H

#include "base/knobs.h"
#include "base/status.h"
#include "llm/engine.h"

typedef struct {
    char   *host, *api_key, *served_model_name;
    char   *ssl_certfile, *ssl_keyfile;
    char   *cors_origins;
    char   *profile_dir;
    char   *reasoning_parser, *tool_call_parser, *sampling_defaults, *metrics_prefix;
    int64_t port, max_queued_requests, max_connections, max_body_mb, tokenizer_worker_num, decode_log_interval;
    double  request_timeout;
    char   *json_space;
    int     compact_json;
    int     log_requests, incremental_streaming_output, enable_metrics, enable_cache_report;
} fm_serve_options;

extern const fm_knob fm_serve_knobs[];
extern const int     fm_n_serve_knob;

typedef struct fm_serve fm_serve;

typedef struct {
    void (*ready)(void *ctx, const char *url);   /* it listens; or NULL */
    void (*access)(void *ctx, const char *line); /* one JSON line per request; or NULL */
    void (*ending)(void *ctx, const char *line); /* it was told to stop, it has stopped; or NULL */
    void (*batch)(void *ctx, const char *lines); /* what the engine did; or NULL */
    void *ctx;
} fm_serve_hooks;

/* Binds the address and reads the certificate, so that what is wrong with
 * them shows before a model is loaded.  Options and hooks are borrowed. */
fm_status fm_serve_create(fm_serve **out, const fm_serve_options *opt, const fm_options *engine_opt,
                          const fm_serve_hooks *hooks);

/* Serves until SIGTERM, SIGINT or SIGHUP: then no new requests, those under way end,
 * FM_OK.  A second SIGTERM or SIGINT: FM_E_CANCELLED at once, with threads still at
 * work; the caller can only _exit().  SIGHUP, the loss of the terminal, may come more
 * than once and never cuts anything short; where it is ignored (nohup), it stays so.
 * The engine is the caller's again afterwards. */
fm_status fm_serve_run(fm_serve *s, fm_engine *e);
void      fm_serve_destroy(fm_serve *s); /* NULL is fine */

#endif
