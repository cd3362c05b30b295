/* SPDX-License-Identifier: Apache-2.0 */
/* fathom scf --trace: the parts of every iteration and the calls between ranks, recorded on each
 * rank. The times of parts are known as sums at the end of an iteration; the trace shows them one after
 * the other. */
#ifndef FM_APP_SCF_TRACE_H
#define FM_APP_SCF_TRACE_H

#include "chem/scf.h"
#include "trace/trace_ranks.h"

enum { FM_SCF_PARTS = 6 };

typedef struct {
    fm_trace      *trace; /* NULL: nothing is recorded */
    fm_world      *world;
    fm_trace_calls calls;
    uint64_t       at, at_comm;          /* where the iteration began, calls.ns then */
    double         before[FM_SCF_PARTS]; /* seconds of each part then, this task */
    int            part[FM_SCF_PARTS], iteration, run, setup; /* keys */
} fm_scf_trace;

/* Collective.  `file` NULL or empty: nothing is recorded. */
fm_status fm_scf_trace_begin(fm_scf_trace *t, fm_world *w, const char *file, const char *deck);
void      fm_scf_trace_task(fm_scf_trace *t);                  /* a task begins */
void      fm_scf_trace_step(fm_scf_trace *t, const fm_scf *s); /* an iteration ended */
void      fm_scf_trace_end(fm_scf_trace *t);                   /* collective; {0} is fine */

#endif
