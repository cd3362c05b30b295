/* SPDX-License-Identifier: Apache-2.0 */
/* fathom eval: how many questions of a set does a model answer, task by task. */
#include "eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/clock.h"
#include "bench.h"
#include "commands.h"
#include "default_model.h"
#include "model_facts.h"
#include "output_file.h"
#include "start.h"

typedef struct {
    char   *set, *answers;
    int64_t limit, max_new_tokens;
    double  floor;
    int     json;
} eval_options;

#define K(KIND, field, ...) FM_KNOB(eval_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(WORD, set, "set", NULL, 0, 0, "FILE", "questions, one JSON object per line"),
    K(INT, limit, "limit", "0", 0, 1 << 20, "N", "ask the first N questions; 0: all"),
    K(INT, max_new_tokens, "max-new-tokens", "384", 1, 1 << 20, "N", "longest answer"),
    K(REAL, floor, "floor", "0", 0, 100, "PERCENT", "exit 1 when fewer answers are right"),
    K(WORD, answers, "answers", NULL, 0, 0, "FILE", "write each answer and its mark, as JSON lines"),
    K(FLAG, json, "json", NULL, 0, 0, NULL, "print the result as JSON"),
};
enum { N_KNOB = sizeof knobs / sizeof knobs[0], MAX_TASK = 64 };

static const char about[] =
    "Asks every question of a set, greedily and all in one batch, and marks the answers.  Formed: "
    "the answer has the form asked for (JSON with the right keys, a tool call that can be "
    "executed); right: it is the one expected.";

typedef struct {
    fm_options  *engine;
    eval_options opt;
    fm_args      args;
    fm_eval_set  set;
    double       seconds;
    fm_engine_info info; /* at the end */
} command;

typedef struct {
    const char *task; /* borrowed */
    int         n, n_formed, n_right;
} tally;

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_options_create(&c->engine));
    FM_TRY(fm_knobs_init(knobs, N_KNOB, &c->opt));
    const fm_arg_table tables[] = {
        {"The questions:", knobs, N_KNOB, &c->opt},
        {"The engine:", fm_engine_knobs, fm_n_engine_knob, c->engine},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->engine->world},
    };
    c->args = (fm_args){.command = "eval", .about = about, .table = tables, .n_table = 3};
    FM_TRY(fm_args_parse(&c->args, argc, argv));
    if (!c->opt.set) return fm_fail(FM_E_ARG, "which questions? give --set");
    return fm_output_check("answers", c->opt.answers);
}

static fm_status submit(fm_engine *e, fm_tokenizer_scratch *scratch, fm_eval_item *it, int most)
{
    fm_ids    ids = {0};
    fm_prompt p   = {.sampling = fm_sampling_default(), .keep_special = 1};
    p.sampling.temperature    = 0;
    p.sampling.max_new_tokens = most;
    fm_status rc =
        fm_encode(fm_engine_tokenizer(e), scratch, it->prompt.text, it->prompt.len, 0, &ids);
    p.token   = ids.id;
    p.n_token = (int32_t)ids.n;
    if (rc == FM_OK) rc = fm_engine_submit(e, &p, &it->id);
    fm_ids_fini(&ids);
    return rc;
}

/* Ids are given in the order of submission. */
static fm_eval_item *item_of(fm_eval_set *s, uint64_t id)
{
    const uint64_t i = id - s->item[0].id;
    FM_BUG_UNLESS(i < (uint64_t)s->n && s->item[i].id == id);
    return &s->item[i];
}

static void collect(fm_engine *e, fm_eval_set *s)
{
    fm_event ev;
    while (fm_engine_poll(e, &ev)) {
        fm_eval_item *it = item_of(s, ev.id);
        fm_str_add(&it->answer, ev.text, ev.text_len);
        it->finish = ev.finish;
    }
}

static fm_status answer_all(command *c, fm_engine *e)
{
    fm_tokenizer_scratch *scratch = NULL;
    const double          began   = fm_now();
    FM_TRY(fm_tokenizer_scratch_create(&scratch, fm_engine_tokenizer(e)));
    fm_status rc = FM_OK;
    for (int i = 0; rc == FM_OK && i < c->set.n; i++)
        rc = submit(e, scratch, &c->set.item[i], (int)c->opt.max_new_tokens);
    while (rc == FM_OK && fm_engine_busy(e)) {
        rc = fm_engine_step(e);
        collect(e, &c->set);
    }
    collect(e, &c->set);
    for (int i = 0; rc == FM_OK && i < c->set.n; i++)
        if (c->set.item[i].finish == FM_FINISH_ERROR)
            rc = fm_fail(FM_E_FORMAT, "question %d: %s", i, fm_finish_why(FM_FINISH_ERROR));
    fm_tokenizer_scratch_destroy(scratch);
    c->seconds = fm_now() - began;
    c->info    = fm_engine_get_info(e);
    return rc;
}

static fm_status count(const fm_eval_set *s, tally *t, int *n_task)
{
    for (int i = 0; i < s->n; i++) {
        const fm_eval_item *it = &s->item[i];
        int                 k  = 0;
        while (k < *n_task && strcmp(t[k].task, it->task)) k++;
        if (k == MAX_TASK) return fm_fail(FM_E_FORMAT, "more than %d tasks in one set", MAX_TASK);
        if (k == *n_task) t[(*n_task)++] = (tally){.task = it->task};
        t[k].n++;
        t[k].n_formed += it->is_formed;
        t[k].n_right += it->is_right;
    }
    return FM_OK;
}

