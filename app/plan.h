/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom plan`: which layout of a cluster is the best for a model and a workload, before anything
 * runs.
 *
 *     machine (tuned/NAME.json) ─┐
 *     cluster, its links ────────┼─> forecast of every layout ──> table, JSON, page, job script
 *     workload (bench's flags) ──┘
 */
#ifndef FM_APP_PLAN_H
#define FM_APP_PLAN_H

#include "args.h"
#include "bench_online.h"
#include "llm/planner/forecast.h"
#include "word_list.h"

typedef struct {
    char   *cluster, *machine, *dataset, *html, *write_script, *write_table;
    int64_t users, rows;
    double  slo_ttft, slo_tpot; /* milliseconds */
    double  accept_length, calibrate_seconds;
    int     calibrate, json, all_devices;
} fm_plan_options;

extern const fm_knob fm_plan_knobs[];
extern const int     fm_n_plan_knob;

typedef struct {
    fm_plan_options   options;
    fm_bench_options  bench;
    fm_online_options online;
    fm_options       *engine;
    fm_args           args;
    fm_word_list      given; /* words that are not plan's own: for command lines of others */
    fm_layout_wish    wish;  /* sizes that were given */

    fm_tuned   tuned;
    fm_str     table; /* where tuned was read */
    fm_cluster cluster;
    int        is_here; /* the cluster is this machine */
    int        has_gpu; /* this machine does */
    double     gpu_memory;
    int        strict; /* a machine without a table is an error */

    fm_dataset      rows;
    fm_sim_request *request; /* [n_request] */
    int             n_request;
    int32_t        *repeated; /* prompts of requests beyond rows.n */
    double          rate;     /* requests per second; INFINITY: all at once */

    fm_forecast *list; /* [n] the best first */
    int          n;
    fm_forecast  more;    /* the best with one more node; n_rank 0: not looked at */
    fm_forecast  enough;  /* the fewest devices that serve --users; n_rank 0: none do */
    double       seconds; /* that the forecast took */
} fm_plan_command;

/* plan.c: for another command, whose name stands in complaints about words, up to the table of
 * costs: argv[0] is not read.  Close *out even after an error. */
fm_status fm_plan_open(fm_plan_command **out, const char *command, int argc, char **argv);
void      fm_plan_close(fm_plan_command *c); /* NULL is fine */

/* plan_machine.c: the cluster; the table of what its devices cost, which is measured in a second
 * where there is none; --calibrate. */
fm_status   fm_plan_find_cluster(fm_plan_command *c);
fm_status   fm_plan_find_table(fm_plan_command *c);
fm_status   fm_plan_calibrate(fm_plan_command *c);
const char *fm_plan_model_name(const fm_options *o); /* under which steps are kept */

/* plan_workload.c: the requests and when they come. */
fm_status fm_plan_draw(fm_plan_command *c);

/* plan_search.c: fills list, more and enough. */
fm_forecast_ask fm_plan_ask(const fm_plan_command *c, const fm_cluster *cluster);
fm_status       fm_plan_search(fm_plan_command *c);

/* Requests that come one by one, or latencies that are bounded: a server is planned. */
int fm_plan_is_online(const fm_plan_command *c);
/* What is recommended: the first layout, or the fewest devices that serve --users.  NULL: none
 * meets the latencies. */
const fm_forecast *fm_plan_choice(const fm_plan_command *c);

/* plan_script.c: the words that run a layout (of `fathom serve`, when a server is planned), those
 * that measure it then, and a job script for PBS and Slurm. */
void fm_plan_client_words(fm_str *out, const fm_plan_command *c);
void fm_plan_words(fm_str *out, const fm_plan_command *c, const fm_forecast *f);
void fm_plan_script(fm_str *out, const fm_plan_command *c, const fm_forecast *f);

/* plan_report.c, plan_page.c */
fm_status fm_plan_report(const fm_plan_command *c);
void      fm_plan_page(fm_str *out, const fm_plan_command *c);
void      fm_plan_bound_words(fm_str *out, const fm_forecast *f);

#endif
