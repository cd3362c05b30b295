/* SPDX-License-Identifier: Apache-2.0 */
/* The table, the JSON object, and the files. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "output_file.h"
#include "plan.h"

void fm_plan_bound_words(fm_str *out, const fm_forecast *f)
{
    fm_str_printf(out, "%s %.0f %%", fm_bound_name(f->bound), 100 * f->by[f->bound]);
}

/* --- the table ---------------------------------------------------------------- */

static void print_head(const fm_plan_command *c)
{
    const fm_cluster *k  = &c->cluster;
    int64_t           in = 0, out = 0;
    for (int i = 0; i < c->n_request; i++) {
        in += c->request[i].n_prompt;
        out += c->request[i].n_output;
    }
    printf("%s on %d x %d x %s: %d requests, %lld tokens in, %lld out", c->engine->model_path,
           k->n_node, k->per_node, k->device, c->n_request, (long long)in, (long long)out);
    if (isfinite(c->rate)) printf(", %g a second", c->rate);
    if (c->options.users)
        printf(", of %lld users that ask again when answered", (long long)c->options.users);
    if (c->online.max_concurrency) printf(", %lld at once", (long long)c->online.max_concurrency);
    printf("\ncosts from %s (%s)\n", c->table.text, c->tuned.about);
    printf("links: %.1f us and %.1f GB/s on a host%s", k->near.latency_s * 1e6,
           k->near.bytes_per_s * 1e-9, k->is_near_measured ? ", measured" : "");
    if (k->n_node > 1)
        printf("; %.1f us and %.1f GB/s between hosts%s", k->far.latency_s * 1e6,
               k->far.bytes_per_s * 1e-9, k->is_far_measured ? ", measured" : "");
    printf("\n");
    if (c->list[0].has_tiers)
        printf("tiers: %.1f GB/s from host memory, %.1f back; files %.2f GB/s read, %.2f written\n",
               k->tiers.host_in * 1e-9, k->tiers.host_out * 1e-9, k->tiers.file_read * 1e-9,
               k->tiers.file_write * 1e-9);
    printf("\n");
}

static int has_slo(const fm_plan_command *c)
{
    return c->options.slo_ttft > 0 || c->options.slo_tpot > 0;
}

/* Means, and the 99th percentiles that bounds are for. */
static void print_latencies(const fm_plan_command *c, const fm_sim_result *s)
{
    if (has_slo(c))
        printf(" %10.1f %10.1f %9.2f %9.2f", 1e3 * s->mean_ttft, 1e3 * s->p99_ttft,
               1e3 * s->mean_tpot, 1e3 * s->p99_tpot);
    else
        printf(" %10.1f %9.2f", 1e3 * s->mean_ttft, 1e3 * s->mean_tpot);
}

static void print_row(const fm_plan_command *c, int place, const fm_forecast *f)
{
    fm_str name = {0}, bound = {0};
    fm_forecast_name(&name, &f->size);
    fm_plan_bound_words(&bound, f);
    printf("%3d%s %-30s %5d %10.1f +-%3.0f%%", place, f->meets ? " " : "!", name.text, f->n_rank,
           f->throughput, 100 * f->error);
    print_latencies(c, &f->sim);
    printf(" %9.1f %11lld   %s\n", f->memory_left / 0x1p30, (long long)f->max_tokens, bound.text);
    fm_str_fini(&name);
    fm_str_fini(&bound);
}

static void print_titles(const fm_plan_command *c)
{
    printf("     %-30s %5s %16s", "layout", "ranks", "tok/s");
    if (has_slo(c))
        printf(" %10s %10s %9s %9s", "TTFT ms", "P99", "TPOT ms", "P99");
    else
        printf(" %10s %9s", "TTFT ms", "TPOT ms");
    printf(" %9s %11s   %s\n", "GiB left", "KV tokens", "where the time goes");
}

static int n_fit(const fm_plan_command *c)
{
    int n = 0;
    while (n < c->n && c->list[n].rc == FM_OK) n++;
    return n;
}

static void print_unfit(const fm_forecast *f)
{
    fm_str name = {0};
    fm_forecast_name(&name, &f->size);
    printf("does not fit, for one: %s: %s\n", name.text, f->why);
    fm_str_fini(&name);
}

