/* SPDX-License-Identifier: Apache-2.0 */
/* fathom tune: search for the best parameters of a program, or of fathom itself. */
#define _POSIX_C_SOURCE 200809L
#include "tune.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "commands.h"
#include "early_end.h"
#include "output_file.h"
#include "tune/words.h"

static const char about[] =
    "Searches for the parameters at which a program does best: each trial is a process of its own, "
    "a "
    "Gaussian process chooses what to try next, and trials that fail are data, too."
    "\v"
    "With -- any command follows, in which {NAME} stands for a parameter's value.  With bench or "
    "serve "
    "fathom's own knobs are searched, and FLAGS are those of that command (for serve also those of "
    "bench "
    "--base-url, which measures it).  The study file keeps every trial: started again, the "
    "search goes on where it was.";

static const char throughput[] = "Total token throughput \\(tok/s\\): *([0-9.]+)";

/* ---- the command line ---- */

static fm_status keep_repeated(void *ctx, const fm_knob *k, const char *value)
{
    fm_tune_command *c = ctx;
    if (!strcmp(k->name, "param")) fm_word_add(&c->param, value);
    if (!strcmp(k->name, "constraint")) fm_word_add(&c->constraint, value);
    if (!strcmp(k->name, "require")) fm_word_add(&c->require, value);
    return FM_OK;
}

/* The option a word abbreviates, as argp would take it; NULL: none. */
static const fm_knob *option_of(const char *word)
{
    const size_t n = strcspn(word + 2, "=");
    for (int i = 0; i < fm_n_tune_knob; i++)
        if (!strncmp(fm_tune_knobs[i].name, word + 2, n)) return &fm_tune_knobs[i];
    return NULL;
}

/* Where our own words end: at "--", or at a word that is neither an option nor its value. */
static int end_of_own(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") && argv[i][0] == '-') {
        const fm_knob *k = !strncmp(argv[i], "--", 2) ? option_of(argv[i]) : NULL;
        i += k && k->kind != FM_KNOB_FLAG && !strchr(argv[i], '=') ? 2 : 1;
    }
    return i < argc ? i : argc;
}

static fm_status divide_words(fm_tune_command *c, fm_word_list *own, int argc, char **argv)
{
    const int end = end_of_own(argc, argv);
    fm_word_add_all(own, argv, end);
    c->form = "";
    if (end == argc) return FM_OK;
    if (!strcmp(argv[end], "--")) {
        fm_word_add_all(&c->given, argv + end + 1, argc - end - 1);
        return FM_OK;
    }
    c->form = !strcmp(argv[end], "bench") ? "bench" : !strcmp(argv[end], "serve") ? "serve" : NULL;
    if (!c->form) return FM_OK; /* which may be the value of a misspelt option: refused below */
    /* A forgetful user's `tune bench --trials 20 FLAGS` */
    static const char *const shared[] = {"seed", "quiet", NULL};
    fm_word_divide(own, &c->given, fm_tune_knobs, fm_n_tune_knob, shared, argv + end + 1,
                   argc - end - 1);
    if (fm_word_has_option(&c->given, "help")) fm_word_add(own, "--help");
    return FM_OK;
}

static fm_status read_command_line(fm_tune_command *c, int argc, char **argv)
{
    FM_TRY(fm_knobs_init(fm_tune_knobs, fm_n_tune_knob, &c->options));
    const fm_arg_table tables[] = {{"The search:", fm_tune_knobs, fm_n_tune_knob, &c->options}};
    fm_word_list       own      = {0};
    c->args                     = (fm_args){.command = "tune",
                                            .usage   = "-- COMMAND...\nbench FLAGS\nserve FLAGS",
                                            .about   = about,
                                            .table   = tables,
                                            .n_table = 1,
                                            .stored  = keep_repeated,
                                            .ctx     = c};
    fm_status rc                = divide_words(c, &own, argc, argv);
    char     *name              = own.word[0]; /* the parser puts its own there */
    const int end               = own.n;       /* the words that are ours stand first */
    if (rc == FM_OK) rc = fm_args_parse(&c->args, own.n, own.word);
    own.word[0]   = name;
    if (rc == FM_OK && !c->form)
        rc = fm_fail(FM_E_ARG, "\"%s\": expected bench, serve, or -- and a command", argv[end]);
    fm_word_list_fini(&own);
    return rc;
}

