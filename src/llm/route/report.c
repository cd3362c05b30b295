/* SPDX-License-Identifier: Apache-2.0 */
/* What the router says of itself: Prometheus text, JSON about workers, access log. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "llm/route/route_internal.h"
#include "llm/serve/reply/access.h"
#include "llm/serve/reply/error.h"
#include "llm/serve/reply/write.h"

void fm__say(const fm_route *r, const char *fmt, ...)
{
    char    line[512];
    va_list more;
    if (!r->hooks.say) return;
    const int n = snprintf(line, sizeof line, "fathom route: ");
    va_start(more, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, more);
    va_end(more);
    fm_str text = {0};
    fm_str_printf(&text, "%s\n", line);
    r->hooks.say(r->hooks.ctx, text.text);
    fm_str_fini(&text);
}

/* --- workers as JSON ------------------------------------------------------- */

static void put_differences(fm_str *out, const fm_worker *w)
{
    fm_str           how   = {0}, line = {0};
    const fm_worker *other = fm__worker_differs(&how, w);
    if (other) fm_str_printf(&line, "from worker %d: %s", other->id, how.text);
    fm_str_puts(out, ",\"differs\":");
    fm__put_word(out, line.text);
    fm_str_fini(&how);
    fm_str_fini(&line);
}

void fm__put_worker(fm_str *out, const fm_worker *w)
{
    const fm_worker_counts *n = &w->counts;
    fm_str_printf(out, "{\"id\":%d,\"url\":", w->id);
    fm__put_word(out, w->url);
    fm_str_printf(out,
                  ",\"health\":\"%s\",\"is_healthy\":%s,\"breaker\":\"%s\",\"draining\":%s,"
                  "\"load\":%d,\"requests\":%lld,\"errors\":%lld,\"retries\":%lld,\"resumed\":%lld,"
                  "\"prompt_tokens\":%lld,\"hit_tokens\":%lld,\"cached_pages\":%zu,"
                  "\"expected_pages\":%zu,"
                  "\"prefill_rate\":%.6g,\"row_seconds\":%.6g,\"first_byte_p50\":%g,"
                  "\"first_byte_p99\":%g",
                  fm_worker_health_name(w->health), w->health == FM_WORKER_UP ? "true" : "false",
                  fm_breaker_name(w->breaker.state), w->draining ? "true" : "false", w->n_active,
                  (long long)n->n_request, (long long)n->n_error, (long long)n->n_retry,
                  (long long)n->n_resume, (long long)n->n_prompt_token, (long long)n->n_hit_token,
                  w->feed.pages.n_held, w->feed.pages.n_expected, w->feed.prefill_rate,
                  w->feed.row_seconds, fm_histogram_quantile(&n->first_byte, 0.5),
                  fm_histogram_quantile(&n->first_byte, 0.99));
    fm_str_puts(out, ",\"why\":");
    fm__put_word(out, w->why);
    put_differences(out, w);
    fm_str_puts(out, "}");
}

void fm__put_workers(fm_str *out, const fm_route *r)
{
    int n = 0;
    fm_str_puts(out, "{\"workers\":[");
    for (const fm_worker *w = r->workers; w; w = w->next) {
        if (w->leaving && !w->n_active) continue;
        if (n++) fm_str_puts(out, ",");
        fm__put_worker(out, w);
    }
    fm_str_printf(out, "],\"total\":%d,\"policy\":\"%s\",\"running\":%d,\"queued\":%d}", n,
                  fm_route_policy_name(r->policy), r->n_active, r->n_queued);
}

/* --- Prometheus ------------------------------------------------------------ */

typedef struct {
    const char *name, *type, *help;
    double (*value)(const fm_worker *w);
} worker_metric;

static double up(const fm_worker *w) { return w->health == FM_WORKER_UP; }
static double breaker(const fm_worker *w) { return w->breaker.state; }
static double load(const fm_worker *w) { return w->n_active; }
static double draining(const fm_worker *w) { return w->draining; }
static double requests(const fm_worker *w) { return (double)w->counts.n_request; }
static double errors(const fm_worker *w) { return (double)w->counts.n_error; }
static double retries(const fm_worker *w) { return (double)w->counts.n_retry; }
static double resumed(const fm_worker *w) { return (double)w->counts.n_resume; }
static double probes(const fm_worker *w) { return (double)w->counts.n_probe_failure; }
static double prompt(const fm_worker *w) { return (double)w->counts.n_prompt_token; }
static double hits(const fm_worker *w) { return (double)w->counts.n_hit_token; }

