/* SPDX-License-Identifier: Apache-2.0 */
/* Writes traces of a job that never ran: steps of ops and a collective, with times as told. */
#ifndef FM_TESTS_TRACE_WRITER_H
#define FM_TESTS_TRACE_WRITER_H

#include "trace/trace.h"

typedef struct {
    const char *stem; /* FILE; ranks write FILE.rankN */
    int         n_rank, n_step;
    int         slow_rank;   /* -1: none */
    double      slow_attend; /* its attend takes longer by this factor */
    int     held_every; /* in every so many collectives it is stopped before it sends; 0: none */
    double  held_us;    /* for so long */
    double  attend_us, experts_us, move_us, plan_us, gap_us;
    int     prompt_every;   /* every so many steps have a long prompt; 0: none */
    double  prompt_us;      /* the experts of such a step */
    size_t  ring_bytes;     /* 0: 1 MiB */
    int     n_task;         /* 0: 10 */
    int     one_host;       /* 0: two ranks a host */
    int     clock_rank;     /* whose clock is another than rank 0's; 0: none */
    int64_t clock_ahead_ns; /* by how much when the job begins, */
    double  clock_fast;     /* and by what part of the time since then more */
} written_job;

void write_job(const written_job *w);
void written_path(char *out, size_t size, const written_job *w, int rank);

#endif
