/* SPDX-License-Identifier: Apache-2.0 */
/* Lines typed by a person: libedit, with a history that outlives the program
 * in $XDG_STATE_HOME/fathom/history (~/.local/state without it). */
#ifndef FM_APP_LINE_EDITOR_H
#define FM_APP_LINE_EDITOR_H

#include "base/status.h"

typedef struct fm_line_editor fm_line_editor;

fm_status fm_line_editor_open(fm_line_editor **out, const char *prompt); /* prompt is borrowed */
void      fm_line_editor_close(fm_line_editor *l);                       /* NULL is fine; saves */

typedef enum { FM_LINE, FM_LINE_INTERRUPTED, FM_LINE_END } fm_line;

/* *text is without its newline and valid until the next call. */
fm_line fm_line_editor_read(fm_line_editor *l, const char **text);

#endif