static void print_unmet(const fm_plan_options *o)
{
    printf("no layout of this cluster meets");
    if (o->slo_ttft > 0) printf(" --slo-ttft %g", o->slo_ttft);
    if (o->slo_ttft > 0 && o->slo_tpot > 0) printf(" and");
    if (o->slo_tpot > 0) printf(" --slo-tpot %g", o->slo_tpot);
    printf(" (99th percentile): each is beyond, the fastest first\n");
}

static void print_table(const fm_plan_command *c)
{
    const int n = n_fit(c), shown = n < c->options.rows ? n : (int)c->options.rows;
    int       unmet = 0;
    print_titles(c);
    for (int i = 0; i < shown; i++) print_row(c, i + 1, &c->list[i]);
    for (int i = 0; i < n; i++) unmet += !c->list[i].meets;
    printf("\n%d %s%s, %d %s; planned in %.1f s\n", n, n == 1 ? "layout fits" : "layouts fit",
           shown < n ? " (--rows N shows more)" : "", c->n - n,
           c->n - n == 1 ? "does not" : "do not", c->seconds);
    if (unmet && unmet < n)
        printf("!: beyond --slo-ttft or --slo-tpot (99th percentile): %d layouts\n", unmet);
    if (unmet == n) print_unmet(&c->options);
    if (n < c->n) print_unfit(&c->list[n]);
}

/* Where prompt tokens of the first layout come from. */
static void print_tiers(const fm_plan_command *c)
{
    const fm_sim_result        *s = &c->list[0].sim;
    const fm_tier_policy_stats *t = &s->tiers;
    if (!c->list[0].has_tiers) return;
    const double all = s->kv.asked_tokens > 0 ? (double)s->kv.asked_tokens : 1;
    printf("tiers of the first: %.1f %% of prompt tokens cached, %.1f %% brought from host memory, "
           "%.1f %% from files; %lld loads, %lld declined\n",
           100 * (double)s->kv.hit_tokens / all, 100 * (double)t->host_tokens / all,
           100 * (double)t->disk_tokens / all, (long long)t->n_load, (long long)t->n_declined);
}

static void print_more(const fm_plan_command *c)
{
    fm_str             name = {0};
    const fm_forecast *m    = &c->more;
    if (!m->n_rank) return;
    fm_forecast_name(&name, &m->size);
    printf("one more node: %s, %.1f tok/s, %.2f times as much\n", name.text, m->throughput,
           m->throughput / c->list[0].throughput);
    fm_str_fini(&name);
}

static void print_users(const fm_plan_command *c)
{
    fm_str             name = {0};
    const fm_forecast *f    = &c->enough;
    if (!c->options.users) return;
    if (!f->n_rank) {
        printf("%lld users: no layout of up to 64 nodes is fast enough\n",
               (long long)c->options.users);
        return;
    }
    fm_forecast_name(&name, &f->size);
    printf("%lld users: %d device%s on %d node%s (%s), TTFT P99 %.0f ms, TPOT P99 %.1f ms, %.1f "
           "tok/s\n",
           (long long)c->options.users, f->n_rank, f->n_rank == 1 ? "" : "s", f->n_node,
           f->n_node == 1 ? "" : "s", name.text, 1e3 * f->sim.p99_ttft, 1e3 * f->sim.p99_tpot,
           f->throughput);
    fm_str_fini(&name);
}

static void print_all(const fm_plan_command *c)
{
    const fm_forecast *f     = fm_plan_choice(c);
    fm_str             words = {0};
    print_head(c);
    print_table(c);
    print_tiers(c);
    print_more(c);
    print_users(c);
    if (!f) return; /* nothing is recommended that comes too late */
    fm_plan_words(&words, c, f);
    if (fm_plan_is_online(c)) {
        fm_str_puts(&words, "\n");
        fm_plan_client_words(&words, c);
    }
    printf("\n%s\n", words.text);
    fm_str_fini(&words);
}

/* --- JSON --------------------------------------------------------------------- */

static json_t *shares_json(const fm_forecast *f)
{
    json_t *o = json_object();
    for (int i = 0; i < FM_N_BOUND; i++)
        json_object_set_new(o, fm_bound_name((fm_bound)i), json_real(f->by[i]));
    return o;
}

static json_t *tiers_json(const fm_sim_result *s)
{
    const fm_tier_policy_stats *t = &s->tiers;
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "cached_tokens", (json_int_t)s->kv.hit_tokens,
                     "host_tokens", (json_int_t)t->host_tokens, "storage_tokens",
                     (json_int_t)t->disk_tokens, "loads", (json_int_t)t->n_load, "loads_declined",
                     (json_int_t)t->n_declined);
}

