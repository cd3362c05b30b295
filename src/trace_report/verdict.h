/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict in words: a few sentences with numbers, the most important first, and the largest
 * single win at the end. Names, nouns and hints come from the trace: this room knows nothing of
 * language models. */
#ifndef FM_TRACE_REPORT_VERDICT_H
#define FM_TRACE_REPORT_VERDICT_H

#include "base/str.h"
#include "trace_report/analysis.h"

/* A sentence a line. */
void fm_trace_verdict(fm_str *out, const fm_trace_analysis *a);

/* "experts (moe)" */
void fm_trace_key_text(fm_str *out, const fm_trace_key *k);

/* "12.3 ms" */
void fm_trace_time_text(fm_str *out, double seconds);

#endif
