/* SPDX-License-Identifier: Apache-2.0 */
/* The analysis as JSON, for scripts; docs/tracing.md lists the fields. */
#ifndef FM_TRACE_REPORT_REPORT_JSON_H
#define FM_TRACE_REPORT_REPORT_JSON_H

#include "base/str.h"
#include "trace_report/analysis.h"

/* One object, ended by a newline. */
void fm_trace_json(fm_str *out, const fm_trace_analysis *a);

#endif
