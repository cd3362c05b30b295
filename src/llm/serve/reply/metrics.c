/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/reply/metrics.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

/* Seconds, finer at the low end than SGLang's: small models are quick. */
static const double ttft_bound[] = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,   2,
                                    4,     6,    8,    10,   20,  40,  60,  80,  100, 200, 400};
static const double e2e_bound[]  = {0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,   2,    4,    6,    8,
                                    10,   20,   40,  60,  80,  100, 200, 400, 600, 1200, 1800, 2400};
static const double itl_bound[]  = {0.0005, 0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02,
                                    0.025,  0.03,  0.035, 0.04,  0.06,  0.08,  0.1,  0.15,  0.2,
                                    0.3,    0.4,   0.5,   0.75,  1,     2,     4,    6,     8};
static const double queue_bound[] = {0,   0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,  0.5,  1,
                                     2,   3,     4,     5,    10,   15,   20,  30,   40,   50,
                                     60,  70,    80,    90,   100,  200,  300, 400,  500,  600,
                                     700, 800,   900,   1000, 1200, 1400, 1600, 1800, 2000, 2200};
static const double size_bound[] = {1,    4,    16,   64,   128,   256,   512,  1024,
                                    2048, 4096, 8192, 16384, 32768, 65536, 131072};

#define BOUNDS(list) .bound = list, .n_bound = (int)(sizeof list / sizeof list[0])

void fm__metrics_init(fm__metrics *m)
{
    *m = (fm__metrics){.ttft              = {BOUNDS(ttft_bound)},
                       .itl               = {BOUNDS(itl_bound)},
                       .e2e               = {BOUNDS(e2e_bound)},
                       .queue_time        = {BOUNDS(queue_bound)},
                       .prompt_tokens     = {BOUNDS(size_bound)},
                       .generation_tokens = {BOUNDS(size_bound)}};
}

void fm__histogram_add(fm__histogram *h, double x, uint64_t times)
{
    int i = 0;
    while (i < h->n_bound && x > h->bound[i]) i++;
    h->count[i] += times;
    h->sum += x * (double)times;
}

typedef struct {
    fm_str     *out;
    const char *prefix;
    fm_str      labels; /* a="b",c="d" */
} page;

static void put_label(fm_str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"') fm_str_add(out, "\\", 1);
        if (*text == '\n') fm_str_add(out, "\\n", 2);
        else fm_str_add(out, text, 1);
    }
}

static void put_value(page *p, const char *kind, const char *name, const char *help, double x)
{
    fm_str_printf(p->out, "# HELP %s:%s %s\n# TYPE %s:%s %s\n%s:%s{%s} %.15g\n", p->prefix, name,
                  help, p->prefix, name, kind, p->prefix, name, p->labels.text, x);
}

static void put_histogram(page *p, const char *name, const char *help, const fm__histogram *h)
{
    uint64_t total = 0;
    fm_str_printf(p->out, "# HELP %s:%s %s\n# TYPE %s:%s histogram\n", p->prefix, name, help,
                  p->prefix, name);
    for (int i = 0; i < h->n_bound; i++) {
        total += h->count[i];
        fm_str_printf(p->out, "%s:%s_bucket{%s,le=\"%g\"} %llu\n", p->prefix, name, p->labels.text,
                      h->bound[i], (unsigned long long)total);
    }
    total += h->count[h->n_bound];
    fm_str_printf(
        p->out, "%s:%s_bucket{%s,le=\"+Inf\"} %llu\n%s:%s_sum{%s} %.9g\n%s:%s_count{%s} %llu\n",
        p->prefix, name, p->labels.text, (unsigned long long)total, p->prefix, name, p->labels.text,
        h->sum, p->prefix, name, p->labels.text, (unsigned long long)total);
}

