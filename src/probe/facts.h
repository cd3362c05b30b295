/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says about the machine this process is on, and what happened
 * to it while something was measured: read from /proc and /sys, nothing is
 * changed.  Plain bytes, so that ranks can send it to each other.
 *
 *     fm_facts_read ──> measurements ──> fm_facts_since: counters become differences */
#ifndef FM_PROBE_FACTS_H
#define FM_PROBE_FACTS_H

#include <stdint.h>

/* Numbers are -1 and texts "" where the system does not say. */
typedef struct {
    char    cpu[96];             /* model name */
    char    kernel[64];          /* release */
    char    cpus[96];            /* CPUs this process may run on: "0-7,16" */
    char    governor[24];        /* of frequency: "performance"; "several" where CPUs differ */
    double  mhz_least, mhz_most; /* CPUs' present clocks */
    char    huge_pages[16];      /* transparent ones: "always", "madvise", "never" */
    double  quota;               /* CPUs' worth of time a control group allows; 0: no quota */
    int64_t memory_limit;        /* bytes a control group allows; -1: none does */
    double  load;                /* processes that wanted to run, over the last minute */
    int     n_cpu;               /* CPUs of the machine that are on line */

    /* Counters since the machine started; after fm_facts_since, since the first reading. */
    int64_t throttled;              /* times cores were slowed down for heat */
    int64_t quota_stops;            /* times the quota stopped this process's group */
    double  steal_s, cpu_s;         /* CPU seconds the hypervisor took, and all there were */
    int64_t corrected, uncorrected; /* memory errors (EDAC); never a difference */

    char libraries[128];  /* "NCCL=2.21.5\n": versions of those that carry data (libraries.h) */
    char variables[1024]; /* "NAME=value\n" of those that change how ranks run, cut at the end */
} fm_facts;

/* `root` stands before /proc and /sys: "" is this system. */
void fm_facts_read(fm_facts *out, const char *root);

/* Counters of `now` less those of `before`. */
void fm_facts_since(fm_facts *now, const fm_facts *before);

#endif