static json_t *layout_json(const fm_plan_command *c, const fm_forecast *f)
{
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:b, s:i, s:i, s:b}", "tp_size", f->size.tp,
                          "pp_size", f->size.pp, "dp_size", f->size.dp, "ep_size", f->size.ep,
                          "dp_attention", f->size.dp_attention, "ranks", f->n_rank, "nodes",
                          f->n_node, "fits", f->rc == FM_OK);
    FM_BUG_UNLESS(o != NULL);
    if (f->rc != FM_OK) {
        json_object_set_new(o, "why", json_string(f->why));
        return o;
    }
    fm_str words = {0};
    fm_plan_words(&words, c, f);
    json_t *more = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:b, s:s, s:o, s:s}",
        "total_token_throughput", f->throughput, "error", f->throughput * f->error, "duration_s",
        f->sim.seconds, "mean_ttft_ms", 1e3 * f->sim.mean_ttft, "mean_tpot_ms",
        1e3 * f->sim.mean_tpot, "p99_ttft_ms", 1e3 * f->sim.p99_ttft, "p99_tpot_ms",
        1e3 * f->sim.p99_tpot, "kv_tokens", (json_int_t)f->max_tokens, "memory_left_bytes",
        (json_int_t)f->memory_left, "steps", (json_int_t)f->sim.sched.n_step, "preemptions",
        (json_int_t)f->sim.sched.n_preemption, "meets_slo", f->meets, "bound_by",
        fm_bound_name(f->bound), "time", shares_json(f), "command", words.text);
    FM_BUG_UNLESS(more != NULL);
    json_object_update(o, more);
    json_decref(more);
    if (f->has_tiers) json_object_set_new(o, "tiers", tiers_json(&f->sim));
    fm_str_fini(&words);
    return o;
}

static json_t *plan_json(const fm_plan_command *c)
{
    const fm_forecast *f = &c->list[0];
    json_t            *o =
        json_pack("{s:s, s:s, s:i, s:i, s:s, s:f, s:f, s:f, s:f}", "model", c->engine->model_path,
                  "device", c->cluster.device, "nodes", c->cluster.n_node, "devices_per_node",
                  c->cluster.per_node, "table", c->table.text, "total_token_throughput",
                  f->throughput, "mean_ttft_ms", 1e3 * f->sim.mean_ttft, "mean_tpot_ms",
                  1e3 * f->sim.mean_tpot, "error", f->throughput * f->error);
    json_t *list = json_array();
    FM_BUG_UNLESS(o && list);
    for (int i = 0; i < c->n; i++) json_array_append_new(list, layout_json(c, &c->list[i]));
    json_object_set_new(o, "meets_slo", json_boolean(fm_plan_choice(c) != NULL));
    if (fm_plan_is_online(c)) {
        fm_str words = {0};
        fm_plan_client_words(&words, c);
        json_object_set_new(o, "client_command", json_string_nocheck(words.text));
        fm_str_fini(&words);
    }
    json_object_set_new(o, "layouts", list);
    if (c->more.n_rank) json_object_set_new(o, "one_more_node", layout_json(c, &c->more));
    if (c->options.users)
        json_object_set_new(o, "users",
                            c->enough.n_rank ? layout_json(c, &c->enough) : json_null());
    return o;
}

static void print_json(const fm_plan_command *c)
{
    json_t *o = plan_json(c);
    json_dumpf(o, stdout, JSON_PRESERVE_ORDER | JSON_INDENT(1) | JSON_REAL_PRECISION(8));
    printf("\n");
    json_decref(o);
}

/* --- files -------------------------------------------------------------------- */

static fm_status write_script(const fm_plan_command *c)
{
    fm_str             text   = {0};
    const fm_forecast *choice = fm_plan_choice(c);
    fm_plan_script(&text, c, choice ? choice : &c->list[0]);
    const fm_status rc = fm_output_write("write-script", c->options.write_script, &text);
    fm_str_fini(&text);
    return rc;
}

static fm_status write_page(const fm_plan_command *c)
{
    fm_str text = {0};
    fm_plan_page(&text, c);
    const fm_status rc = fm_output_write("html", c->options.html, &text);
    fm_str_fini(&text);
    return rc;
}

fm_status fm_plan_report(const fm_plan_command *c)
{
    if (c->options.json)
        print_json(c);
    else
        print_all(c);
    if (c->options.write_script) FM_TRY(write_script(c));
    return c->options.html ? write_page(c) : FM_OK;
}