static void put_gauges(page *p, const fm__metrics *m, const fm__engine_state *s, int context)
{
    const fm_engine_info *e = &s->info;
    const double size = e->plan.page_size, held = e->plan.n_page - e->n_free_page - e->n_idle_page;
    const int    idle = e->sched.n_running == 0 || fm_now() - s->last_step > 5;
    put_value(p, "gauge", "num_running_reqs", "Sequences in the running batch.",
              e->sched.n_running);
    put_value(p, "gauge", "num_queue_reqs", "Requests that wait.",
              e->sched.n_waiting + m->n_waiting);
    put_value(p, "gauge", "num_used_tokens", "Tokens of KV cache that requests hold.", held * size);
    put_value(p, "gauge", "token_usage", "Share of the KV cache that requests hold.",
              e->plan.n_page ? held / e->plan.n_page : 0);
    put_value(p, "gauge", "kv_used_tokens", "Tokens of KV cache that requests hold.", held * size);
    put_value(p, "gauge", "kv_evictable_tokens", "Cached tokens that no request uses: they can be evicted.",
              e->n_idle_page * size);
    put_value(p, "gauge", "kv_available_tokens", "Free tokens of KV cache.", e->n_free_page * size);
    put_value(p, "gauge", "max_total_num_tokens", "Tokens the KV cache has room for.",
              (double)e->plan.max_tokens);
    put_value(p, "gauge", "page_size", "Tokens per KV page.", size);
    put_value(p, "gauge", "context_len", "Tokens of one sequence.", context);
    put_value(p, "gauge", "gen_throughput", "Output tokens per second of the last step.",
              idle ? 0 : e->last_gen_throughput);
    put_value(p, "gauge", "cache_hit_rate", "Share of prompt tokens found in the cache.",
              e->kv.asked_tokens ? (double)e->kv.hit_tokens / (double)e->kv.asked_tokens : 0);
    put_value(p, "gauge", "weight_load_duration_seconds", "Time to load the weights.",
              e->load_seconds);
    put_value(p, "gauge", "weight_memory_usage_gb", "Memory of the weights.",
              (double)e->plan.weights / 1e9);
    put_value(p, "gauge", "kv_cache_memory_usage_gb", "Memory of the KV cache.",
              (double)e->plan.kv / 1e9);
    put_value(p, "gauge", "spec_accept_length", "Tokens per decode step, accepted drafts included.",
              fm_sched_accept_length(e->sched.n_decode_row, e->sched.n_accepted));
    put_value(p, "gauge", "spec_accept_rate", "Share of verified draft tokens that were accepted.",
              e->sched.n_draft ? (double)e->sched.n_accepted / (double)e->sched.n_draft : 0);
    put_value(p, "gauge", "num_connections", "Open connections.", m->n_connection);
}

static void put_counters(page *p, const fm__metrics *m, const fm_engine_info *e)
{
    put_value(p, "counter", "prompt_tokens_total", "Prompt tokens of ended requests.",
              (double)m->n_prompt_token);
    put_value(p, "counter", "generation_tokens_total", "Tokens generated.",
              (double)m->n_output_token);
    put_value(p, "counter", "cached_tokens_total", "Prompt tokens found in the cache.",
              (double)m->n_cached_token);
    put_value(p, "counter", "num_requests_total", "Requests ended.", (double)m->n_request);
    put_value(p, "counter", "num_aborted_requests_total", "Requests that ended early.",
              (double)m->n_aborted);
    put_value(p, "counter", "num_refused_requests_total",
              "Requests refused because the queue was full.", (double)m->n_refused);
    put_value(p, "counter", "nonfinite_logits_total",
              "Answers that failed because their logits were NaN or infinite.",
              (double)m->n_nonfinite);
    put_value(p, "counter", "num_retracted_requests_total", "Sequences sent back to the queue.",
              (double)e->sched.n_preemption);
    put_value(p, "counter", "evicted_tokens_total", "Cached tokens that made room.",
              (double)e->kv.evicted_pages * e->plan.page_size);
    put_value(p, "counter", "forward_execution_seconds_total", "Time in forward passes.",
              e->forward_seconds);
    put_value(p, "counter", "step_host_seconds_total", "Time in steps around forward passes.",
              e->host_seconds);
    put_value(p, "counter", "step_gap_seconds_total", "Time between steps with requests to compute.",
              e->gap_seconds);
    put_value(p, "counter", "num_steps_total", "Forward passes.", (double)e->sched.n_step);
    put_value(p, "counter", "log_lines_dropped_total",
              "Log lines dropped because standard error was not read.", (double)fm_log_n_dropped());
    put_value(p, "counter", "http_2xx_total", "Replies with success.", (double)m->n_status[2]);
    put_value(p, "counter", "http_4xx_total", "Replies that blame the request.",
              (double)m->n_status[4]);
    put_value(p, "counter", "http_5xx_total", "Replies that blame the server.",
              (double)m->n_status[5]);
}

