/* SPDX-License-Identifier: Apache-2.0 */
/* What changed from one run to another: each op, collective, phase and step, its mean before and
 * after, whether the difference is more than chance (Welch's test on all calls), and what it
 * weighs.  Calls of one run are not independent of each other, so a probability below 0.001 counts
 * as significant, not one below 0.05. */
#ifndef FM_TRACE_REPORT_COMPARE_H
#define FM_TRACE_REPORT_COMPARE_H

#include "base/str.h"
#include "trace_report/analysis.h"

void fm_trace_compare(fm_str *out, const fm_trace_analysis *a, const fm_trace_analysis *b);

#endif
