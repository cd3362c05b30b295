/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/route.h"

#define K(KIND, field, ...) FM_KNOB(fm_route_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_route_knobs[] = {
    K(WORD, worker_url, "worker", NULL, 0, 0, "URL", "a worker, e.g. http://a:30000; may be given many times"),
    K(WORD, worker_urls, "worker-urls", NULL, 0, 0, "URL ...", "workers, as SGLang's router takes them"),
    K(WORD, worker_file, "worker-file", NULL, 0, 0, "FILE", "a URL per line, and behind it that worker's API key if it has its own; read again on SIGHUP"),
    K(WORD, state_file, "state-file", NULL, 0, 0, "FILE", "keeps workers that joined by request, and who drains, over a restart of the router"),
    K(WORD, worker_api_key, "worker-api-key", NULL, 0, 0, "KEY", "workers are asked with this key"),
    K(WORD, host, "host", "127.0.0.1", 0, 0, "ADDRESS", "address to listen on; 0.0.0.0 or :: for all"),
    K(INT, port, "port", "30000", 0, 65535, "N", "port to listen on; 0: any free one, printed at start"),
    K(WORD, api_key, "api-key", NULL, 0, 0, "KEY", "requests must carry it as Authorization: Bearer KEY; may be given many times"),
    K(WORD, ssl_certfile, "ssl-certfile", NULL, 0, 0, "FILE", "PEM certificate chain; serves HTTPS"),
    K(WORD, ssl_keyfile, "ssl-keyfile", NULL, 0, 0, "FILE", "PEM private key, if not in the certificate's file"),
    K(WORD, cors_origins, "cors-origins", NULL, 0, 0, "LIST", "pages of these origins may use the API; *: any"),
    K(WORD, policy, "policy", "cache_aware", 0, 0, "P", "who answers: cache_aware, round_robin, random, power_of_two, least_load"),
    K(WORD, model_path, "model-path", NULL, 0, 0, "DIR", "the workers' model, for its tokenizer; without it, the path that the first worker names"),
    K(WORD, tokenizer_path, "tokenizer-path", NULL, 0, 0, "DIR", "the workers' tokenizer, if it lies elsewhere"),
    K(WORD, reasoning_parser, "reasoning-parser", "auto", 0, 0, "P", "as the workers have it"),
    K(WORD, tool_call_parser, "tool-call-parser", "auto", 0, 0, "P", "as the workers have it"),
    K(INT, max_concurrent, "max-concurrent-requests", "0", -1, 1 << 20, "N", "requests under way at workers; more wait; 0 or -1: no limit"),
    K(INT, max_concurrent_per_worker, "max-concurrent-per-worker", "0", 0, 1 << 20, "N", "the same at one worker"),
    K(INT, queue_size, "queue-size", "4096", 0, 1 << 20, "N", "requests that may wait; more get 429"),
    K(REAL, queue_timeout, "queue-timeout-secs", "60", 0, 1e9, "S", "seconds a request waits for a worker before it gets 503"),
    K(REAL, rate_limit, "rate-limit-tokens-per-second", "0", 0, 1e9, "N", "requests per second that are let in, a second's worth at once; more get 429; 0: no limit"),
    K(INT, retries, "retry-max-retries", "5", 0, 1000, "N", "further tries of a request whose worker failed"),
    K(REAL, backoff_first_ms, "retry-initial-backoff-ms", "50", 0, 1e9, "MS", "before the second try"),
    K(REAL, backoff_most_ms, "retry-max-backoff-ms", "5000", 0, 1e9, "MS", "before any"),
    K(REAL, backoff_growth, "retry-backoff-multiplier", "2", 1, 100, "X", "from one try to the next"),
    K(REAL, backoff_jitter, "retry-jitter-factor", "0.1", 0, 1, "X", "share of the time that is random"),
    K(FLAG, no_retries, "disable-retries", NULL, 0, 0, NULL, "one try per request, no failover"),
    K(INT, breaker_failures, "cb-failure-threshold", "5", 1, 1000, "N", "failures in a row after which a worker gets no requests"),
    K(INT, breaker_successes, "cb-success-threshold", "2", 1, 1000, "N", "successes in a row after which it gets all again"),
    K(REAL, breaker_seconds, "cb-timeout-duration-secs", "30", 0, 1e9, "S", "until it is tried again"),
    K(FLAG, no_breaker, "disable-circuit-breaker", NULL, 0, 0, NULL, "failures do not keep requests away from a worker"),
    K(INT, health_up, "health-success-threshold", "2", 1, 1000, "N", "good health checks after which a worker is up"),
    K(INT, health_down, "health-failure-threshold", "3", 1, 1000, "N", "bad ones after which it is down and its requests move"),
    K(REAL, health_seconds, "health-check-timeout-secs", "2", 0.01, 1e6, "S", "for one check"),
    K(REAL, health_interval, "health-check-interval-secs", "1", 0.01, 1e6, "S", "between checks of a worker that is well"),
    K(WORD, health_endpoint, "health-check-endpoint", "/health", 0, 0, "PATH", "asked by the checks"),
    K(REAL, connect_seconds, "connect-timeout-secs", "5", 0, 1e6, "S", "to connect to a worker; 0: no limit"),
    K(REAL, first_byte_seconds, "first-byte-timeout-secs", "0", 0, 1e6, "S", "until a worker begins its reply; 0: no limit"),
    K(REAL, idle_seconds, "stream-idle-timeout-secs", "0", 0, 1e6, "S", "without a byte inside a reply; 0: no limit"),
    K(REAL, request_seconds, "request-timeout-secs", "1800", 0, 1e9, "S", "for a request as a whole; 0: no limit"),
    K(REAL, grace_seconds, "shutdown-grace-period-secs", "180", 0, 1e9, "S", "that requests under way get when the router is told to stop"),
    K(INT, max_connections, "max-connections", "16384", 1, 1 << 20, "N", "connections of clients open at once"),
    K(INT, max_payload_mb, "max-body-mb", "32", 1, 4096, "N", "largest request body in MiB"),
    K(FLAG, log_requests, "log-requests", NULL, 0, 0, NULL, "a JSON line per request on stderr"),
};
/* clang-format on */
const int fm_n_route_knob = (int)(sizeof fm_route_knobs / sizeof fm_route_knobs[0]);
