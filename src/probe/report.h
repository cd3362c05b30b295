/* SPDX-License-Identifier: Apache-2.0 */
/* A checkup and its findings as text for people, and as JSON. */
#ifndef FM_PROBE_REPORT_H
#define FM_PROBE_REPORT_H

#include "base/str.h"
#include "probe/findings.h"

/* Tables of hosts (or ranks, where they are few), links and settings. */
void fm_report_tables(fm_str *out, const fm_checkup *c);

/* The findings, one by one, then the verdict with host lists for the next job. */
void fm_report_verdict(fm_str *out, const fm_checkup *c, const fm_findings *f);

/* One object; `extra` is a JSON object of the caller's whose members are added, or NULL. */
void fm_report_json(fm_str *out, const fm_checkup *c, const fm_findings *f, const char *extra);

#endif
