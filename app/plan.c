/* SPDX-License-Identifier: Apache-2.0 */
/* fathom plan: what every layout of a cluster would reach, before anything runs. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "default_model.h"
#include "output_file.h"

static const char *const default_model = "r1-mini";

static const char about[] =
    "Predicts throughput and latency of every layout (tensor, pipeline, data and expert "
    "parallelism, DP attention) of a cluster for a model and a workload: the memory plan of each "
    "rank, then a simulation of the engine's own scheduler over the requests, with step times "
    "from measured costs of ops and from link rates.  The best layout comes as a command line and "
    "as a job script."
    "\v"
    "The workload has the flags of fathom bench; --request-rate and --max-concurrency describe "
    "requests that come one by one.  Sizes that are given (--tp-size ...) are kept, others are "
    "searched.  --calibrate measures this machine.";

/* Sizes that were given are kept. */
static fm_status note_size(void *ctx, const fm_knob *k, const char *value)
{
    fm_plan_command *c = ctx;
    (void)value;
    if (!strcmp(k->name, "tp-size")) c->wish.tp = (int)c->engine->tp_size;
    if (!strcmp(k->name, "pp-size")) c->wish.pp = (int)c->engine->pp_size;
    if (!strcmp(k->name, "dp-size")) {
        c->wish.dp = (int)c->engine->dp_size;
        if (c->wish.dp_attention < 0) c->wish.dp_attention = 0; /* replicas, unless it is said */
    }
    if (!strcmp(k->name, "ep-size")) c->wish.ep = (int)c->engine->ep_size;
    if (!strcmp(k->name, "enable-dp-attention")) c->wish.dp_attention = 1;
    return FM_OK;
}

static fm_status parse(fm_plan_command *c, const char *command, int argc, char **argv)
{
    const fm_arg_table tables[] = {
        {"The plan:", fm_plan_knobs, fm_n_plan_knob, &c->options},
        {"The job:", fm_bench_knobs, fm_n_bench_knob, &c->bench},
        {"Its arrivals:", fm_online_knobs, fm_n_online_knob, &c->online},
        {"The engine:", fm_engine_knobs, fm_n_engine_knob, c->engine},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->engine->world},
    };
    c->args            = (fm_args){.command = command,
                                   .about   = about,
                                   .table   = tables,
                                   .n_table = 5,
                                   .stored  = note_size,
                                   .ctx     = c};
    return fm_args_parse(&c->args, argc, argv);
}

static fm_status read_command_line(fm_plan_command *c, const char *command, int argc, char **argv)
{
    fm_word_list own     = {0};
    c->wish.dp_attention = -1;
    fm_word_divide(&own, &c->given, fm_plan_knobs, fm_n_plan_knob, NULL, argv + 1, argc - 1);
    fm_word_list_fini(&own);
    FM_TRY(fm_options_create(&c->engine));
    FM_TRY(fm_knobs_init(fm_plan_knobs, fm_n_plan_knob, &c->options));
    FM_TRY(fm_knobs_init(fm_bench_knobs, fm_n_bench_knob, &c->bench));
    FM_TRY(fm_knobs_init(fm_online_knobs, fm_n_online_knob, &c->online));
    FM_TRY(parse(c, command, argc, argv));
    if (!c->engine->model_path) FM_TRY(fm_options_set(c->engine, "model-path", default_model));
    FM_TRY(fm_named_model(c->engine));
    FM_TRY(fm_output_check("html", c->options.html));
    return fm_output_check("write-script", c->options.write_script);
}

/* What was typed is checked before anything is measured. */
static fm_status prepare(fm_plan_command *c)
{
    FM_TRY(fm_plan_find_cluster(c));
    FM_TRY(fm_plan_draw(c));
    return fm_plan_find_table(c);
}

static fm_status run(fm_plan_command *c)
{
    if (c->options.calibrate) return fm_plan_calibrate(c);
    FM_TRY(prepare(c));
    FM_TRY(fm_plan_search(c));
    return fm_plan_report(c);
}

void fm_plan_close(fm_plan_command *c)
{
    if (!c) return;
    free(c->list);
    free(c->request);
    free(c->repeated);
    fm_dataset_fini(&c->rows);
    fm_str_fini(&c->table);
    fm_args_fini(&c->args);
    fm_word_list_fini(&c->given);
    fm_knobs_fini(fm_plan_knobs, fm_n_plan_knob, &c->options);
    fm_knobs_fini(fm_bench_knobs, fm_n_bench_knob, &c->bench);
    fm_knobs_fini(fm_online_knobs, fm_n_online_knob, &c->online);
    fm_options_destroy(c->engine);
    free(c);
}

fm_status fm_plan_open(fm_plan_command **out, const char *command, int argc, char **argv)
{
    fm_plan_command *c = calloc(1, sizeof *c);
    if (!c) return fm_fail(FM_E_OOM, "plan");
    *out      = c; /* the caller closes it */
    c->strict = 1;
    FM_TRY(read_command_line(c, command, argc, argv));
    return prepare(c);
}

int fm_cmd_plan(int argc, char **argv)
{
    fm_plan_command *c = calloc(1, sizeof *c);
    FM_BUG_UNLESS(c != NULL);
    fm_status rc = read_command_line(c, "plan", argc, argv);
    if (rc == FM_OK) rc = run(c);
    const int unmet  = rc == FM_OK && !c->options.calibrate && !fm_plan_choice(c);
    const int status = rc != FM_OK ? fm_complain("plan", rc) : unmet ? FM_EXIT_FAILED : FM_EXIT_OK;
    fm_plan_close(c);
    return status;
}
