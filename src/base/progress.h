/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on stderr, redrawn at most ten times a second.  On a
 * terminal it is one moving line; elsewhere only the last state is printed.
 * Where a program has asked for reports (fm_on_progress), it gets these instead. */
#ifndef FM_BASE_PROGRESS_H
#define FM_BASE_PROGRESS_H

typedef struct {
    const char *label; /* borrowed */
    double      total;
    double      began, drawn; /* private */
} fm_progress;

int fm_progress_is_watched(void); /* reports were asked for */

fm_progress fm_progress_begin(const char *label, double total);
/* `note` ("123 tok/s") stands behind the bar; NULL is fine.  One thread calls. */
void fm_progress_show(fm_progress *p, double done, const char *note);
void fm_progress_end(fm_progress *p, const char *note);

#endif
