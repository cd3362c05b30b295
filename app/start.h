/* SPDX-License-Identifier: Apache-2.0 */
/* From a parsed command line to a running engine, the same way for every
 * command. */
#ifndef FM_APP_START_H
#define FM_APP_START_H

#include "args.h"
#include "llm/engine.h"

/* Prints what was explained, settles what this build cannot do (more than one
 * rank), prints the memory plan and loads; all on stderr, nothing with --quiet.
 * Changes `o`. */
fm_status fm_start_engine(fm_engine **out, fm_options *o, fm_args *a);

#endif
