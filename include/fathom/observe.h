/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks for log lines and for the progress of loading.  Both hold for the whole
 * process, are set before an engine is opened, and must not call the library. */
#ifndef FATHOM_OBSERVE_H
#define FATHOM_OBSERVE_H

#include "fathom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gets log lines in place of stderr, on any thread.  level: 0 error, 1 warning, 2 info, 3 debug; the
 * environment variable FM_LOG selects them ("info,kv=debug"; default: warnings). */
typedef void fm_log_fn(void *ctx, int level, const char *room, const char *line);
FM_API void  fm_on_log(fm_log_fn *fn, void *ctx); /* NULL: stderr again */

/* Progress of loading, at most ten times a second and at the end, on the thread that opens the
 * engine.  done: 0 to 1. */
typedef void fm_progress_fn(void *ctx, const char *what, double done);
FM_API void  fm_on_progress(fm_progress_fn *fn, void *ctx); /* NULL: no reports */

#ifdef __cplusplus
}
#endif
#endif
