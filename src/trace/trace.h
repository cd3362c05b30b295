/* SPDX-License-Identifier: Apache-2.0 */
/* Recording where time goes: spans into a ring and exact sums per key, in a mapped file
 * (trace/format.h) that is readable at any moment, also after the process was killed.
 *
 *     fm_trace_open ─> key, key, ... ─> add, add, add, ... ─> close
 *
 * Nothing allocates between open and close; adding a span costs about 50 ns.  One thread at a time
 * uses a trace.  The recorder measures nothing by itself: the caller gives the beginning and end of
 * a span, by fm_trace_now(). */
#ifndef FM_TRACE_TRACE_H
#define FM_TRACE_TRACE_H

#include <stddef.h>

#include "base/status.h"
#include "trace/format.h"

typedef struct fm_trace fm_trace;

/* Texts are copied, and cut where they are too long. */
typedef struct {
    const char *path;
    size_t      ring_bytes; /* of spans; at least one page */
    uint64_t    job;        /* the same on all ranks */
    int         rank, n_rank;
    const char *host, *program, *command;
    const char *task, *row; /* what users wait for, and what work is counted in */
} fm_trace_options;

/* Creates the file and reserves its bytes on disk.  FM_E_IO with a sentence. */
fm_status fm_trace_open(fm_trace **out, const fm_trace_options *o);
void      fm_trace_close(fm_trace *t); /* NULL is fine */

/* Bytes of a ring for each of n_rank ranks: `mib` MiB.  By default (0) 64 MiB, and less where the
 * files of all ranks together, tables included, would exceed 100 MB; 1 MiB at least. */
size_t fm_trace_ring_bytes(int64_t mib, int n_rank);
size_t fm_trace_table_bytes(void); /* of a file in front of its ring */

/* The number of the key with this class, name and part, which is added if it is new.  When the
 * table is full: the number of a key named "other". */
int fm_trace_key_of(fm_trace *t, const fm_trace_key *k);

uint64_t fm_trace_now(void); /* ns of CLOCK_MONOTONIC */

typedef struct {
    uint64_t begin, end; /* fm_trace_now() */
    uint64_t comm_ns;    /* of the time between, in collectives */
    uint64_t tag;
    uint32_t rows;
    uint16_t layer;
    double   bytes, flops; /* that the work had to move and to do at least; 0: unknown */
    uint32_t more;         /* this many others were alike and are not added */
    int      no_span;      /* when it began is not known: it counts in the sums alone */
} fm_trace_event;

void fm_trace_add(fm_trace *t, int key, const fm_trace_event *e);

/* Clocks were compared, at the beginning (0) or at the end (1). */
void fm_trace_set_clock(fm_trace *t, int end, fm_trace_clock c);

/* Time counts from now on, and no longer from fm_trace_open.  Before the first span. */
void fm_trace_begin(fm_trace *t);

#endif
