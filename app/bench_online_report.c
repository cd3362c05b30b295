/* SPDX-License-Identifier: Apache-2.0 */
/* The table, the JSON line and the details; rows and keys as bench_serving's. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>

#include "bench_online.h"
#include "output_file.h"

static void print_text(const char *name, const char *text) { printf("%-40s %-10s\n", name, text); }

static void print_count(const char *name, int64_t n)
{
    printf("%-40s %-10lld\n", name, (long long)n);
}

static void print_real(const char *name, double x) { printf("%-40s %-10.2f\n", name, x); }

/* As Python writes a float: inf, 4.0, 2.5 */
static void rate_text(char out[32], double rate)
{
    if (isinf(rate))
        snprintf(out, 32, "inf");
    else
        snprintf(out, 32, rate == floor(rate) && rate < 1e15 ? "%.1f" : "%.10g", rate);
}

static void print_head(const fm_online_result *r)
{
    char text[32];
    printf("\n============ Serving Benchmark Result ============\n");
    print_text("Backend:", r->backend);
    rate_text(text, r->rate);
    print_text("Traffic request rate:", text);
    if (r->online->max_concurrency)
        print_count("Max request concurrency:", r->online->max_concurrency);
    else
        print_text("Max request concurrency:", "not set");
    print_count("Successful requests:", r->m.completed);
    if (r->m.failed) print_count("Failed requests:", r->m.failed);
    fm_bench_print_changes(&r->changes, r->rows->n);
    print_real("Benchmark duration (s):", r->m.duration);
}

static void print_tokens(const fm_online_metrics *m)
{
    print_count("Total input tokens:", m->n_input);
    print_count("Total input text tokens:", m->n_input);
    print_count("Total generated tokens:", m->n_output);
    if (m->n_retokenized >= 0)
        print_count("Total generated tokens (retokenized):", m->n_retokenized);
    else
        print_text("Total generated tokens (retokenized):", "n/a");
    print_real("Request throughput (req/s):", m->request_throughput);
    print_real("Input token throughput (tok/s):", m->input_throughput);
    print_real("Output token throughput (tok/s):", m->output_throughput);
    print_real("Peak output token throughput (tok/s):", m->max_output_per_s);
    print_count("Peak concurrent requests:", m->max_concurrent);
    print_real("Total token throughput (tok/s):", m->total_throughput);
    print_real("Concurrency:", m->concurrency);
    if (!isnan(m->accept_length)) print_real("Accept length:", m->accept_length);
    if (!isnan(m->accept_rate)) print_real("Accept rate:", m->accept_rate);
}

static void print_spread(const char *title, const char *name, const fm_spread *s, int with_max)
{
    const struct {
        const char *what;
        double      x;
    } row[] = {{"Mean", s->mean}, {"Median", s->median}, {"P90", s->p90},
               {"P95", s->p95},   {"P99", s->p99},       {"Max", s->max}};
    printf("%s\n", title);
    for (int i = 0; i < 5 + with_max; i++) {
        char label[48];
        snprintf(label, sizeof label, "%s %s (ms):", row[i].what, name);
        print_real(label, row[i].x);
    }
}

static void print_share(const char *name, int64_t part, int64_t whole)
{
    printf("%-40s %.1f%%\n", name, whole > 0 ? 100.0 * (double)part / (double)whole : 0.0);
}

static void print_cached(const fm_online_metrics *m)
{
    const fm_online_cached *c         = &m->cached;
    const int               has_parts = c->has_parts && c->all > 0;
    printf("----------------Cache Hit Details-----------------\n");
    print_count("Total prompt tokens:", m->n_input);
    print_count("Total cached tokens:", c->all);
    if (has_parts) print_count("  Device:", c->device);
    if (has_parts) print_count("  Host:", c->host);
    if (has_parts && c->storage) print_count("  Storage:", c->storage);
    print_share("Cache hit rate:", c->all, m->n_input);
    if (has_parts) print_share("  Device:", c->device, c->all);
    if (has_parts) print_share("  Host:", c->host, c->all);
    if (has_parts && c->storage) print_share("  Storage:", c->storage, c->all);
}

void fm_online_print(const fm_online_result *r)
{
    print_head(r);
    print_tokens(&r->m);
    print_spread("----------------End-to-End Latency----------------", "E2E Latency", &r->m.e2e, 0);
    print_spread("---------------Time to First Token----------------", "TTFT", &r->m.ttft, 0);
    print_spread("-----Time per Output Token (excl. 1st token)------", "TPOT", &r->m.tpot, 0);
    print_spread("---------------Inter-Token Latency----------------", "ITL", &r->m.itl, 1);
    if (r->online->cache_report) print_cached(&r->m);
    printf("==================================================\n");
}

/* ---- the JSON line ---- */

static void set_real(json_t *o, const char *key, double x)
{
    json_object_set_new(o, key, isfinite(x) ? json_real(x) : json_null());
}

static void set_count(json_t *o, const char *key, int64_t n)
{
    json_object_set_new(o, key, n >= 0 ? json_integer(n) : json_null());
}

static void set_text(json_t *o, const char *key, const char *text)
{
    json_object_set_new(o, key, text ? json_string(text) : json_null());
}

static void set_spread(json_t *o, const char *name, const fm_spread *s)
{
    const struct {
        const char *what;
        double      x;
    } all[] = {{"mean", s->mean}, {"median", s->median}, {"std", s->std}, {"p90", s->p90},
               {"p95", s->p95},   {"p99", s->p99},       {"max", s->max}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char key[48];
        snprintf(key, sizeof key, "%s_%s_ms", all[i].what, name);
        set_real(o, key, all[i].x);
    }
}

