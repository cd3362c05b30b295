/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkup means: which host, rank or link is slower than the others of
 * its kind, what the system reports as broken, and what to do about it.  Pure
 * functions; everything is said in words.
 *
 * Hosts are compared with hosts, by the median of their ranks; then, where hosts
 * have several ranks, ranks with ranks on the hosts without a fault. */
#ifndef FM_PROBE_FINDINGS_H
#define FM_PROBE_FINDINGS_H

#include "base/str.h"
#include "probe/checkup.h"

typedef enum {
    FM_FINDING_NOTE,  /* a note, not a fault */
    FM_FINDING_FAULT, /* a job is better off without it */
} fm_finding_level;

typedef struct {
    fm_finding_level level;
    int              host;      /* -1: all of them */
    int              rank;      /* -1: the host as a whole */
    int              peer_host; /* of a link, the other end; -1: no link is meant */
    char             what[256]; /* "memory bandwidth 31 % below the other 3 (14.1 against 20.4 GB/s)" */
    char             todo[320]; /* "" where there is nothing to do */
    int              n_more;    /* hosts of which the same is true; the first one is named */
} fm_finding;

typedef struct {
    fm_finding *item; /* owned; faults first */
    int         n, cap;
} fm_findings;

void fm_findings_make(fm_findings *out, const fm_checkup *c);
void fm_findings_fini(fm_findings *f); /* {0} is fine */

int fm_findings_faults(const fm_findings *f); /* how many */

/* "node-b", "node-b and 3 more", "rank 3 on node-b", "the link between node-a and node-b", "all hosts". */
void fm_finding_who(const fm_finding *f, const fm_checkup *c, char *out, size_t size);

/* Hosts to leave out, and hosts without a fault: "node-b", "node-a,node-c".  With `with_slots`
 * as mpirun wants them: "node-a:2,node-c:2". */
void fm_findings_excluded(const fm_findings *f, const fm_checkup *c, fm_str *out);
void fm_findings_healthy(const fm_findings *f, const fm_checkup *c, int with_slots, fm_str *out);

#endif
