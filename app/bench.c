/* SPDX-License-Identifier: Apache-2.0 */
/* fathom bench: offline throughput.  The order of effects is SGLang's: load,
 * draw the dataset and the warm-up, warm up, pause, time one batched call,
 * report.  The cache is not flushed in between. */
#define _POSIX_C_SOURCE 200809L
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "bench_online.h"
#include "commands.h"
#include "default_model.h"
#include "early_end.h"
#include "model_facts.h"
#include "start.h"

static const char *const default_model = "r1-mini";

static const char about[] =
    "Measures offline throughput: all requests are submitted at once, and the table shows how "
    "long answering them took.  Without options: the built-in shape r1-mini with dummy weights "
    "and requests as long as ShareGPT's, about a minute on two cores."
    "\v"
    "With --batch-size, --input-len or --output-len the latency of one batch's prefill and decode "
    "is measured instead.  With --base-url a running server is measured: requests arrive at "
    "--request-rate, and the table shows their latencies.  Options may be shortened to a unique "
    "beginning.  Flags of SGLang and vLLM that have no meaning here are accepted and explained.";

typedef struct {
    fm_options       *engine;
    fm_bench_options  bench;
    fm_online_options online;
    fm_args           args;
    fm_ask            ask;
    int               is_online;
    int               is_partial; /* out: the run was ended early */
} command;

static int is_list(const char *option)
{
    static const char *const lists[] = {"batch-size", "input-len", "output-len"};
    for (int i = 0; option && i < 3; i++)
        if (!strcmp(lists[i], option)) return 1;
    return 0;
}

/* "--batch-size 1 8 64", as argparse takes lists. */
static fm_status take_word(void *ctx, const char *after, const char *word)
{
    command *c = ctx;
    if (!is_list(after)) return fm_args_stray(word);
    const fm_knob *k    = fm_knob_find(fm_bench_knobs, fm_n_bench_knob, after);
    char         **list = (char **)((char *)&c->bench + k->offset);
    fm_str         both = {0};
    fm_str_printf(&both, "%s,%s", *list, word);
    const fm_status rc = fm_knob_set(k, &c->bench, both.text);
    fm_str_fini(&both);
    return rc;
}

static fm_status check_time_limit(const command *c)
{
    const fm_bench_options *b = &c->bench;
    if (b->time_limit <= 0 || (!c->is_online && !b->batch_size && !b->input_len && !b->output_len))
        return FM_OK;
    return fm_fail(FM_E_ARG, "--time-limit is for the offline measurement: not with --base-url, "
                             "--batch-size, --input-len or --output-len");
}

static fm_status check_arrivals(const command *c)
{
    const int paced = strcmp(c->online.request_rate, "inf") != 0;
    if (c->is_online || (!paced && !c->online.max_concurrency)) return FM_OK;
    return fm_fail(FM_E_ARG, "%s is for a running server: start fathom serve and give --base-url",
                   paced ? "--request-rate" : "--max-concurrency");
}

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_options_create(&c->engine));
    FM_TRY(fm_knobs_init(fm_bench_knobs, fm_n_bench_knob, &c->bench));
    FM_TRY(fm_knobs_init(fm_online_knobs, fm_n_online_knob, &c->online));
    const fm_arg_table tables[] = {
        {"The job:", fm_bench_knobs, fm_n_bench_knob, &c->bench},
        {"A running server:", fm_online_knobs, fm_n_online_knob, &c->online},
        {"The engine:", fm_engine_knobs, fm_n_engine_knob, c->engine},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->engine->world},
    };
    c->args            = (fm_args){.command = "bench",
                                   .about   = about,
                                   .table   = tables,
                                   .n_table = 4,
                                   .word    = take_word,
                                   .ctx     = c};
    FM_TRY(fm_args_parse(&c->args, argc, argv));
    FM_TRY(fm_online_wanted(&c->is_online, &c->online));
    FM_TRY(check_arrivals(c));
    FM_TRY(check_time_limit(c));
    fm_early_end_limit(c->bench.time_limit);
    if (c->is_online) return FM_OK; /* no engine here */
    if (!c->engine->model_path) FM_TRY(fm_options_set(c->engine, "model-path", default_model));
    FM_TRY(fm_named_model(c->engine));
    FM_TRY(fm_bench_check_paths(&c->bench));
    FM_TRY(fm_bench_ask_init(&c->ask, &c->bench));
    c->ask.quiet = c->engine->quiet;
    c->ask.ends  = fm_early_end_why;
    return FM_OK;
}