/* ---- what is searched ---- */

static fm_status generic_form(fm_tune_command *c)
{
    if (!c->given.n)
        return fm_fail(FM_E_ARG, "what is to be tuned? give bench, serve, or -- and a command");
    if (!c->param.n) return fm_fail(FM_E_ARG, "which parameters? give --param NAME=RANGE");
    if (!c->options.metric) return fm_fail(FM_E_ARG, "which value? give --metric REGEX");
    if (c->options.maximize == c->options.minimize)
        return fm_fail(FM_E_ARG,
                       "say whether larger or smaller is better: --maximize or --minimize");
    if (c->options.write_preset)
        return fm_fail(FM_E_ARG, "--write-preset is for tune bench and tune serve");
    for (int i = 0; i < c->param.n; i++) FM_TRY(fm_space_add(&c->space, c->param.word[i]));
    fm_word_add_all(&c->run, c->given.word, c->given.n);
    fm_word_add_all(&c->shown, c->given.word, c->given.n);
    return fm_words_check(&c->space, c->run.word, c->run.n);
}

static fm_status add_limit(fm_tune_command *c, const char *text)
{
    if (c->n_limit == FM_TUNE_MAX_LIMIT)
        return fm_fail(FM_E_ARG, "more than %d limits", FM_TUNE_MAX_LIMIT);
    fm_word_add(&c->limit_text, text);
    return fm_limit_init(&c->limit[c->n_limit++], text);
}

static fm_status add_objective(fm_tune_command *c, const char *name, double most)
{
    if (most <= 0) return FM_OK;
    if (strcmp(c->form, "serve"))
        return fm_fail(FM_E_ARG, "--slo-ttft and --slo-tpot are for tune serve; give --require");
    fm_str text = {0};
    fm_str_printf(&text, "P99 %s \\(ms\\): *([0-9.]+) <= %.9g", name, most);
    const fm_status rc = add_limit(c, text.text);
    fm_str_fini(&text);
    return rc;
}

static fm_status make_search(fm_tune_command *c)
{
    const fm_tune_options *o = &c->options;
    FM_TRY(*c->form ? fm_tune_own_form(c) : generic_form(c));
    for (int i = 0; i < c->constraint.n; i++)
        FM_TRY(fm_space_constrain(&c->space, c->constraint.word[i]));
    for (int i = 0; i < c->require.n; i++) FM_TRY(add_limit(c, c->require.word[i]));
    FM_TRY(add_objective(c, "TTFT", o->slo_ttft));
    FM_TRY(add_objective(c, "TPOT", o->slo_tpot));
    c->metric   = o->metric ? o->metric : throughput;
    c->maximize = o->metric ? o->maximize : !o->minimize;
    if (o->metric && o->maximize == o->minimize)
        return fm_fail(FM_E_ARG,
                       "say whether larger or smaller is better: --maximize or --minimize");
    FM_TRY(fm_output_check("html", o->html));
    FM_TRY(fm_output_check("json", o->json));
    FM_TRY(fm_output_check("write-preset", o->write_preset));
    if (o->keep_output) (void)mkdir(o->keep_output, 0777);
    return FM_OK;
}

/* ---- the run ---- */

static void tell(void *ctx, const fm_study *s, const fm_trial *t)
{
    const fm_tune_command *c    = ctx;
    fm_str                 text = {0};
    if (c->options.quiet) return;
    fm_str_printf(&text, "%s %d: ", t->confirms >= 0 ? "again" : "trial",
                  t->confirms >= 0 ? t->confirms : t->id);
    if (t->value == t->value) fm_str_printf(&text, "%.6g ", t->value);
    if (t->state != FM_TRIAL_OK) fm_str_printf(&text, "%s ", fm_trial_state_name(t->state));
    fm_str_printf(&text, "in %.1f s  ", t->seconds);
    for (int i = 0; i < s->space->n; i++) {
        if (t->at.v[i] != t->at.v[i]) continue;
        fm_str_printf(&text, " %s=", s->space->param[i].name);
        fm_point_text(s->space, &t->at, i, &text);
    }
    if (*t->why) fm_str_printf(&text, "  (%s)", t->why);
    fprintf(stderr, "%s\n", text.text);
    fm_str_fini(&text);
}

