/* SPDX-License-Identifier: Apache-2.0 */
/* fathom trace FILE...: what the traces of a job say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "output_file.h"
#include "trace_report/analysis.h"
#include "trace_report/compare.h"
#include "trace_report/html.h"
#include "trace_report/perfetto.h"
#include "trace_report/report_json.h"
#include "trace_report/text.h"
#include "trace_report/usual_rates.h"

typedef struct {
    char *rates, *html, *perfetto;
    int   json, compare;
} trace_options;

#define K(KIND, field, ...) FM_KNOB(trace_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(WORD, rates, "rates", NULL, 0, 0, "FILE",
      "the machine's limits, as fathom doctor --rates FILE writes them; none: unknown; default: "
      "what "
      "fathom doctor kept (~/.cache/fathom/rates.json), if it knows the hosts of the trace"),
    K(WORD, html, "html", NULL, 0, 0, "FILE",
      "write a page with timeline, roofline, ranks and requests"),
    K(WORD, perfetto, "perfetto", NULL, 0, 0, "FILE",
      "write the spans for ui.perfetto.dev and chrome://tracing"),
    K(FLAG, json, "json", NULL, 0, 0, NULL, "print the analysis, or the comparison, as JSON"),
    K(FLAG, compare, "compare", NULL, 0, 0, NULL,
      "two traces, before and after: what changed, and whether that is more than chance"),
};
enum { N_KNOB = sizeof knobs / sizeof knobs[0] };

static const char about[] =
    "Reads what --trace FILE of bench, serve, run and scf recorded and says where the time went: a "
    "verdict in words, tables of ops, collectives, phases and ranks, and a timeline.  Of several "
    "ranks, give all files or the name without .rankN.\v"
    "A trace can be read while it is being written and after its program was killed.";

typedef struct {
    trace_options opt;
    fm_args       args;
} command;

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_knobs_init(knobs, N_KNOB, &c->opt));
    const fm_arg_table table = {"The report:", knobs, N_KNOB, &c->opt};
    c->args = (fm_args){.command = "trace", .usage = "FILE...", .n_word = FM_SOME_WORDS, .about = about,
                        .table = &table, .n_table = 1};
    return fm_args_parse(&c->args, argc, argv);
}

typedef struct {
    fm_trace_job      job;
    fm_rates          rates;
    int               has_rates;
    fm_trace_analysis analysis;
} judged;

static fm_status find_rates(judged *x, const char *file)
{
    if (!file || !*file) {
        x->has_rates = fm_trace_usual_rates(&x->rates, &x->job);
        return FM_OK;
    }
    if (!strcmp(file, "none")) return FM_OK;
    FM_TRY(fm_rates_load(&x->rates, file));
    x->has_rates = 1;
    return FM_OK;
}

static const fm_rates *rates_of(const judged *x) { return x->has_rates ? &x->rates : NULL; }

static fm_status judge(judged *out, const char *const *path, int n, const char *rates)
{
    FM_TRY(fm_trace_job_open(&out->job, path, n));
    FM_TRY(find_rates(out, rates));
    return fm_trace_analyse(&out->analysis, &out->job, rates_of(out));
}

static void forget(judged *x)
{
    fm_trace_analysis_fini(&x->analysis);
    fm_rates_fini(&x->rates);
    fm_trace_job_close(&x->job);
}

static int is_given(const char *word) { return word && *word; }

static fm_status write_html(const command *c, const fm_trace_analysis *a)
{
    fm_output_file o;
    if (!is_given(c->opt.html)) return FM_OK;
    FM_TRY(fm_output_create(&o, "html", c->opt.html));
    const fm_status rc = fm_trace_html(o.to, a), closed = fm_output_close(&o);
    return rc != FM_OK ? rc : closed;
}

static fm_status write_perfetto(const command *c, const fm_trace_job *j)
{
    fm_output_file o;
    if (!is_given(c->opt.perfetto)) return FM_OK;
    FM_TRY(fm_output_create(&o, "perfetto", c->opt.perfetto));
    fm_trace_perfetto(o.to, j);
    return fm_output_close(&o);
}

static void print(fm_str *text)
{
    fputs(text->text, stdout);
    fm_str_fini(text);
}

static fm_status report(const command *c)
{
    judged    x    = {0};
    fm_str    text = {0};
    fm_status rc   = FM_OK;
    FM_GO(judge(&x, c->args.given, c->args.n_given, c->opt.rates));
    FM_GO(write_html(c, &x.analysis));
    FM_GO(write_perfetto(c, &x.job));
    if (c->opt.json)
        fm_trace_json(&text, &x.analysis);
    else
        fm_trace_text(&text, &x.analysis);
    print(&text);
out:
    forget(&x);
    return rc;
}

static fm_status compare(const command *c)
{
    judged              before = {0}, after = {0};
    fm_trace_comparison changes = {0};
    fm_str              text    = {0};
    fm_status           rc      = FM_OK;
    if (is_given(c->opt.html) || is_given(c->opt.perfetto))
        return fm_fail(FM_E_ARG, "--compare prints a table or --json; --%s shows one trace alone",
                       is_given(c->opt.html) ? "html" : "perfetto");
    if (c->args.n_given != 2)
        return fm_fail(FM_E_ARG, "--compare takes two traces, before and after; %d given",
                       c->args.n_given);
    FM_GO(judge(&before, c->args.given, 1, c->opt.rates));
    FM_GO(judge(&after, c->args.given + 1, 1, c->opt.rates));
    FM_GO(fm_trace_compare(&changes, &before.analysis, &after.analysis));
    (c->opt.json ? fm_trace_compare_json : fm_trace_compare_text)(&text, &changes);
    print(&text);
out:
    fm_trace_comparison_fini(&changes);
    forget(&before);
    forget(&after);
    return rc;
}

int fm_cmd_trace(int argc, char **argv)
{
    command   c  = {0};
    fm_status rc = read_command_line(&c, argc, argv);
    if (rc == FM_OK) rc = (c.opt.compare ? compare : report)(&c);
    const int status = rc == FM_OK ? FM_EXIT_OK : fm_complain("trace", rc);
    fm_args_fini(&c.args);
    fm_knobs_fini(knobs, N_KNOB, &c.opt);
    return status;
}