static tally sum(const tally *t, int n)
{
    tally all = {.task = "all"};
    for (int k = 0; k < n; k++) {
        all.n += t[k].n;
        all.n_formed += t[k].n_formed;
        all.n_right += t[k].n_right;
    }
    return all;
}

static double percent(int part, int whole)
{
    return 100.0 * part / whole;
}

static double tokens_per_second(const command *c)
{
    return (double)c->info.sched.n_output / (c->seconds > 0 ? c->seconds : 1e-9);
}

static double accept_length(const command *c)
{
    return fm_sched_accept_length(c->info.sched.n_decode_row, c->info.sched.n_accepted);
}

static double accept_rate(const command *c)
{
    const fm_sched_stats *n = &c->info.sched;
    return n->n_draft ? (double)n->n_accepted / (double)n->n_draft : 0;
}

static void print_table(const command *c, const tally *t, int n_task)
{
    const char *simulated = fm_bench_simulated(&c->info);
    printf("model %s, dtype %s, %d questions in %.1f s%s\n", c->engine->model_path,
           c->engine->dtype, c->set.n, c->seconds, simulated);
    printf("%lld tokens, %.1f tokens/s%s", (long long)c->info.sched.n_output, tokens_per_second(c),
           simulated);
    if (c->info.sched.n_draft)
        printf(", accept rate %.2f%s, accept length %.2f%s", accept_rate(c), simulated,
               accept_length(c), simulated);
    putchar('\n');
    printf("%-14s %6s %8s %8s\n", "task", "n", "formed", "right");
    for (int k = 0; k <= n_task; k++)
        printf("%-14s %6d %7.1f%% %7.1f%%\n", t[k].task, t[k].n, percent(t[k].n_formed, t[k].n),
               percent(t[k].n_right, t[k].n));
}

static void print_json(const command *c, const tally *t, int n_task)
{
    json_t *tasks = json_object();
    for (int k = 0; k <= n_task; k++)
        json_object_set_new(tasks, t[k].task,
                            json_pack("{s:i, s:f, s:f}", "n", t[k].n, "formed",
                                      percent(t[k].n_formed, t[k].n), "right",
                                      percent(t[k].n_right, t[k].n)));
    json_t *o = json_pack("{s:s, s:s, s:f, s:I, s:f, s:f, s:f, s:o}", "model",
                          c->engine->model_path, "dtype", c->engine->dtype, "seconds", c->seconds,
                          "output_tokens", (json_int_t)c->info.sched.n_output, "output_throughput",
                          tokens_per_second(c), "accept_length", accept_length(c),
                          "spec_accept_rate", accept_rate(c), "tasks", tasks);
    FM_BUG_UNLESS(o != NULL);
    if (c->info.simulated_accept_length > 0)
        json_object_set_new(o, "simulated_accept_length",
                            json_real(c->info.simulated_accept_length));
    json_dumpf(o, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(o);
}

static fm_status write_answers(const fm_eval_set *s, const char *path)
{
    fm_output_file f;
    FM_TRY(fm_output_create(&f, "answers", path));
    for (int i = 0; i < s->n; i++) {
        const fm_eval_item *it = &s->item[i];
        json_t *o = json_pack("{s:s, s:O, s:s, s:O, s:b, s:b}", "task", it->task, "messages",
                              json_object_get(it->line, "messages"), "answer",
                              it->answer.text ? it->answer.text : "", "check", it->check, "formed",
                              it->is_formed, "right", it->is_right);
        if (o) json_dumpf(o, f.to, JSON_COMPACT);
        fputc('\n', f.to);
        json_decref(o);
    }
    return fm_output_close(&f);
}

static fm_status eval(command *c, int *passed)
{
    fm_status  rc = FM_OK;
    fm_engine *e  = NULL;
    tally      t[MAX_TASK + 1];
    int        n_task = 0;

    FM_GO(fm_eval_load(&c->set, c->opt.set, c->opt.limit));
    FM_GO(fm_default_model(c->engine));
    FM_GO(fm_model_need_tokenizer(c->engine, "eval"));
    FM_GO(fm_start_engine(&e, c->engine, &c->args));
    if (!fm_engine_is_leader(e)) {
        *passed = 1; /* the leader says */
        rc      = fm_engine_follow(e);
        goto out;
    }
    FM_GO(fm_eval_render(&c->set, fm_engine_tokenizer(e)));
    FM_GO(answer_all(c, e));
    for (int i = 0; i < c->set.n; i++) fm_eval_mark(&c->set.item[i]);
    FM_GO(count(&c->set, t, &n_task));
    t[n_task] = sum(t, n_task);
    (c->opt.json ? print_json : print_table)(c, t, n_task);
    *passed = percent(t[n_task].n_right, t[n_task].n) >= c->opt.floor;
    if (c->opt.answers && *c->opt.answers) FM_GO(write_answers(&c->set, c->opt.answers));
out:
    fm_engine_close(e);
    return rc;
}

int fm_cmd_eval(int argc, char **argv)
{
    command c      = {0};
    int     passed = 0;

    fm_status rc = read_command_line(&c, argc, argv);
    if (rc == FM_OK) rc = eval(&c, &passed);
    const int status = rc != FM_OK ? fm_complain("eval", rc)
                       : passed    ? FM_EXIT_OK
                                   : FM_EXIT_FAILED;

    fm_eval_fini(&c.set);
    fm_args_fini(&c.args);
    fm_knobs_fini(knobs, N_KNOB, &c.opt);
    fm_options_destroy(c.engine);
    return status;
}
