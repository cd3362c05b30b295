/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of the ranks of a job: a file each, a number for all, clocks compared, and the calls of
 * their groups recorded. */
#ifndef FM_TRACE_TRACE_RANKS_H
#define FM_TRACE_TRACE_RANKS_H

#include "base/str.h"
#include "comm/world.h"
#include "trace/trace.h"

/* Collective: opens this rank's file, with a number of the job that rank 0 makes up; rank, host and
 * job of `o` are filled in here, and o->path is FILE.  A rank that fails does not keep the others
 * from going on: the caller agrees with them on what follows. */
fm_status fm_trace_open_ranks(fm_trace **out, fm_world *w, const fm_trace_options *o);

/* Collective: compares each rank's clock with rank 0's by messages to and fro; the round trip that
 * took the least time counts, half of it is the error.  `end`: 0 at the beginning, 1 at the end;
 * with both, readers correct a clock that runs fast or slow.  A NULL trace takes part. */
fm_status fm_trace_compare_clocks(fm_trace *t, fm_comm *all, int end);

/* Records every call of the world's groups that ends.  `ns` adds up the time in which this rank
 * could do nothing else. */
enum { FM_TRACE_GROUPS = 24 };
typedef struct {
    fm_trace   *trace;
    fm_world   *world; /* NULL: nothing is recorded */
    uint64_t    ns;
    const char *group[FM_TRACE_GROUPS];
    int         key[FM_TRACE_GROUPS][FM_N_COMM_KIND]; /* -1: not met yet */
    int         n_group;
} fm_trace_calls;

void fm_trace_calls_begin(fm_trace_calls *c, fm_trace *t, fm_world *w);
void fm_trace_calls_end(fm_trace_calls *c); /* {0} is fine */

#endif
