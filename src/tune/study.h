/* SPDX-License-Identifier: Apache-2.0 */
/* A study: what is searched, and every trial that ended.  On disk it is a file
 * of JSON lines that only grows:
 *
 *     {"study": 1, "params": [...], "constraints": [...], "goal": "maximize", "metric": "...",
 *      "limits": [...], "report": "...", "what": "..."}
 *     {"trial": 0, "at": {"threads": "2"}, "state": "ok", "value": 412.5, "seconds": 3.1, ...}
 *     ...
 *
 * A line is one write() and on the disk before the next trial begins, so that
 * a process killed at any moment loses the trials that were running, no more.
 * A last line without its end is dropped when the study is opened again.  The
 * file is locked: one process at a time.
 *
 * One thread.  The study owns its trials. */
#ifndef FM_TUNE_STUDY_H
#define FM_TUNE_STUDY_H

#include "tune/space.h"

/* The states are data: a trial that fails says something about its point. */
#define FM_TRIAL_STATES(X)                                                                         \
    X(OK, "ok")           /* a value, within all limits */                                         \
    X(UNFIT, "unfit")     /* a value, but beyond a limit (a latency objective) */                  \
    X(PRUNED, "pruned")   /* ended early: worse than half of the others at the same step */        \
    X(FAILED, "failed")   /* an exit status, a signal, or no value in its output */                \
    X(TIMEOUT, "timeout") /* ended at its time limit */                                            \
    X(RUNNING, "running") /* in memory only */

typedef enum {
#define X(name, text) FM_TRIAL_##name,
    FM_TRIAL_STATES(X)
#undef X
        FM_N_TRIAL_STATE
} fm_trial_state;
const char *fm_trial_state_name(fm_trial_state s);

enum { FM_TRIAL_WHY = 200 };

typedef struct {
    int            id;
    fm_point       at;
    fm_trial_state state;
    double         value;   /* as the program printed it; NaN: none */
    double         excess;  /* UNFIT: sum over limits of (value - limit) / limit */
    double         seconds; /* wall time */
    double        *report;  /* [n_report] owned: intermediate values, in order */
    int            n_report;
    int            confirms;          /* the trial it repeats, or -1 */
    char           why[FM_TRIAL_WHY]; /* FAILED: exit status, signal, last line of output */
} fm_trial;

/* What values of a study are: trials of two studies can be compared if these are alike.  Words are
 * borrowed; NULL: none. */
typedef struct {
    int          maximize;
    const char  *what;   /* the command, in one line */
    const char  *metric; /* how a value is read from its output, likewise intermediate ones */
    const char  *report;
    char *const *limit; /* [n_limit] that make a trial unfit */
    int          n_limit;
} fm_study_aim;

typedef struct {
    fm_space *space; /* borrowed */
    int       maximize;
    fm_trial *trial; /* [n] owned */
    int       n, cap;
    int       fd; /* -1: in memory only */
    char     *path;
    uint64_t  seed;
} fm_study;

/* In memory. */
void fm_study_init(fm_study *s, fm_space *space, int maximize);

/* With a file, which is made or continued.  FM_E_ARG: it holds another study, of other parameters
 * or with another aim (the sentence says what differs).  FM_E_FORMAT: not a study.  FM_E_FULL:
 * another process is at work on it.  After a failure, too, it is closed by fm_study_close(). */
fm_status fm_study_open(fm_study *s, const char *path, fm_space *space, const fm_study_aim *aim);
void      fm_study_close(fm_study *s);

/* A trial that begins, in memory; its id is the next free one.  The pointer is
 * good until the next call. */
fm_trial *fm_study_begin(fm_study *s, const fm_point *at);
/* It has ended: a line of the file. */
fm_status fm_study_end(fm_study *s, const fm_trial *t);

fm_trial *fm_study_find(const fm_study *s, int id); /* or NULL */
int       fm_study_has(const fm_study *s, const fm_point *at); /* a trial at that point */
int       fm_study_n_ended(const fm_study *s);      /* confirmations not counted */

/* Smaller is better, for OK trials. */
double fm_study_loss(const fm_study *s, double value);

/* A number for every trial that a model can be fitted to, smaller is better:
 * OK its loss; PRUNED at least the median; UNFIT beyond the worst OK by its
 * excess; FAILED and TIMEOUT beyond the worst; RUNNING the mean of the OK ones, so that
 * parallel trials spread. */
void fm_study_losses(const fm_study *s, double *loss);

/* The best points, confirmations counted: mean over all OK runs of the point.
 * Returns how many of `most` were found, best first, as ids of first runs. */
int fm_study_best(const fm_study *s, int *id, int most);
/* The best of those that were run again, or the best of all; -1: none. */
int    fm_study_winner(const fm_study *s);
double fm_study_mean(const fm_study *s, int id, int *n_run, double *spread); /* of a point */

#endif
