/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom serve --tp 8`, started as one process on one host: it becomes mpirun,
 * which starts the ranks.  Across hosts the job's own launcher has to. */
#ifndef FM_APP_SELF_LAUNCH_H
#define FM_APP_SELF_LAUNCH_H

#include "args.h"
#include "llm/options.h"

/* Replaces this process by `mpirun -np N <this command line>` if the sizes ask
 * for N > 1 ranks, no launcher has started it, N is at most the CPUs this
 * process may use and there is an mpirun; not with --no-launch.  Otherwise
 * returns: FM_E_ARG with what to write instead if --nnodes is more than 1 or N is
 * more than the CPUs, and FM_OK where opening the engine will say what is wrong, if
 * anything is. */
fm_status fm_self_launch(const fm_options *o, const fm_args *a);

#endif
