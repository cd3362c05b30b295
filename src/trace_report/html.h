/* SPDX-License-Identifier: Apache-2.0 */
/* One self-contained page: verdict, ranks, a timeline that zooms, roofline, tasks, tables.
 *
 * The page carries its data.  A run has more spans than a page should: where there are too many,
 * neighbours shorter than what one pixel shows are drawn as one block. */
#ifndef FM_TRACE_REPORT_HTML_H
#define FM_TRACE_REPORT_HTML_H

#include <stdio.h>

#include "trace_report/analysis.h"

fm_status fm_trace_html(FILE *to, const fm_trace_analysis *a);

/* lanes.c: the spans of a rank that the page draws, as JSON [[begin, duration, row, rows], ...] of
 * microseconds, begins as differences; at most `most` of them. */
fm_status fm__put_lane(FILE *to, const fm_trace_analysis *a, int i, int lane, size_t most);
enum { FM__LANES = 4 }; /* steps, phases, ops, collectives */

extern const unsigned char fm_trace_page_html[]; /* page.c; not NUL-terminated */
extern const size_t        fm_trace_page_html_len;

#endif
