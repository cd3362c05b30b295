/* SPDX-License-Identifier: Apache-2.0 */
/* Putting the router together, running it, and letting it end. */
#define _GNU_SOURCE
#include "llm/route/route.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "llm/route/route_internal.h"

static const double tick_seconds = 0.01, flush_seconds = 5;

/* A client takes two descriptors, its own connection and the one to its worker; checks, feeds and
 * kept connections need some besides.  Clients beyond that wait to be accepted: without descriptors
 * for the workers all of these would seem to have failed. */
static int most_clients(const fm_route *r)
{
    const int64_t wanted = r->opt->max_connections;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return (int)wanted;
    const int64_t all = files.rlim_cur < INT32_MAX ? (int64_t)files.rlim_cur : INT32_MAX;
    const int64_t own = 32 + all / 64, most = all > own + 2 ? (all - own) / 2 : 1;
    return (int)(most < wanted ? most : wanted);
}

static void say_most_clients(const fm_route *r, int most)
{
    if (most < r->opt->max_connections)
        fm__say(r,
                "at most %d connections of clients instead of %lld, for lack of files (ulimit -n)",
                most, (long long)r->opt->max_connections);
}

static fm_http_options http_options(fm_route *r)
{
    fm_http_options h = fm_http_options_default();
    h.host            = r->opt->host;
    h.port            = (int)r->opt->port;
    h.cert_file       = r->opt->ssl_certfile;
    h.key_file        = r->opt->ssl_keyfile;
    h.max_connections = most_clients(r);
    h.max_body_bytes  = (size_t)r->opt->max_payload_mb << 20;
    h.admit           = fm__route_admit;
    h.handle          = fm__route_handle;
    h.gone            = fm__route_gone;
    h.ended           = fm__route_ended;
    h.refusal         = fm__route_refusal;
    h.ctx             = r;
    return h;
}

/* Texts with a NUL behind each. */
static int count_texts(const fm_str *s)
{
    int n = 0;
    for (size_t i = 0; i < s->len; i++) n += s->text[i] == 0;
    return n;
}

static fm_status take_keys(fm_route *r)
{
    const fm_str *keys = &r->opt->keys;
    r->key             = calloc((size_t)count_texts(keys) + 1, sizeof *r->key);
    if (!r->key) return fm_fail(FM_E_OOM, "API keys");
    for (size_t at = 0; at < keys->len; at += strlen(keys->text + at) + 1) {
        if (!keys->text[at])
            return fm_fail(FM_E_ARG, "--api-key is empty: give a key, or no --api-key for none");
        r->key[r->n_key++] = keys->text + at;
    }
    return FM_OK;
}

static fm_status take_workers(fm_route *r)
{
    const fm_str *urls = &r->opt->urls;
    for (size_t at = 0; at < urls->len; at += strlen(urls->text + at) + 1)
        FM_TRY(fm__roster_add(r, urls->text + at, NULL, 0, NULL));
    FM_TRY(fm__roster_read_file(r));
    return fm__state_read(r);
}

static fm_status check(const fm_route_options *o)
{
    if (o->ssl_keyfile && !o->ssl_certfile)
        return fm_fail(FM_E_ARG, "--ssl-keyfile needs --ssl-certfile");
    if (o->worker_api_key && strpbrk(o->worker_api_key, " \t\r\n"))
        return fm_fail(FM_E_ARG, "--worker-api-key has blanks in it");
    if (*o->health_endpoint != '/')
        return fm_fail(FM_E_ARG, "--health-check-endpoint %.80s does not begin with a slash",
                       o->health_endpoint);
    return fm__facts_check_parsers(o->reasoning_parser, o->tool_call_parser);
}

static fm_status build(fm_route *r)
{
    const fm_route_options *o = r->opt;
    FM_TRY(check(o));
    FM_TRY(fm_route_policy_read(&r->policy, o->policy));
    FM_TRY(fm__cors_init(&r->cors, o->cors_origins));
    FM_TRY(take_keys(r));
    const char *model = o->tokenizer_path ? o->tokenizer_path : o->model_path;
    if (model && r->policy == FM_ROUTE_CACHE_AWARE) FM_TRY(fm__prompts_open(&r->prompts, model, o));
    FM_TRY(fm_loop_create(&r->loop));
    const fm_http_options h = http_options(r);
    FM_TRY(fm_http_create(&r->http, r->loop, &h));
    FM_TRY(take_workers(r));
    say_most_clients(r, h.max_connections);
    return FM_OK;
}

