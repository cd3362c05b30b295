/* SPDX-License-Identifier: Apache-2.0 */
/* A program as a process group of its own, its output captured.
 *
 *     start ──> step, step, step ... ──> ended ──> fini
 *
 * stdout and stderr come through one pipe, in the order they were written.  The
 * group is ended as a whole: SIGTERM, and SIGKILL some seconds later.
 * When the leader has ended, so has the group: what it left behind is killed.  Should this process
 * die, the leader gets SIGTERM from the kernel. */
#ifndef FM_TUNE_PROCESS_H
#define FM_TUNE_PROCESS_H

#include <sys/types.h>

#include "base/status.h"
#include "base/str.h"

/* Where a process may run when several run side by side: CPUs and GPUs are
 * divided evenly, part `slot` is its own. */
typedef struct {
    int slot, n_slot; /* n_slot 1: all CPUs */
    int gpus;         /* of each slot, by CUDA_VISIBLE_DEVICES; 0: not set */
} fm_process_place;

typedef enum { FM_END_NONE, FM_END_TIME, FM_END_ASKED } fm_process_end;

typedef struct {
    pid_t          pid;          /* 0: none */
    int            fd;           /* its output; -1: closed */
    fm_str         output;       /* the last megabytes */
    double         began, limit; /* seconds; limit 0: none */
    double         seconds;      /* out, when it has ended */
    double         told;         /* when SIGTERM was sent; 0: not */
    fm_process_end end;          /* why it was told to end */
    int            status;       /* as waitpid gives it */
} fm_process;

fm_status fm_process_start(fm_process *p, char *const *argv, const fm_process_place *place,
                           double limit);

/* Reads what there is, watches the time limit; 1: it has ended.  Never waits. */
int fm_process_step(fm_process *p);

/* Until one of them has output, or `seconds` have passed. */
void fm_process_wait(const fm_process *p, int n, double seconds);

void fm_process_stop(fm_process *p); /* told to end; step on until it has */
void fm_process_fini(fm_process *p); /* kills the group if it still runs */

/* "exit status 3", "killed by signal 9 (out of memory?)", "time limit of 30 s"; the last line of
 * the output follows.  Nothing for a clean end. */
void fm_process_why(const fm_process *p, char *out, size_t size);

#endif
