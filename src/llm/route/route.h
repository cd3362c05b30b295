/* SPDX-License-Identifier: Apache-2.0 */
/* The router: one address in front of many servers (workers).
 *
 *     client ──> gate ──> queue ──policy──> worker ──stream──> client
 *                                              │ dies or hangs
 *                                              └──> another worker goes on
 *
 * One thread and one event loop own every request.  Replies are passed on as they
 * arrive.  A worker of ours tells with each piece of a stream which tokens it was made
 * of (relay/frame.h), so that when it is lost another worker can be asked for the rest;
 * greedy and seeded answers do not depend on who computes them, so the client sees one
 * stream.  Workers of other makes are passed through as they are. */
#ifndef FM_LLM_ROUTE_ROUTE_H
#define FM_LLM_ROUTE_ROUTE_H

#include "base/knobs.h"
#include "base/status.h"
#include "base/str.h"

typedef struct {
    char   *host, *ssl_certfile, *ssl_keyfile, *cors_origins;
    char   *api_key, *worker_url, *worker_urls, *worker_file, *worker_api_key, *state_file;
    char   *policy, *model_path, *tokenizer_path, *reasoning_parser, *tool_call_parser;
    char   *health_endpoint;
    int64_t port, max_connections, max_payload_mb;
    int64_t max_concurrent, max_concurrent_per_worker, queue_size;
    double  queue_timeout, rate_limit;
    int64_t retries;
    double  backoff_first_ms, backoff_most_ms, backoff_growth, backoff_jitter;
    int     no_retries, no_breaker;
    int64_t breaker_failures, breaker_successes;
    double  breaker_seconds;
    int64_t health_up, health_down;
    double  health_seconds, health_interval, hang_seconds;
    double  connect_seconds, first_byte_seconds, idle_seconds, request_seconds, grace_seconds;
    int     log_requests;
    fm_str  keys, urls; /* every --api-key and --worker, a NUL behind each */
} fm_route_options;

extern const fm_knob fm_route_knobs[];
extern const int     fm_n_route_knob;

typedef struct fm_route fm_route;

typedef struct {
    void (*ready)(void *ctx, const char *url);   /* it listens; or NULL */
    void (*access)(void *ctx, const char *line); /* one JSON line per request; or NULL */
    void (*say)(void *ctx, const char *line);    /* workers come and go, the end; or NULL */
    void *ctx;
} fm_route_hooks;

/* Binds the address, reads the list of workers.  Options and hooks are borrowed. */
fm_status fm_route_create(fm_route **out, const fm_route_options *opt, const fm_route_hooks *hooks);

/* Routes until SIGTERM or SIGINT: then no new requests, and those under way end.  A second
 * one: FM_E_CANCELLED at once.  SIGHUP reads the file of workers again. */
fm_status fm_route_run(fm_route *r);
void      fm_route_destroy(fm_route *r); /* NULL is fine */

#endif