/* clang-format off */
static const worker_metric worker_metrics[] = {
    {"worker_up",                     "gauge",   "1: health checks succeed",                   up},
    {"worker_breaker_state",          "gauge",   "0 closed, 1 open, 2 half open",              breaker},
    {"worker_draining",               "gauge",   "1: gets no new requests",                    draining},
    {"worker_running_requests",       "gauge",   "requests under way",                         load},
    {"worker_requests_total",         "counter", "requests sent",                              requests},
    {"worker_errors_total",           "counter", "requests that failed there",                 errors},
    {"worker_retries_total",          "counter", "requests sent after another try failed",     retries},
    {"worker_resumed_streams_total",  "counter", "streams another worker began",               resumed},
    {"worker_failed_checks_total",    "counter", "health checks that failed",                  probes},
    {"worker_prompt_tokens_total",    "counter", "prompt tokens sent, where they were read",   prompt},
    {"worker_hit_tokens_total",       "counter", "of these, cached there when they were sent", hits},
};
/* clang-format on */

static void put_type(fm_str *out, const char *name, const char *type, const char *help)
{
    fm_str_printf(out, "# HELP fathom_router:%s %s\n# TYPE fathom_router:%s %s\n", name, help, name,
                  type);
}

static void put_labels(fm_str *out, const fm_worker *w)
{
    fm_str_puts(out, "worker=");
    fm__put_word(out, w->url);
}

static void put_worker_metric(fm_str *out, const fm_route *r, const worker_metric *m)
{
    put_type(out, m->name, m->type, m->help);
    for (const fm_worker *w = r->workers; w; w = w->next) {
        fm_str_printf(out, "fathom_router:%s{", m->name);
        put_labels(out, w);
        fm_str_printf(out, "} %.15g\n", m->value(w));
    }
}

static void put_histogram(fm_str *out, const fm_route *r, const char *name, const char *help,
                          int whole)
{
    fm_str full = {0};
    put_type(out, name, "histogram", help);
    fm_str_printf(&full, "fathom_router:%s", name);
    for (const fm_worker *w = r->workers; w; w = w->next) {
        fm_str labels = {0};
        put_labels(&labels, w);
        fm_histogram_write(out, whole ? &w->counts.whole : &w->counts.first_byte, full.text,
                           labels.text);
        fm_str_fini(&labels);
    }
    fm_str_fini(&full);
}

static void put_totals(fm_str *out, const fm_route *r)
{
    const struct {
        const char *name, *type, *help;
        double      value;
    } total[] = {
        {"running_requests", "gauge", "requests at workers", r->n_active},
        {"queued_requests", "gauge", "requests that wait for a worker", r->n_queued},
        {"connections", "gauge", "open connections of clients", fm_http_n_connection(r->http)},
        {"requests_total", "counter", "requests let in", (double)r->counts.n_request},
        {"refused_total", "counter", "requests refused: the queue was full",
         (double)r->counts.n_refused},
        {"rate_limited_total", "counter", "requests refused: too many per second",
         (double)r->counts.n_limited},
        {"retries_total", "counter", "tries after a failed one", (double)r->counts.n_retry},
        {"resumed_streams_total", "counter", "streams that another worker went on with",
         (double)r->counts.n_resume},
        {"failed_total", "counter", "requests that no worker answered", (double)r->counts.n_failed},
        {"uptime_seconds", "gauge", "since the start", fm_now() - r->started},
    };
    for (size_t i = 0; i < sizeof total / sizeof total[0]; i++) {
        put_type(out, total[i].name, total[i].type, total[i].help);
        fm_str_printf(out, "fathom_router:%s %.15g\n", total[i].name, total[i].value);
    }
    put_type(out, "replies_total", "counter", "replies by status");
    for (int i = 1; i < 6; i++)
        fm_str_printf(out, "fathom_router:replies_total{status=\"%dxx\"} %lld\n", i,
                      (long long)r->counts.n_status[i]);
}

void fm__reply_route_metrics(fm_route *r, fm_exchange *x)
{
    fm_str out = {0};
    put_totals(&out, r);
    for (size_t i = 0; i < sizeof worker_metrics / sizeof worker_metrics[0]; i++)
        put_worker_metric(&out, r, &worker_metrics[i]);
    put_histogram(&out, r, "worker_first_byte_seconds", "from sending to the reply's head", 0);
    put_histogram(&out, r, "worker_request_seconds", "from sending to the reply's end", 1);
    fm_exchange_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, out.text, out.len);
    fm_str_fini(&out);
}

/* --- the access log -------------------------------------------------------- */

void fm__log_access(const fm_route *r, const fm_exchange *x)
{
    const fm__rcall *c    = x->user;
    fm_str           line = {0};
    fm__put_access(&line, x);
    if (c) {
        fm_str_printf(&line,
                      ",\"tries\":%d,\"resumed\":%d,\"output_tokens\":%zu,\"worker\":", c->n_tries,
                      c->n_resume, fm_relay_tokens_total(&c->tokens));
        fm__put_word(&line, c->worker ? c->worker->url : NULL);
    }
    fm_str_puts(&line, "}\n");
    r->hooks.access(r->hooks.ctx, line.text);
    fm_str_fini(&line);
}
