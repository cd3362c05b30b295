/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of fm_findings_make. */
#ifndef FM_PROBE_FINDINGS_INTERNAL_H
#define FM_PROBE_FINDINGS_INTERNAL_H

#include "probe/compare.h"
#include "probe/findings.h"

/* A new one, with `what`; the caller may fill in the rest until the next is added. */
fm_finding *fm__finding_add(fm_findings *f, fm_finding_level level, int host, int rank,
                            const char *what, ...) __attribute__((format(printf, 5, 6)));

void fm__findings_rates(fm_findings *f, const fm_checkup *c); /* cores, memory, GPUs, files */
void fm__findings_links(fm_findings *f, const fm_checkup *c);
void fm__findings_facts(fm_findings *f, const fm_checkup *c); /* what the systems report */
void fm__findings_differ(fm_findings *f, const fm_checkup *c); /* settings that are not the same */

/* Its threads had their cores to themselves, more or less: messages that are slow are not slow
 * because a rank was not running. */
int fm__was_running(const fm_checkup_rank *r);

/* What slows down the cores or the memory of a rank, as far as the system tells, and what to do. */
void fm__advise_host(char *out, size_t size, const fm_checkup *c, int rank, int is_memory);
void fm__advise_gpu(char *out, size_t size, const fm_checkup *c, int rank);

/* "memory bandwidth 31 % below the other 3 (14.1 against 20.4 GB/s)" */
void fm__deviation_sentence(char *out, size_t size, const fm_metric *m, double value,
                            const fm_deviation *d);

#endif
