/* SPDX-License-Identifier: Apache-2.0 */
/* When a measurement ends before its work does: --time-limit is over, or a
 * terminate or interrupt signal has come.  What was measured until then is
 * still worth a report. */
#ifndef FM_APP_EARLY_END_H
#define FM_APP_EARLY_END_H

/* Seconds from now; 0: no limit. */
void fm_early_end_limit(double seconds);

/* From here on the first signal is noted; the second ends the process. */
void fm_early_end_catch(void);

/* Of ranks that follow: the one that leads decides. */
void fm_early_end_ignore(void);

const char *fm_early_end_why(void); /* "time limit", "SIGTERM", "SIGINT"; NULL: go on */

#endif
