/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's limits if no file is named: those that fathom doctor stored on this machine. */
#ifndef FM_TRACE_REPORT_USUAL_RATES_H
#define FM_TRACE_REPORT_USUAL_RATES_H

#include "probe/rates.h"
#include "trace_report/job.h"

/* 1: the kept rates know all hosts of the job.  0: they do not, or there are none; *out is empty.
 */
int fm_trace_usual_rates(fm_rates *out, const fm_trace_job *j);

#endif