/* Requests whose answers end early because no more of a text fits in the pool. */
static int count_cut_by_pool(const fm_dataset *rows, const fm_ask *ask, int64_t pool)
{
    int n = 0;
    for (int i = 0; i < rows->n; i++) {
        const fm_data_row *r    = &rows->row[i];
        const int          most = ask->set_max_new ? ask->sampling.max_new_tokens : r->n_output;
        n += (int64_t)r->n_prompt + most > pool;
    }
    return n;
}

/* The pool of the plan is that of all engines; a text has the pages of one. */
static fm_bench_changes find_changes(const fm_dataset *rows, const command *c, const fm_engine *e)
{
    const int     context = fm_engine_context(e);
    const int64_t pool    = fm_engine_get_info(e).plan.max_tokens / c->engine->dp_size;
    return (fm_bench_changes){.n_asked       = fm_bench_asked(&c->bench),
                              .n_cut_context = rows->n_cut,
                              .context       = context,
                              .n_cut_pool =
                                  pool < context ? count_cut_by_pool(rows, &c->ask, pool) : 0,
                              .pool = pool};
}

static fm_status draw(fm_dataset *rows, fm_dataset *warmup, const command *c, const fm_engine *e)
{
    fm_data_options d = fm_bench_data_options(&c->bench);
    d.tokenizer       = fm_engine_tokenizer(e);
    d.vocab           = fm_engine_config(e)->vocab;
    d.context         = fm_engine_context(e);
    FM_TRY(fm_dataset_draw(rows, warmup, &d));
    printf("#Input tokens: %lld\n#Output tokens: %lld\n", (long long)rows->sum_prompt,
           (long long)rows->sum_output);
    fflush(stdout);
    return FM_OK;
}

static fm_status warm_up(fm_engine *e, const fm_dataset *rows)
{
    fm_ask ask               = {.sampling = fm_sampling_default(), .n_sample = 1, .quiet = 1};
    ask.sampling.temperature = 0;
    ask.sampling.ignore_eos  = 1;
    ask.skip_unfit           = 1;

    fm_answers      batch;
    const fm_status rc = fm_generate(&batch, e, rows, &ask);
    fm_answers_fini(&batch);
    nanosleep(&(struct timespec){.tv_nsec = 500 * 1000 * 1000}, NULL);
    return rc;
}

/* Numbers of a run in which requests failed are no result. */
static fm_status verdict(const fm_answers *b)
{
    if (!b->n_failed) return FM_OK;
    return fm_fail(FM_E_FORMAT, "%d of %d requests failed: %s", b->n_failed, b->n_row * b->n_sample,
                   fm_finish_why(FM_FINISH_ERROR));
}

/* What was measured is printed whatever becomes of the files, and one file is
 * written whatever becomes of the other. */
static fm_status report(const fm_bench_result *r, const fm_bench_options *b)
{
    fm_status line = FM_OK, details = FM_OK;
    fm_bench_print(r);
    if (b->result_filename && *b->result_filename)
        line = fm_bench_append("result-filename", b->result_filename, fm_bench_json(r, b));
    if (b->output_details && *b->output_details)
        details = fm_bench_write_details(b->output_details, r->rows, r->batch);
    if (line != FM_OK || details != FM_OK) return line == FM_OK ? details : line;
    return verdict(r->batch);
}

/* mpirun also sends SIGTERM when it has lost a rank: the line that names the rank is written
 * within this time. */
static void wait_for_lost_rank_line(const fm_options *o)
{
    if (o->tp_size * o->pp_size * o->dp_size == 1) return;
    nanosleep(&(struct timespec){.tv_nsec = 300 * 1000 * 1000}, NULL);
}

static fm_status abandon(fm_engine *e)
{
    fm_event ev;
    fm_engine_cancel_all(e);
    while (fm_engine_busy(e)) {
        FM_TRY(fm_engine_step(e));
        while (fm_engine_poll(e, &ev)) continue;
    }
    return FM_OK;
}

/* Reports what was measured before requests that still run are cancelled. */
static fm_status finish(command *c, fm_engine *e, const fm_bench_result *r)
{
    c->is_partial = r->batch->ended_by != NULL;
    if (c->is_partial) wait_for_lost_rank_line(c->engine);
    const fm_status told = report(r, &c->bench);
    fflush(stdout);
    if (c->is_partial) FM_TRY(abandon(e));
    return told;
}