/* Tiers of the cache below the pool. */
static void put_tiers(page *p, const fm__metrics *m, const fm_tiers_info *t)
{
    const fm_store_stats *f = &t->store;
    if (!t->has_tiers) return;
    put_value(p, "counter", "cached_tokens_host_total", "Prompt tokens that came from host memory.",
              (double)m->n_cached_host);
    put_value(p, "counter", "cached_tokens_storage_total", "Prompt tokens that came from files.",
              (double)m->n_cached_storage);
    put_value(p, "counter", "hicache_loads_total", "Prefixes brought back into the pool.",
              (double)t->policy.n_load);
    put_value(p, "counter", "hicache_loads_declined_total",
              "Prefixes computed again because loading them would take longer.",
              (double)t->policy.n_declined);
    put_value(p, "gauge", "hicache_saved_seconds", "Computing avoided, less the time for loading.",
              t->saved_seconds);
    put_value(p, "gauge", "hicache_loading", "Prefixes on their way into the pool.",
              t->policy.n_loading);
    put_value(p, "counter", "hicache_host_read_bytes_total", "Copied from host memory to the pool.",
              (double)(t->policy.host_tokens / t->page_size) * t->page_bytes);
    put_value(p, "counter", "hicache_host_written_bytes_total",
              "Copied from the pool to host memory.",
              (double)t->policy.n_host_page * t->page_bytes);
    put_value(p, "counter", "hicache_host_misses_total",
              "Pages in host memory whose checksum did not fit.", (double)t->policy.n_host_altered);
    if (!t->has_files) return;
    put_value(p, "gauge", "hicache_storage_on", "1 while the directory is in use.", f->is_on);
    put_value(p, "gauge", "hicache_storage_tokens", "Tokens the directory is known to have.",
              (double)f->n_listed * t->page_size);
    put_value(p, "gauge", "hicache_storage_queue", "Files waiting to be read or written.",
              f->n_queued);
    put_value(p, "counter", "hicache_storage_read_bytes_total", "Read from the directory.",
              f->read_bytes);
    put_value(p, "counter", "hicache_storage_written_bytes_total", "Written to the directory.",
              f->written_bytes);
    put_value(p, "counter", "hicache_storage_misses_total",
              "Pages that were gone, damaged, foreign or unreadable.",
              (double)(f->n_gone + f->n_short + f->n_foreign + f->n_altered + f->n_unreadable));
    put_value(p, "counter", "hicache_storage_pruned_total", "Pages removed to keep the limit.",
              (double)f->n_pruned);
}

void fm__put_metrics(fm_str *out, const fm__metrics *m, const fm__engine_state *s,
                     const char *prefix, const char *model, int context)
{
    page p = {.out = out, .prefix = prefix};
    fm_str_puts(&p.labels, "model_name=\"");
    put_label(&p.labels, model);
    fm_str_puts(&p.labels, "\",engine_type=\"unified\",tp_rank=\"0\",pp_rank=\"0\"");
    put_gauges(&p, m, s, context);
    put_counters(&p, m, &s->info);
    put_tiers(&p, m, &s->info.tiers);
    put_histogram(&p, "time_to_first_token_seconds",
                  "From the request's arrival to its first token.", &m->ttft);
    put_histogram(&p, "inter_token_latency_seconds", "Between tokens of an answer.", &m->itl);
    put_histogram(&p, "e2e_request_latency_seconds", "From a request's arrival to its end.",
                  &m->e2e);
    put_histogram(&p, "queue_time_seconds", "From a request's submission to its first step.",
                  &m->queue_time);
    put_histogram(&p, "prompt_tokens_histogram", "Prompt tokens of a request.", &m->prompt_tokens);
    put_histogram(&p, "generation_tokens_histogram", "Output tokens of a request.",
                  &m->generation_tokens);
    fm_str_fini(&p.labels);
}
