/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of a job in the trace event format that ui.perfetto.dev and chrome://tracing open: a
 * process a rank, a thread a class of spans, tasks as asynchronous events.  Times are microseconds
 * of rank 0's clock. */
#ifndef FM_TRACE_REPORT_PERFETTO_H
#define FM_TRACE_REPORT_PERFETTO_H

#include <stdio.h>

#include "trace_report/job.h"

void fm_trace_perfetto(FILE *to, const fm_trace_job *j); /* errors show in the stream */

#endif
