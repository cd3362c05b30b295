/* SPDX-License-Identifier: Apache-2.0 */
/* A report as one HTML file: no script, nothing fetched, light or dark as the
 * reader's system is. */
#ifndef FM_TUNE_PAGE_H
#define FM_TUNE_PAGE_H

#include "base/str.h"
#include "tune/study.h"

void fm_page_begin(fm_str *out, const char *title);
void fm_page_end(fm_str *out);
void fm_page_text(fm_str *out, const char *text); /* with &, <, > and quotes escaped */
/* A row of figures: a value and what it is. */
void fm_page_tile(fm_str *out, const char *value, const char *what);

typedef struct {
    const char   *command; /* what was searched */
    const char   *metric;
    const char   *ended_by;
    const char   *winner; /* its command line */
    const char   *preset; /* where it was written, or NULL */
    const double *share;  /* [space->n] importance */
} fm_study_facts;

/* Winner, history, importance, one plot per parameter, all trials. */
void fm_study_page(fm_str *out, const fm_study *s, const fm_study_facts *facts);

#endif
