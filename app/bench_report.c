/* SPDX-License-Identifier: Apache-2.0 */
/* The printed table and the JSON line: rows and fields as SGLang's, then ours. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "bench.h"
#include "device/host.h"
#include "output_file.h"

static fm_tiers_info tiers_since(const fm_tiers_info *before, const fm_tiers_info *after)
{
    fm_tiers_info t = *after;
    t.policy.n_load -= before->policy.n_load;
    t.policy.n_declined -= before->policy.n_declined;
    t.policy.disk_tokens -= before->policy.disk_tokens;
    t.policy.host_tokens -= before->policy.host_tokens;
    t.policy.load_seconds -= before->policy.load_seconds;
    t.store.read_bytes -= before->store.read_bytes;
    t.store.written_bytes -= before->store.written_bytes;
    t.saved_seconds -= before->saved_seconds;
    return t;
}

fm_bench_counts fm_bench_counts_since(const fm_engine_info *before, const fm_engine_info *after)
{
    return (fm_bench_counts){
        .n_step          = after->sched.n_step - before->sched.n_step,
        .sum_running     = after->sched.sum_running - before->sched.sum_running,
        .n_preemption    = after->sched.n_preemption - before->sched.n_preemption,
        .n_decode_row    = after->sched.n_decode_row - before->sched.n_decode_row,
        .n_draft         = after->sched.n_draft - before->sched.n_draft,
        .n_accepted      = after->sched.n_accepted - before->sched.n_accepted,
        .hit_tokens      = after->kv.hit_tokens - before->kv.hit_tokens,
        .asked_tokens    = after->kv.asked_tokens - before->kv.asked_tokens,
        .forward_seconds = after->forward_seconds - before->forward_seconds,
        .tiers           = tiers_since(&before->tiers, &after->tiers),
    };
}

static double per_second(double n, const fm_bench_result *r)
{
    return n / (r->batch->seconds > 0 ? r->batch->seconds : 1e-9);
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

static void print_count(const char *name, int64_t n)
{
    printf("%-40s %-10lld\n", name, (long long)n);
}

/* A number that drafts change; marked where their acceptance is simulated. */
static void print_marked(const char *name, double x, const fm_bench_result *r)
{
    printf("%-40s %-10.2f%s\n", name, x, fm_bench_simulated(&r->info));
}

const char *fm_bench_simulated(const fm_engine_info *info)
{
    return info->simulated_accept_length > 0 ? " (acceptance simulated)" : "";
}

static double accept_length(const fm_bench_counts *c)
{
    return fm_sched_accept_length(c->n_decode_row, c->n_accepted);
}

/* Of a run that ended early, only prompts that were read. */
static int64_t n_input(const fm_bench_result *r)
{
    return r->batch->ended_by ? r->batch->n_input : r->rows->sum_prompt;
}

static int64_t device_tokens(const fm_bench_counts *c)
{
    const int64_t n = c->hit_tokens - c->tiers.policy.disk_tokens - c->tiers.policy.host_tokens;
    return n > 0 ? n : 0;
}

static void print_tiers(const fm_bench_counts *c)
{
    const fm_tier_policy_stats *s = &c->tiers.policy;
    if (!c->tiers.has_tiers) return;
    printf("fathom: prompt tokens from the pool %lld, host memory %lld, files %lld, computed %lld; "
           "%.2f s saved; %lld loads, %lld declined; %.3f GB read, %.3f GB written%s\n",
           (long long)device_tokens(c), (long long)s->host_tokens, (long long)s->disk_tokens,
           (long long)(c->asked_tokens - c->hit_tokens), c->tiers.saved_seconds,
           (long long)s->n_load, (long long)s->n_declined, c->tiers.store.read_bytes * 1e-9,
           c->tiers.store.written_bytes * 1e-9, c->tiers.store.is_on || !c->tiers.has_files ? "" : "; the file tier is off");
}

