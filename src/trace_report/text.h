/* SPDX-License-Identifier: Apache-2.0 */
/* The report for a terminal: verdict, tables, timeline. */
#ifndef FM_TRACE_REPORT_TEXT_H
#define FM_TRACE_REPORT_TEXT_H

#include "base/str.h"
#include "trace_report/analysis.h"

void fm_trace_text(fm_str *out, const fm_trace_analysis *a);

void fm__trace_tables(fm_str *out, const fm_trace_analysis *a);   /* tables.c */
void fm__trace_timeline(fm_str *out, const fm_trace_analysis *a); /* timeline.c */

#endif
