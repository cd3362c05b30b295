/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses the traces of a job: all numbers of the reports.  verdict.h makes sentences of them.
 *
 *     account   every rank's time, divided so that the parts add up (from exact sums)
 *     works     each kind of computing: how long, how near the machine's limits (exact sums)
 *     calls     each collective: waiting for a rank, moving bytes (spans in the ring)
 *     late      the rank that others waited for, and the ops in which it is slower
 *     stalls    steps that kept tasks under way waiting (spans in the ring)
 *
 * Times are seconds.  Ranks are counted as they are in the job (fm_trace_job.file). */
#ifndef FM_TRACE_REPORT_ANALYSIS_H
#define FM_TRACE_REPORT_ANALYSIS_H

#include "probe/rates.h"
#include "trace_report/job.h"

/* A rank's time: wall = idle + gap + host + await + work + comm + rest. */
typedef struct {
    double wall, idle;
    double gap;   /* between steps, with work waiting */
    double host;  /* phases around the work */
    double await; /* for another rank to say what is next */
    double work;  /* computing */
    double comm;  /* in collectives: wait + move */
    double wait;  /* of it, for ranks that arrived later or held the call up (from the ring) */
    double rest;  /* between ops, inside phases that hold them; of a device: it had nothing to do */
    int has_device; /* work and comm are a device's; the host runs beside it, and is not counted */
} fm_account;

/* A key over all ranks. */
typedef struct {
    int      row; /* of the job */
    uint64_t count, rows;
    double   total, own; /* own: without collectives inside */
    double   mean, p50, p99, max;
    double   bytes, flops;
    double   limit;        /* seconds it takes at the machine's limits; 0: unknown */
    double   memory_limit; /* of it, where memory is the limit */
    double   busy, wait;   /* COLLECTIVE: the rank could do nothing else; waiting for a rank */
    int      late;         /* index of the rank that others waited for most; -1: none */
    double   late_share;   /* of that waiting */
} fm_key_total;

typedef struct {
    int    rank;       /* index; -1: no single rank */
    double caused;     /* seconds that ranks waited for it in collectives, all together */
    double share;      /* of all waiting */
    double slower;     /* by how much its work takes longer than the median of the others: 0.09 */
    int    row;        /* where it loses most; -1: in no op */
    double row_slower; /* the same, in this op */
} fm_late;

typedef struct {
    int      n;           /* steps */
    double   usual;       /* median of a step without */
    double   worst;       /* the longest */
    uint32_t rows, tasks; /* of the longest: its rows, tasks under way */
    double   lost;        /* more than usual, all together */
    int      row, usual_row;
} fm_stalls;

typedef struct {
    const fm_trace_job *job;
    const fm_rates     *rates;   /* NULL: limits are unknown */
    fm_account         *account; /* [n] */
    fm_account          all;     /* summed over ranks */
    double              active;  /* all.wall - all.idle */
    fm_key_total       *total;   /* [n_row], by class, then the longest first */
    int                 n_total;
    double             *caused;  /* [n] seconds that ranks waited for each rank, */
    double             *in_row;  /* [n_row][n] and in each collective */
    double              matched; /* share of busy time in collectives that the ring still shows */
    fm_late             late;
    fm_stalls           stalls;
    double              began, ended; /* of what the ring shows, on the job's time axis */
} fm_trace_analysis;

/* `rates` NULL: limits are unknown.  Both are borrowed. */
fm_status fm_trace_analyse(fm_trace_analysis *out, const fm_trace_job *j, const fm_rates *rates);
void      fm_trace_analysis_fini(fm_trace_analysis *a); /* {0} is fine */

#endif
