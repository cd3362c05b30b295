/* SPDX-License-Identifier: Apache-2.0 */
/* From a parsed command line to a running engine, the same way for every
 * command. */
#ifndef FM_APP_START_H
#define FM_APP_START_H

#include "args.h"
#include "llm/engine.h"

/* Prints what was explained, the ranks and the memory plan, and loads; all on
 * stderr, nothing with --quiet.  Of many ranks one leads; the others follow:
 *
 *     FM_TRY(fm_start_engine(&e, o, a));
 *     if (!fm_engine_is_leader(e)) return fm_engine_follow(e);
 */
fm_status fm_start_engine(fm_engine **out, fm_options *o, fm_args *a);

#endif
