/* SPDX-License-Identifier: Apache-2.0 */
/* Times of ops that run on a device: later than hooks see them issued, and in passes that are
 * replayed as recorded, which hooks do not see at all (op/hook.h).
 *
 *     static void timed(fm_op_watch *w, fm_run *r, const fm_op_call *c, const fm_op_timed *t) { }
 *     fm_op_watch w = {.timed = timed};
 *     fm_run_watch(r, &w);        until fm_run_watch(r, NULL)
 *
 * The device records a timestamp at the end of each op; timed() is called when the host has read
 * it, some passes later.  Timing a decode step costs more than a few percent of it, so few of
 * them are timed, and each of these stands for the passes of its size that were not.  Passes with
 * prompts are timed all.  Results have the same bits. */
#ifndef FM_LLM_OP_WATCH_H
#define FM_LLM_OP_WATCH_H

#include <stdint.h>

#include "llm/op/hook.h"

typedef struct {
    uint64_t ns; /* it took; what timing itself costs is taken off */
    uint64_t
           begin; /* CLOCK_MONOTONIC; 0: unknown, this is the rest of passes that were not timed */
    double bytes, flops; /* as op/cost.h counts them */
    uint32_t times;      /* passes it stands for, its own among them */
    int      beside;     /* it ran in a second stream, beside the ops that follow */
    int      at;         /* its place among the ops of the pass */
    uint64_t tag;        /* the watcher's, when the pass began */
} fm_op_timed;

typedef struct fm_op_watch {
    /* Inside a later pass, or when the watch ends: does not wait and allocates nothing. */
    void (*timed)(struct fm_op_watch *w, struct fm_run *r, const fm_op_call *c,
                  const fm_op_timed *t);
    uint64_t tag; /* of the pass that begins next */
} fm_op_watch;

#endif