static fm_status run_offline(command *c, fm_engine *e)
{
    fm_status       rc   = FM_OK;
    fm_dataset      rows = {0}, warmup = {0};
    fm_answers      batch = {0};
    fm_bench_result r     = {.engine  = c->engine,
                             .dataset = fm_bench_dataset_name(&c->bench),
                             .rows    = &rows,
                             .batch   = &batch};

    fm_early_end_catch();
    FM_GO(draw(&rows, &warmup, c, e));
    r.changes = find_changes(&rows, c, e);
    if (!c->bench.skip_warmup && !fm_early_end_why()) FM_GO(warm_up(e, &warmup));

    const fm_engine_info before = fm_engine_get_info(e);
    FM_GO(fm_bench_profile_begin(&c->bench, e));
    FM_GO(fm_generate(&batch, e, &rows, &c->ask));
    r.info   = fm_engine_get_info(e);
    r.counts = fm_bench_counts_since(&before, &r.info);
    FM_GO(fm_bench_profile_end(&c->bench, e));
    FM_GO(finish(c, e, &r));
    FM_GO(fm_bench_profile_explain(&c->bench));
out:
    fm_answers_fini(&batch);
    fm_dataset_fini(&warmup);
    fm_dataset_fini(&rows);
    return rc;
}

static fm_status measure_batches(const command *c, fm_engine *e, const fm_bench_lists *lists)
{
    FM_TRY(fm_bench_profile_begin(&c->bench, e));
    FM_TRY(fm_bench_one_batch(e, c->engine, &c->bench, lists));
    FM_TRY(fm_bench_profile_end(&c->bench, e));
    return fm_bench_profile_explain(&c->bench);
}

static fm_status run_one_batch(command *c, fm_engine **e)
{
    fm_bench_lists lists = {0};
    fm_status      rc    = fm_bench_lists_init(&lists, &c->bench);
    if (rc == FM_OK && c->engine->max_running_requests == 0)
        c->engine->max_running_requests = fm_bench_lists_max_batch(&lists);
    if (rc == FM_OK) rc = fm_start_engine(e, c->engine, &c->args);
    if (rc == FM_OK)
        rc = fm_engine_is_leader(*e) ? measure_batches(c, *e, &lists) : fm_engine_follow(*e);
    fm_bench_lists_fini(&lists);
    return rc;
}

/* Before minutes are spent on the weights of a model that cannot read it. */
static fm_status check_dataset(const command *c)
{
    const fm_data_options d = fm_bench_data_options(&c->bench);
    int                   has_tokenizer;
    FM_TRY(fm_model_has_tokenizer(&has_tokenizer, c->engine));
    return fm_dataset_check(&d, has_tokenizer);
}

static fm_status run(command *c, fm_engine **e)
{
    if (c->bench.batch_size || c->bench.input_len || c->bench.output_len)
        return run_one_batch(c, e);
    FM_TRY(check_dataset(c));
    FM_TRY(fm_start_engine(e, c->engine, &c->args));
    if (fm_engine_is_leader(*e)) return run_offline(c, *e);
    fm_early_end_ignore();
    return fm_engine_follow(*e);
}

/* A script that starts one process on each node means one of them. */
static int is_elsewhere(const command *c)
{
    const fm_options *o = c->engine;
    return c->args.n_node > 1 && c->args.node > 0 && o->tp_size * o->pp_size * o->dp_size == 1;
}

int fm_cmd_bench(int argc, char **argv)
{
    command    c = {0};
    fm_engine *e = NULL;

    fm_status rc = read_command_line(&c, argc, argv);
    if (rc == FM_OK && c.is_online)
        rc = fm_bench_online(&c.online, &c.bench, c.engine, &c.args);
    else if (rc == FM_OK && is_elsewhere(&c))
        printf("fathom bench: one rank runs on node 0; nothing to do on node %d\n", c.args.node);
    else if (rc == FM_OK)
        rc = run(&c, &e);
    const int status = rc != FM_OK    ? fm_complain("bench", rc)
                       : c.is_partial ? FM_EXIT_PARTIAL
                                      : FM_EXIT_OK;

    fflush(stdout);
    if (rc == FM_OK && c.bench.do_not_exit && !c.is_partial) pause();
    fm_engine_close(e);
    fm_bench_ask_fini(&c.ask);
    fm_args_fini(&c.args);
    fm_knobs_fini(fm_bench_knobs, fm_n_bench_knob, &c.bench);
    fm_knobs_fini(fm_online_knobs, fm_n_online_knob, &c.online);
    fm_options_destroy(c.engine);
    return status;
}