static void set_arguments(json_t *o, const fm_online_result *r)
{
    const fm_online_options *n = r->online;
    const fm_bench_options  *b = r->bench;
    char                     rate[32];
    rate_text(rate, r->rate);
    set_text(o, "tag", n->tag);
    set_text(o, "backend", r->backend);
    set_text(o, "base_url", r->base_url);
    set_text(o, "model", r->server->model);
    set_text(o, "dataset_name", r->dataset);
    json_object_set_new(o, "request_rate", isinf(r->rate) ? json_string(rate) : json_real(r->rate));
    json_object_set_new(o, "max_concurrency",
                        n->max_concurrency ? json_integer(n->max_concurrency) : json_null());
    set_count(o, "num_prompts", r->rows->n);
    set_count(o, "seed", b->seed);
    set_count(o, "sharegpt_output_len", b->sharegpt_output_len ? b->sharegpt_output_len : -1);
    set_count(o, "random_input_len", b->random_input_len);
    set_count(o, "random_output_len", b->random_output_len);
    set_real(o, "random_range_ratio", b->random_range_ratio);
    set_count(o, "warmup_requests", n->warmup_requests);
    json_object_set_new(o, "disable_stream", json_boolean(n->disable_stream));
    json_object_set_new(o, "server_info",
                        r->server->info ? json_incref(r->server->info) : json_null());
}

static json_t *cached_json(const fm_online_metrics *m)
{
    const fm_online_cached *c = &m->cached;
    json_t                 *o = json_object();
    set_count(o, "total_prompt_tokens", m->n_input);
    set_count(o, "total_cached_tokens", c->all);
    set_real(o, "cache_hit_rate_pct",
             m->n_input > 0 ? round(1e4 * (double)c->all / (double)m->n_input) / 100 : 0);
    set_count(o, "device_cached_tokens", c->has_parts ? c->device : -1);
    set_count(o, "host_cached_tokens", c->has_parts ? c->host : -1);
    set_count(o, "storage_cached_tokens", c->storage > 0 ? c->storage : -1);
    return o;
}

json_t *fm_online_json(const fm_online_result *r)
{
    const fm_online_metrics *m = &r->m;
    json_t                  *o = json_object();
    set_arguments(o, r);
    set_real(o, "duration", m->duration);
    set_count(o, "completed", m->completed);
    set_count(o, "failed", m->failed);
    fm_bench_add_changes(o, &r->changes);
    set_count(o, "total_input_tokens", m->n_input);
    set_count(o, "total_input_text_tokens", m->n_input);
    set_count(o, "total_output_tokens", m->n_output);
    set_count(o, "total_output_tokens_retokenized", m->n_retokenized);
    set_real(o, "request_throughput", m->request_throughput);
    set_real(o, "input_throughput", m->input_throughput);
    set_real(o, "output_throughput", m->output_throughput);
    set_real(o, "total_throughput", m->total_throughput);
    set_spread(o, "e2e_latency", &m->e2e);
    set_spread(o, "ttft", &m->ttft);
    set_spread(o, "tpot", &m->tpot);
    set_spread(o, "itl", &m->itl);
    set_real(o, "concurrency", m->concurrency);
    set_real(o, "accept_length", m->accept_length);
    set_real(o, "spec_accept_rate", m->accept_rate);
    set_real(o, "max_output_tokens_per_s", m->max_output_per_s);
    set_count(o, "max_concurrent_requests", m->max_concurrent);
    if (r->online->cache_report) json_object_set_new(o, "cache_report", cached_json(m));
    return o;
}

/* ---- the details ---- */

static json_t *ids_json(const int32_t *id, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(id[i]));
    return list;
}

static json_t *answer_json(const fm_online_result *r, int i)
{
    const fm_online_answer *a = &r->answer[i];
    json_t                 *o = json_object(), *itl = json_array();
    set_count(o, "index", i);
    json_object_set_new(o, "prompt_ids", ids_json(r->rows->row[i].token, r->rows->row[i].n_prompt));
    if (a->n_id) json_object_set_new(o, "output_ids", ids_json(a->id, a->n_id));
    set_text(o, "finish_reason", *a->finish ? a->finish : NULL);
    set_count(o, "output_len", a->n_output);
    set_count(o, "cached_tokens", a->cached.all);
    set_real(o, "sent", a->sent - r->answer[0].sent);
    set_real(o, "ttft", a->ttft);
    set_real(o, "latency", a->latency);
    for (int j = 0; j < a->n_itl; j++) json_array_append_new(itl, json_real(a->itl[j]));
    json_object_set_new(o, "itl", itl);
    json_object_set_new(o, "text",
                        json_stringn_nocheck(a->text.text ? a->text.text : "", a->text.len));
    set_text(o, "error", a->error);
    return o;
}

fm_status fm_online_write_details(const char *path, const fm_online_result *r)
{
    fm_output_file f;
    FM_TRY(fm_output_create(&f, "output-details", path));
    for (int i = 0; i < r->rows->n; i++) {
        json_t *o = answer_json(r, i);
        json_dumpf(o, f.to, JSON_PRESERVE_ORDER);
        fputc('\n', f.to);
        json_decref(o);
    }
    return fm_output_close(&f);
}