static fm_search search_of(fm_tune_command *c, fm_study *s)
{
    const fm_tune_options *o = &c->options;
    return (fm_search){.study         = s,
                       .word          = c->run.word,
                       .n_word        = c->run.n,
                       .limit         = c->limit,
                       .n_limit       = c->n_limit,
                       .first         = c->first,
                       .n_first       = c->n_first,
                       .n_trial       = (int)o->trials,
                       .n_confirm     = (int)o->confirm,
                       .jobs          = (int)o->jobs,
                       .gpus          = (int)o->gpus,
                       .trial_seconds = o->trial_time_limit,
                       .until         = o->wall_time > 0 ? fm_start_time() + o->wall_time : 0,
                       .keep_output   = o->keep_output,
                       .stop          = fm_early_end_why,
                       .ended         = tell,
                       .ctx           = c};
}

static fm_status search(fm_tune_command *c, fm_study *s, const char **why)
{
    fm_status  rc     = FM_OK;
    fm_metric *metric = NULL, *report = NULL;
    fm_search  q = search_of(c, s);
    if (!(q.sampler = fm_search_sampler_find(c->options.sampler)))
        return fm_fail(FM_E_ARG, "--sampler %s is none of gp, tpe, random", c->options.sampler);
    FM_GO(fm_metric_create(&metric, c->metric));
    if (c->options.report) FM_GO(fm_metric_create(&report, c->options.report));
    q.metric = metric;
    q.report = report;
    fm_early_end_catch();
    FM_GO(fm_search_run(&q, why));
    FM_GO(fm_search_confirm(&q));
out:
    fm_metric_destroy(metric);
    fm_metric_destroy(report);
    return rc;
}

static fm_status run(fm_tune_command *c, const char **why)
{
    fm_study s    = {.fd = -1};
    fm_str   what = {0};
    FM_TRY(make_search(c));
    fm_words_quote(&what, c->shown.word);
    if (c->client.n) {
        fm_str_puts(&what, " -- ");
        fm_words_quote(&what, c->client.word);
    }
    const fm_study_aim aim = {.maximize = c->maximize,
                              .what     = what.text,
                              .metric   = c->metric,
                              .report   = c->options.report,
                              .limit    = c->limit_text.word,
                              .n_limit  = c->limit_text.n};
    fm_status          rc  = fm_study_open(&s, c->options.study, &c->space, &aim);
    s.seed                 = (uint64_t)c->options.seed;
    if (rc == FM_OK) rc = search(c, &s, why);
    if (rc == FM_OK) rc = fm_tune_report(c, &s, *why);
    fm_study_close(&s);
    fm_str_fini(&what);
    return rc;
}

static void finish(fm_tune_command *c)
{
    fm_word_list *const lists[] = {&c->param, &c->constraint, &c->require, &c->given,     &c->run,
                                   &c->shown, &c->tuned,      &c->client,  &c->limit_text};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) fm_word_list_fini(lists[i]);
    for (int i = 0; i < c->n_limit; i++) fm_limit_fini(&c->limit[i]);
    fm_space_fini(&c->space);
    fm_args_fini(&c->args);
    fm_knobs_fini(fm_tune_knobs, fm_n_tune_knob, &c->options);
}

int fm_cmd_tune(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "serve-trial")) return fm_tune_serve_trial(argv + 2, argc - 2);
    fm_tune_command c   = {0};
    const char     *why = NULL;
    fm_status       rc  = read_command_line(&c, argc, argv);
    if (rc == FM_OK) rc = run(&c, &why);
    const int status = rc != FM_OK          ? fm_complain("tune", rc)
                       : fm_early_end_why() ? FM_EXIT_PARTIAL
                                            : FM_EXIT_OK;
    finish(&c);
    return status;
}
