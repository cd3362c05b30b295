/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom tune`: from a command line to a search (tune/search.h), and from its
 * study to a report.
 *
 *     fathom tune OPTIONS -- PROGRAM WORDS WITH {PARAMETERS}      any program
 *     fathom tune OPTIONS bench FLAGS                             fathom's own knobs, offline
 *     fathom tune OPTIONS serve FLAGS                             a server and its clients
 */
#ifndef FM_APP_TUNE_H
#define FM_APP_TUNE_H

#include <stdint.h>

#include "args.h"
#include "tune/search.h"
#include "word_list.h"

typedef struct {
    char   *param, *constraint, *require; /* the last of each; all are in the lists below */
    char   *metric, *report, *knobs, *sampler, *study;
    char   *html, *json, *write_preset, *keep_output;
    int64_t trials, jobs, gpus, confirm, seed;
    double  wall_time, trial_time_limit, slo_ttft, slo_tpot;
    int     maximize, minimize, quiet;
} fm_tune_options;

extern const fm_knob fm_tune_knobs[];
extern const int     fm_n_tune_knob;

enum { FM_TUNE_MAX_LIMIT = 8, FM_TUNE_MAX_FIRST = 4 };

typedef struct {
    fm_tune_options options;
    fm_args         args;
    fm_word_list    param, constraint, require;

    const char  *form;   /* "", "bench" or "serve" */
    fm_word_list given;  /* what stood behind it */
    fm_word_list run;    /* what a trial runs, with places for values */
    fm_word_list shown;  /* the same as a user would type it */
    fm_word_list client; /* serve: flags of the one who measures */
    fm_word_list tuned;  /* own forms: the words that carry the values alone */
    fm_space     space;
    fm_point first[FM_TUNE_MAX_FIRST]; /* fathom's defaults, then what the plan expects most of */
    int      n_first;
    int      has_first; /* the defaults are in the space */
    const char  *metric;
    int          maximize;
    fm_limit     limit[FM_TUNE_MAX_LIMIT];
    int          n_limit;
    fm_word_list limit_text; /* [n_limit] as they were given */
} fm_tune_command;

/* fathom's own knobs and where each may go; `bench` and `serve`. */
typedef struct {
    const char *name;    /* of the parameter */
    const char *space;   /* as --param takes it; %d is the number of CPUs */
    const char *word;    /* how it is written (tune/words.h) */
    const char *option;  /* the option that carries it: given by the user, it is not searched */
    const char *initial; /* fathom's default; "cpus": their number */
    unsigned    where;   /* FM_TUNE_... */
} fm_tune_knob;

enum { FM_TUNE_CPU = 1, FM_TUNE_GPU = 2, FM_TUNE_ASKED = 4 /* only when --knobs names it */ };
extern const fm_tune_knob fm_tune_spaces[];
extern const int          fm_n_tune_space;

/* Fills space, run, shown, tuned, first from the knobs' table. */
fm_status fm_tune_own_form(fm_tune_command *c);

/* tune_seed.c: adds the points that `fathom plan` expects the most of, where this machine has a
 * table of costs (docs/planning.md); otherwise none. */
void fm_tune_seed(fm_tune_command *c);

/* One trial of `tune serve`: words are server flags, "--", client flags.  The server starts on a
 * free port, the client measures it, SIGTERM ends it; the exit status is the client's, or
 * that of a server that failed. */
int fm_tune_serve_trial(char *const *word, int n);

/* Table on stdout; files as asked for. */
fm_status fm_tune_report(const fm_tune_command *c, const fm_study *s, const char *ended_by);

#endif
