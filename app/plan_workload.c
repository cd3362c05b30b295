/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llm/load/config_read.h"
#include "plan.h"

/* --dataset is a file if there is one of that name, or if it is written as one. */
static fm_status name_dataset(fm_plan_command *c)
{
    const char *what = c->options.dataset;
    if (!what || !*what) return FM_OK;
    const int      is_file = access(what, R_OK) == 0 || strpbrk(what, "./");
    const fm_knob *k =
        fm_knob_find(fm_bench_knobs, fm_n_bench_knob, is_file ? "dataset-path" : "dataset-name");
    return fm_knob_set(k, &c->bench, what);
}

static fm_status read_rate(double *out, const char *word)
{
    char *end;
    *out = strtod(word, &end);
    if (end == word || *end || !(*out > 0))
        return fm_fail(FM_E_ARG, "--request-rate %s is not a positive number or inf", word);
    return FM_OK;
}

/* --- users -------------------------------------------------------------------- */

enum { FOR_P99 = 512 }; /* answers that a 99th percentile wants */

/* Each asks once before the measurement, at least three times in it, and once behind it. */
static int n_for_users(int users)
{
    const int measured = 3 * users > FOR_P99 ? 3 * users : FOR_P99;
    return users + measured + users;
}

static fm_status check_users(const fm_plan_command *c)
{
    if (!c->options.users) return FM_OK;
    if (!(c->options.slo_ttft > 0) && !(c->options.slo_tpot > 0))
        return fm_fail(FM_E_ARG,
                       "--users %lld needs --slo-ttft or --slo-tpot: without a bound one "
                       "device serves everybody, slowly",
                       (long long)c->options.users);
    if (!isfinite(c->rate) && !c->online.max_concurrency) return FM_OK;
    return fm_fail(FM_E_ARG, "--users says when requests come: each user asks again when answered. "
                             "Leave out --request-rate and --max-concurrency");
}

/* --- rows of the dataset ------------------------------------------------------ */

static fm_status open_tokenizer(fm_tokenizer **out, const fm_options *o, const fm_model_path *path)
{
    const char *dir = fm_engine_tokenizer_dir(o, path);
    return dir ? fm_tokenizer_open(out, dir) : FM_OK;
}

/* Requests that come one by one have latencies of their own; bench's few for a minute are too few.
 */
static int n_prompt(const fm_plan_command *c, int as_bench)
{
    const int one_by_one = isfinite(c->rate) || c->online.max_concurrency;
    if (c->options.users) return n_for_users((int)c->options.users);
    return one_by_one && !c->bench.num_prompts && as_bench < FOR_P99 ? FOR_P99 : as_bench;
}

static fm_status draw_rows(fm_plan_command *c)
{
    fm_model_path   path;
    fm_model_config config;
    fm_tokenizer   *t      = NULL;
    fm_dataset      warmup = {0};
    fm_data_options d      = fm_bench_data_options(&c->bench);
    FM_TRY(fm_model_path_find(&path, c->engine->model_path));
    FM_TRY(fm_config_of(&config, &path, c->engine->json_model_override_args));
    FM_TRY(open_tokenizer(&t, c->engine, &path));
    d.n_prompt  = n_prompt(c, d.n_prompt);
    d.tokenizer = t;
    d.vocab     = config.vocab;
    d.context   = config.max_position;
    if (c->engine->context_length && c->engine->context_length < d.context)
        d.context = (int)c->engine->context_length;
    fm_status rc = fm_dataset_check(&d, t != NULL);
    if (rc == FM_OK) rc = fm_dataset_draw(&c->rows, &warmup, &d);
    fm_dataset_fini(&warmup);
    fm_tokenizer_close(t);
    return rc;
}

/* --- requests ----------------------------------------------------------------- */

/* A dataset that is too small is asked again, by tokens of another range: it is not in the cache,
 * and what its requests have in common they still have. */
enum { TOKENS_APART = 1 << 20, MOST_ROUNDS = 1000 };

static fm_status repeat_rows(fm_plan_command *c)
{
    size_t n = 0, at = 0;
    for (int i = c->rows.n; i < c->n_request; i++) n += (size_t)c->request[i].n_prompt;
    if (!n) return FM_OK;
    if (c->n_request / c->rows.n >= MOST_ROUNDS)
        return fm_fail(FM_E_ARG, "the dataset has %d requests: too few for --users %lld", c->rows.n,
                       (long long)c->options.users);
    c->repeated = malloc(n * sizeof *c->repeated);
    if (!c->repeated) return fm_fail(FM_E_OOM, "requests");
    for (int i = c->rows.n; i < c->n_request; i++) {
        fm_sim_request *r    = &c->request[i];
        const int32_t   away = i / c->rows.n * TOKENS_APART;
        for (int k = 0; k < r->n_prompt; k++) c->repeated[at + (size_t)k] = r->token[k] + away;
        r->token = c->repeated + at;
        at += (size_t)r->n_prompt;
    }
    return FM_OK;
}

static fm_status make_requests(fm_plan_command *c)
{
    fm_mt  gaps;
    double at    = 0;
    c->n_request = c->options.users ? n_for_users((int)c->options.users) : c->rows.n;
    c->request   = calloc((size_t)c->n_request + 1, sizeof *c->request);
    if (!c->request) return fm_fail(FM_E_OOM, "requests");
    fm_mt_seed_numpy(&gaps, (uint32_t)c->bench.seed);
    for (int i = 0; i < c->n_request; i++) {
        const fm_data_row *r = &c->rows.row[i % c->rows.n];
        c->request[i]        = (fm_sim_request){.token    = r->token,
                                                .n_prompt = r->n_prompt,
                                                .n_output = r->n_output,
                                                .is_open  = c->bench.disable_ignore_eos,
                                                .arrival  = at};
        if (isfinite(c->rate)) at += fm_next_gap(&gaps, c->rate);
    }
    return repeat_rows(c);
}

fm_status fm_plan_draw(fm_plan_command *c)
{
    FM_TRY(name_dataset(c));
    FM_TRY(fm_bench_check_paths(&c->bench));
    FM_TRY(read_rate(&c->rate, c->online.request_rate));
    FM_TRY(check_users(c));
    FM_TRY(draw_rows(c));
    if (!c->rows.n) return fm_fail(FM_E_ARG, "the dataset has no requests");
    return make_requests(c);
}
