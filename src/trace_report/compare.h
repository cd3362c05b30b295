/* SPDX-License-Identifier: Apache-2.0 */
/* What changed from one run to another: each op, collective, phase, gap, step and stage of tasks,
 * its mean before and after, whether the difference is more than chance (Welch's test on all
 * calls), and what it weighs.  Calls of one run are not independent of each other, so a probability
 * below 0.001 counts as significant, not one below 0.05.
 *
 * Runs need not have done the same amount of work: what a key weighs is the time it took in the
 * second run beyond what it took in the first for as many rows.  Keys that only one run has weigh,
 * too.  Some classes lie inside others (an op in a phase, all of them in a step); those that divide
 * the time among them are parts, and one of them is the cause. */
#ifndef FM_TRACE_REPORT_COMPARE_H
#define FM_TRACE_REPORT_COMPARE_H

#include "base/str.h"
#include "trace_report/analysis.h"
#include "trace_report/welch.h"

typedef enum {
    FM_CHANGE_CHANCE,
    FM_CHANGE_SIGNIFICANT,
    FM_CHANGE_CALLS, /* calls take as long, there are more or fewer of them */
    FM_CHANGE_NEW,
    FM_CHANGE_GONE,
    FM_CHANGE_SUM, /* of what is left of ranks' time: there are no single calls to compare */
} fm_change_kind;

typedef struct {
    fm_trace_key   key;
    int            is_part;
    fm_moments      a, b; /* seconds of a call; of SUM: n is 1 */
    double         p;    /* of SIGNIFICANT, CALLS and CHANCE */
    double         more; /* seconds beyond what it took before, for the rows of the second run */
    fm_change_kind kind;
} fm_trace_change;

typedef struct {
    fm_trace_change *change; /* [n] owned; what weighs most first */
    int              n;
    int              cause; /* the part that weighs most; -1: none did by more than chance */
    double           more;  /* all ranks' time beyond what was needed before */
    double           rate_a, rate_b; /* rows a second of a rank's active time; 0: none counted */
    double           active_b;
    const char      *row, *task; /* nouns; borrowed from the first run */
} fm_trace_comparison;

fm_status fm_trace_compare(fm_trace_comparison *out, const fm_trace_analysis *a,
                           const fm_trace_analysis *b);
void      fm_trace_comparison_fini(fm_trace_comparison *c); /* {0} is fine */

void fm_trace_compare_text(fm_str *out, const fm_trace_comparison *c);
void fm_trace_compare_json(fm_str *out, const fm_trace_comparison *c); /* one object */

#endif
