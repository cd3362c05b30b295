/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom ablate`: what each feature brings on this machine, and that none of them changes an
 * answer.  A cell is a layout of ranks and a set of features that are off; each is a process of
 * this program (`fathom bench`), whose result and whose answers are read from files. */
#ifndef FM_APP_ABLATE_H
#define FM_APP_ABLATE_H

#include <stdint.h>

#include "args.h"
#include "tune/cross.h"
#include "word_list.h"

typedef struct {
    char   *level, *layouts, *features;
    char   *markdown, *html, *json;
    char   *continues; /* the --json of an earlier run */
    int64_t repeat;
    double  wall_time, cell_time_limit;
} fm_ablate_options;

extern const fm_knob fm_ablate_knobs[];
extern const int     fm_n_ablate_knob;

typedef struct {
    const char *name;
    const char *about;
    const char *on, *off; /* the words of each, "" for none */
    int         needs_gpu;
    int         changes_numbers; /* answers are compared among cells that agree on it */
    int         needs_mtp;       /* a model with an MTP layer */
    const char *needs;           /* a feature without which it is off, or NULL */
} fm_ablate_feature;

typedef struct {
    const char *name;
    const char *words;
    int         n_rank;
} fm_ablate_layout;

extern const fm_ablate_feature fm_ablate_features[];
extern const int               fm_n_ablate_feature;
extern const fm_ablate_layout  fm_ablate_layouts[];
extern const int               fm_n_ablate_layout;

typedef enum { FM_CELL_OK, FM_CELL_FAILED, FM_CELL_SKIPPED } fm_cell_state;

typedef struct {
    int           layout;
    uint32_t      off; /* bit i: feature i of the run's list */
    fm_cell_state state;
    double        throughput, ttft_ms; /* median of the repeats */
    double        memory;              /* bytes */
    uint64_t      hash;                /* of all answers */
    int           group;               /* cells whose answers must agree */
    int           is_earlier;          /* measured by an earlier run */
    char          why[200];            /* FAILED, SKIPPED */
} fm_cell;

enum { FM_ABLATE_MAX_CELL = 1024 };

typedef struct {
    fm_ablate_options options;
    fm_args           args;
    fm_word_list      given;                                    /* bench's flags */
    int               feature[FM_CROSS_MAX_FEATURE], n_feature; /* in the table */
    int               n_gpu;
    int               has_mtp; /* the model drafts with its MTP layer */
    fm_cell           cell[FM_ABLATE_MAX_CELL];
    int               n_cell;
    int               n_failed, n_group;
    int               differ; /* cells whose answers are not those of their group */
} fm_ablation;

/* What this machine or the model lacks for a feature; NULL: nothing. */
const char *fm_ablate_lacks(const fm_ablation *a, const fm_ablate_feature *f);

int fm_ablate_is_on(const fm_ablation *a, const fm_cell *c, int feature);

/* Takes cells with the same command that succeeded in an earlier run.  FM_E_IO, FM_E_FORMAT: its
 * file. */
fm_status fm_ablate_continue(fm_ablation *a);

/* A table on stdout; files as asked for. */
fm_status fm_ablate_report(const fm_ablation *a);

#endif