static json_t *tiers_json(const fm_bench_counts *c)
{
    const fm_tier_policy_stats *s = &c->tiers.policy;
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:f, s:f}", "device_tokens",
                     (json_int_t)device_tokens(c), "host_tokens", (json_int_t)s->host_tokens,
                     "storage_tokens", (json_int_t)s->disk_tokens, "computed_tokens",
                     (json_int_t)(c->asked_tokens - c->hit_tokens), "saved_seconds",
                     c->tiers.saved_seconds, "load_seconds", s->load_seconds, "loads",
                     (json_int_t)s->n_load, "loads_declined", (json_int_t)s->n_declined,
                     "read_bytes", c->tiers.store.read_bytes, "written_bytes",
                     c->tiers.store.written_bytes);
}

void fm_bench_print(const fm_bench_result *r)
{
    const int64_t n_in = n_input(r), n_out = r->batch->n_output;
    printf("\n====== Offline Throughput Benchmark Result =======\n");
    printf("%-40s %-10s%s\n", "Backend:", "engine", fm_bench_simulated(&r->info));
    print_count("Successful requests:", r->batch->n_finished);
    if (r->batch->n_failed) print_count("Failed requests:", r->batch->n_failed);
    if (r->batch->ended_by) printf("%-40s partial (%s)\n", "Result:", r->batch->ended_by);
    fm_bench_print_changes(&r->changes, r->rows->n);
    print_marked("Benchmark duration (s):", r->batch->seconds, r);
    print_count("Total input tokens:", n_in);
    print_count("Total generated tokens:", n_out);
    print_marked("Last generation throughput (tok/s):", r->info.last_gen_throughput, r);
    print_marked("Request throughput (req/s):", per_second(r->batch->n_finished, r), r);
    print_marked("Input token throughput (tok/s):", per_second((double)n_in, r), r);
    print_marked("Output token throughput (tok/s):", per_second((double)n_out, r), r);
    print_marked("Total token throughput (tok/s):", per_second((double)(n_in + n_out), r), r);
    if (r->counts.n_draft) {
        print_marked("Accept length:", accept_length(&r->counts), r);
        print_marked("Accept rate:", share(r->counts.n_accepted, r->counts.n_draft), r);
    }
    printf("==================================================\n");

    const fm_bench_counts *c = &r->counts;
    printf("fathom: %lld steps, mean batch %.1f, cache hit rate %.1f%%, %lld preemptions, "
           "%.2f s (%.1f%%) in forward\n",
           (long long)c->n_step, share(c->sum_running, c->n_step),
           100 * share(c->hit_tokens, c->asked_tokens), (long long)c->n_preemption,
           c->forward_seconds, 100 * per_second(c->forward_seconds, r));
    print_tiers(c);
}

static json_t *plan_json(const fm_plan *p)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "where", p->where, "weights_bytes",
                     (json_int_t)p->weights, "workspace_bytes", (json_int_t)p->workspace,
                     "reserve_bytes", (json_int_t)p->reserve, "kv_bytes", (json_int_t)p->kv,
                     "budget_bytes", (json_int_t)p->budget, "max_tokens", (json_int_t)p->max_tokens,
                     "page_size", p->page_size);
}

/* What ran, and on what. */
void fm_bench_describe(json_t *to, const fm_options *o, const fm_engine_info *info)
{
    json_object_set_new(to, "version", json_string(FM_VERSION));
    json_object_set_new(to, "model", json_string(o->model_path));
    json_object_set_new(to, "dtype", json_string(o->dtype));
    json_object_set_new(to, "isa", json_string(fm_isa_name(fm_cpu_isa())));
    json_object_set_new(to, "threads", json_integer(info->n_thread));
    json_object_set_new(to, "tp_size", json_integer(o->tp_size));
    json_object_set_new(to, "pp_size", json_integer(o->pp_size));
    json_object_set_new(to, "dp_size", json_integer(o->dp_size));
    json_object_set_new(to, "ep_size", json_integer(o->ep_size));
    json_object_set_new(to, "dp_attention", json_boolean(o->enable_dp_attention));
    json_object_set_new(to, "speculative_algorithm",
                        info->max_draft ? json_string(o->speculative_algorithm) : json_null());
    if (info->simulated_accept_length > 0)
        json_object_set_new(to, "simulated_accept_length", json_real(info->simulated_accept_length));
}