fm_status fm_route_create(fm_route **out, const fm_route_options *opt, const fm_route_hooks *hooks)
{
    fm_route *r = calloc(1, sizeof *r);
    if (!r) return fm_fail(FM_E_OOM, "router");
    r->opt = opt;
    if (hooks) r->hooks = *hooks;
    if (getrandom(&r->random_key, sizeof r->random_key, 0) != sizeof r->random_key)
        r->random_key = (uint64_t)time(NULL);
    r->policy_state.key = r->random_key;
    r->started          = fm_now();
    r->breaker          = (fm_breaker_options){.failures  = (int)opt->breaker_failures,
                                               .successes = (int)opt->breaker_successes,
                                               .seconds   = opt->breaker_seconds};
    const fm_status rc  = build(r);
    if (rc != FM_OK) {
        fm_route_destroy(r);
        return rc;
    }
    *out = r;
    return FM_OK;
}

static void on_signal(void *ctx)
{
    fm_route *r = ctx;
    if (r->draining) {
        r->result = fm_fail(FM_E_CANCELLED, "told twice to stop");
        fm_loop_stop(r->loop);
        return;
    }
    fm__say(r, "told to stop; %d requests under way end first", fm_http_n_exchange(r->http));
    r->draining    = 1;
    r->drain_began = r->quiet_since = fm_now();
    fm_http_drain(r->http);
}

static void on_hangup(void *ctx)
{
    fm_route *r = ctx;
    if (fm__roster_read_file(r) != FM_OK) fm__say(r, "%s", fm_why());
}

/* The last request has ended, and its client has read the reply or had the time to. */
static int has_drained(fm_route *r)
{
    const double now = fm_now();
    if (now - r->drain_began > r->opt->grace_seconds) return 1;
    if (fm_http_n_exchange(r->http)) {
        r->quiet_since = now;
        return 0;
    }
    return !fm_http_n_connection(r->http) || now - r->quiet_since > flush_seconds;
}

static void on_tick(void *ctx)
{
    fm_route *r = ctx;
    fm__health_tick(r);
    fm__progress_tick(r);
    fm__feed_tick(r);
    fm__gathers_tick(r);
    fm__rcalls_tick(r);
    fm__roster_sweep(r);
    if (r->draining && has_drained(r)) fm_loop_stop(r->loop);
}

static void say_ready(const fm_route *r)
{
    char      url[300];
    const int v6 = strchr(r->opt->host, ':') != NULL;
    if (!r->hooks.ready) return;
    snprintf(url, sizeof url, "%s://%s%.200s%s:%d", r->opt->ssl_certfile ? "https" : "http",
             v6 ? "[" : "", r->opt->host, v6 ? "]" : "", fm_http_port(r->http));
    r->hooks.ready(r->hooks.ctx, url);
}

static fm_status start(fm_route *r)
{
    FM_TRY(fm__prompts_start(r));
    FM_TRY(fm_loop_timer(&r->tick, r->loop, tick_seconds, on_tick, r));
    FM_TRY(fm_loop_signal(&r->terminate, r->loop, SIGTERM, on_signal, r));
    FM_TRY(fm_loop_signal(&r->interrupt, r->loop, SIGINT, on_signal, r));
    FM_TRY(fm_loop_signal(&r->hangup, r->loop, SIGHUP, on_hangup, r));
    return fm_http_listen(r->http);
}

fm_status fm_route_run(fm_route *r)
{
    FM_TRY(start(r));
    if (!r->workers) fm__say(r, "there are no workers yet: POST /workers adds one");
    say_ready(r);
    fm_loop_run(r->loop);
    if (r->result == FM_OK)
        fm__say(r, "stopped; %lld requests were passed on", (long long)r->counts.n_request);
    return r->result;
}

void fm_route_destroy(fm_route *r)
{
    if (!r) return;
    r->pumping = 1; /* nothing is sent any more */
    while (r->calls) {
        r->calls->x->user = NULL;
        fm__rcall_drop(r->calls);
    }
    fm_http_destroy(r->http);
    fm__gathers_fini(r);
    for (fm_worker *w = r->workers, *next; w; w = next) {
        next = w->next;
        fm_worker_destroy(w);
    }
    fm__prompts_stop(r);
    fm_loop_event_destroy(r->tick);
    fm_loop_event_destroy(r->terminate);
    fm_loop_event_destroy(r->interrupt);
    fm_loop_event_destroy(r->hangup);
    if (r->loop) fm_loop_destroy(r->loop);
    fm__cors_fini(&r->cors);
    free(r->key);
    free(r);
}
