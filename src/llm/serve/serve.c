/* SPDX-License-Identifier: Apache-2.0 */
/* Putting the server together, running it, and letting it end. */
#define _GNU_SOURCE
#include "llm/serve/serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "llm/serve/loop/responses_store.h"
#include "llm/serve/loop/serve_internal.h"

static const double tick_seconds = 0.05, flush_seconds = 5;

static fm_http_options http_options(fm_serve *s)
{
    fm_http_options h = fm_http_options_default();
    h.host            = s->opt->host;
    h.port            = (int)s->opt->port;
    h.cert_file       = s->opt->ssl_certfile;
    h.key_file        = s->opt->ssl_keyfile;
    h.max_connections = (int)s->opt->max_connections;
    h.max_body_bytes  = (size_t)s->opt->max_body_mb << 20;
    h.admit           = fm__serve_admit;
    h.handle          = fm__serve_handle;
    h.gone            = fm__serve_gone;
    h.ended           = fm__serve_ended;
    h.refusal         = fm__serve_refusal;
    h.ctx             = s;
    return h;
}

fm_status fm_serve_create(fm_serve **out, const fm_serve_options *opt, const fm_options *engine_opt,
                          const fm_serve_hooks *hooks)
{
    FM_TRY(fm__facts_check_words(opt));
    if (opt->ssl_keyfile && !opt->ssl_certfile)
        return fm_fail(FM_E_ARG, "--ssl-keyfile needs --ssl-certfile");
    if (opt->api_key && !*opt->api_key)
        return fm_fail(FM_E_ARG, "--api-key is empty: give a key, or no --api-key for none");
    fm_serve *s = calloc(1, sizeof *s);
    if (!s) return fm_fail(FM_E_OOM, "server");
    s->opt        = opt;
    s->engine_opt = engine_opt;
    if (hooks) s->hooks = *hooks;
    s->next_id = 1;
    if (getrandom(&s->key, sizeof s->key, 0) != sizeof s->key) s->key = (uint64_t)time(NULL);
    fm__metrics_init(&s->metrics);
    const fm_http_options h  = http_options(s);
    fm_status             rc = fm_loop_create(&s->loop);
    if (rc == FM_OK) rc = fm__cors_init(&s->cors, opt->cors_origins);
    if (rc == FM_OK) rc = fm__responses_create(&s->responses);
    if (rc == FM_OK) rc = fm_http_create(&s->http, s->loop, &h);
    if (rc != FM_OK) {
        fm_serve_destroy(s);
        return rc;
    }
    *out = s;
    return FM_OK;
}

static void say_ending(const fm_serve *s, const char *words, int64_t n, const char *of_what)
{
    char line[160];
    snprintf(line, sizeof line, "fathom serve: %s; %lld %s\n", words, (long long)n, of_what);
    if (s->hooks.ending) s->hooks.ending(s->hooks.ctx, line);
}

/* No more requests; those under way end. */
static void drain(fm_serve *s, const char *why)
{
    say_ending(s, why, fm_http_n_exchange(s->http), "requests under way end first");
    s->draining    = 1;
    s->drain_began = fm_now();
    fm_http_drain(s->http);
}

static void on_signal(void *ctx)
{
    fm_serve *s = ctx;
    if (!s->draining) {
        drain(s, "told to stop");
        return;
    }
    s->result = fm_fail(FM_E_CANCELLED, "told twice to stop");
    fm_loop_stop(s->loop);
}

/* A shell and the kernel both send it, so a second one means nothing. */
static void on_hangup(void *ctx)
{
    fm_serve *s = ctx;
    if (!s->draining) drain(s, "the terminal is gone, stopping");
}

static fm_status watch_hangup(fm_serve *s)
{
    struct sigaction now;
    if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN) return FM_OK; /* nohup */
    return fm_loop_signal(&s->hangup, s->loop, SIGHUP, on_hangup, s);
}

static void on_tick(void *ctx)
{
    fm_serve *s = ctx;
    fm__calls_check_time(s);
    fm__calls_flush(s); /* those that waited for their client to read */
    if (!s->draining || fm_http_n_exchange(s->http) > 0) {
        s->drain_began = fm_now();
        return;
    }
    /* The last bytes are on their way; a client that does not read is not waited for. */
    if (!fm_http_n_connection(s->http) || fm_now() - s->drain_began > flush_seconds)
        fm_loop_stop(s->loop);
}

static void say_ready(const fm_serve *s)
{
    char url[300];
    if (!s->hooks.ready) return;
    const int v6 = strchr(s->opt->host, ':') != NULL;
    snprintf(url, sizeof url, "%s://%s%.200s%s:%d", s->opt->ssl_certfile ? "https" : "http",
             v6 ? "[" : "", s->opt->host, v6 ? "]" : "", fm_http_port(s->http));
    s->hooks.ready(s->hooks.ctx, url);
}

static fm_status start(fm_serve *s)
{
    s->max_running = fm_engine_max_running(s->engine);
    s->started     = fm_now();
    s->started_at  = (int64_t)time(NULL);
    FM_TRY(fm__facts_fill(s));
    FM_TRY(fm_loop_bell(&s->bell, s->loop, fm__calls_bell, s));
    FM_TRY(fm_loop_timer(&s->tick, s->loop, tick_seconds, on_tick, s));
    FM_TRY(fm_loop_signal(&s->terminate, s->loop, SIGTERM, on_signal, s));
    FM_TRY(fm_loop_signal(&s->interrupt, s->loop, SIGINT, on_signal, s));
    FM_TRY(watch_hangup(s));
    FM_TRY(fm__workers_start(&s->workers, (int)s->opt->tokenizer_worker_num, &s->facts, s->bell));
    FM_TRY(fm__engine_start(&s->engine_thread, s->engine, s->bell,
                            s->hooks.batch ? (int)s->opt->decode_log_interval : 0));
    return fm_http_listen(s->http);
}

static void drop_all(fm_serve *s, const fm__call_list *list)
{
    for (fm__call *c; (c = list->first);) {
        c->x->user = NULL;
        fm__call_drop(s, c);
    }
}

static void stop(fm_serve *s)
{
    fm__workers_stop(s->workers);
    drop_all(s, &s->reading);
    drop_all(s, &s->calls);
    drop_all(s, &s->asides);
    fm__engine_stop(s->engine_thread);
    s->workers       = NULL;
    s->engine_thread = NULL;
}

fm_status fm_serve_run(fm_serve *s, fm_engine *e)
{
    s->engine    = e;
    s->result    = FM_OK;
    fm_status rc = start(s);
    if (rc == FM_OK) {
        say_ready(s);
        fm_loop_run(s->loop);
        rc = s->result;
        if (rc == FM_E_CANCELLED) return rc; /* threads may be deep in a step */
    }
    stop(s);
    if (rc == FM_OK) say_ending(s, "stopped", s->metrics.n_request, "answers were given");
    return rc;
}

void fm_serve_destroy(fm_serve *s)
{
    if (!s) return;
    fm_http_destroy(s->http);
    fm_loop_event_destroy(s->bell);
    fm_loop_event_destroy(s->tick);
    fm_loop_event_destroy(s->terminate);
    fm_loop_event_destroy(s->interrupt);
    fm_loop_event_destroy(s->hangup);
    fm_loop_destroy(s->loop);
    fm__cors_fini(&s->cors);
    fm_id_table_fini(&s->by_id);
    fm_id_table_fini(&s->by_name);
    fm__responses_destroy(s->responses);
    fm__outbox_fini(&s->from_engine);
    free(s);
}