/* All requests are sent at once: mostly the time in the queue. */
static double mean_ttft_ms(const fm_answers *a)
{
    return a->n_begun ? 1000 * a->sum_ttft / a->n_begun : 0.0;
}

json_t *fm_bench_json(const fm_bench_result *r, const fm_bench_options *b)
{
    const int64_t          n_in = n_input(r), n_out = r->batch->n_output;
    const fm_bench_counts *c = &r->counts;
    json_t                *o =
        json_pack("{s:s, s:i, s:f, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "backend", "engine",
                  "successful_requests", r->batch->n_finished, "total_latency", r->batch->seconds,
                  "total_input_tokens", (json_int_t)n_in, "total_output_tokens", (json_int_t)n_out,
                  "request_throughput", per_second(r->batch->n_finished, r), "input_throughput",
                  per_second((double)n_in, r), "output_throughput", per_second((double)n_out, r),
                  "total_throughput", per_second((double)(n_in + n_out), r), "last_gen_throughput",
                  r->info.last_gen_throughput);
    json_t *own = json_pack(
        "{s:o, s:I, s:f, s:f, s:I, s:f, s:f, s:I, s:s, s:i, s:I}", "plan", plan_json(&r->info.plan),
        "n_steps", (json_int_t)c->n_step, "mean_batch", share(c->sum_running, c->n_step),
        "cache_hit_rate", share(c->hit_tokens, c->asked_tokens), "preemptions",
        (json_int_t)c->n_preemption, "forward_seconds", c->forward_seconds, "load_seconds",
        r->info.load_seconds, "resident_bytes", (json_int_t)fm_host_resident(), "dataset",
        r->dataset, "num_prompts", r->rows->n, "seed", (json_int_t)b->seed);
    FM_BUG_UNLESS(o && own);
    json_object_update(o, own);
    json_decref(own);
    json_object_set_new(o, "mean_ttft_ms", json_real(mean_ttft_ms(r->batch)));
    json_object_set_new(o, "accept_length", json_real(accept_length(c)));
    json_object_set_new(o, "spec_accept_rate", json_real(share(c->n_accepted, c->n_draft)));
    json_object_set_new(o, "draft_tokens", json_integer(c->n_draft));
    json_object_set_new(o, "accepted_draft_tokens", json_integer(c->n_accepted));
    json_object_set_new(o, "failed_requests", json_integer(r->batch->n_failed));
    fm_bench_add_changes(o, &r->changes);
    if (c->tiers.has_tiers) json_object_set_new(o, "tiers", tiers_json(c));
    json_object_set_new(o, "partial", json_boolean(r->batch->ended_by != NULL));
    if (r->batch->ended_by) json_object_set_new(o, "ended_by", json_string(r->batch->ended_by));
    fm_bench_describe(o, r->engine, &r->info);
    return o;
}

/* Before a model is loaded for it. */
static fm_status check_dataset(const char *path)
{
    struct stat st;
    if (access(path, R_OK) != 0 || stat(path, &st) != 0)
        return fm_fail(FM_E_IO, "--dataset-path %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return fm_fail(FM_E_IO, "--dataset-path %s: not a regular file", path);
    return FM_OK;
}

fm_status fm_bench_check_paths(const fm_bench_options *b)
{
    FM_TRY(fm_output_check("result-filename", b->result_filename));
    FM_TRY(fm_output_check("output-details", b->output_details));
    return b->dataset_path ? check_dataset(b->dataset_path) : FM_OK;
}

fm_status fm_bench_append(const char *flag, const char *path, json_t *line)
{
    fm_output_file o  = {0};
    fm_status      rc = fm_output_append(&o, flag, path);
    if (rc == FM_OK) {
        json_dumpf(line, o.to, JSON_PRESERVE_ORDER);
        fputc('\n', o.to);
        rc = fm_output_close(&o);
    }
    json_decref(line);
    return rc;
}
