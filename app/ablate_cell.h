/* SPDX-License-Identifier: Apache-2.0 */
/* One cell of an ablation: `fathom bench` with the cell's flags in a process of its own. */
#ifndef FM_APP_ABLATE_CELL_H
#define FM_APP_ABLATE_CELL_H

#include "ablate.h"

/* The command, as a user would type it. */
void fm_cell_words(fm_word_list *out, const fm_ablation *a, const fm_cell *c, const char *program);

/* The same in one line, with "fathom" for the program. */
void fm_cell_command(fm_str *out, const fm_ablation *a, const fm_cell *c);

/* Fills state and numbers; a cell that fails is a result.  FM_E_IO: no place for its files. */
fm_status fm_cell_run(const fm_ablation *a, fm_cell *c);

#endif
