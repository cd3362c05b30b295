/* SPDX-License-Identifier: Apache-2.0 */
/* Stop strings over streamed text.  Text that could be the beginning of a
 * stop is held back until it is decided, so what was emitted is final.  How
 * the text is cut into pushes changes nothing. */
#ifndef FM_LLM_TEXT_STOP_H
#define FM_LLM_TEXT_STOP_H

#include "base/str.h"

typedef struct {
    char  **stop; /* [n_stop] owned copies */
    int     n_stop;
    int     keep;    /* the matched stop stays in the text */
    fm_str  held;
    int     found;   /* 1 + index of the stop that matched; 0: none yet */
    int   **border;  /* private, owned: [i][k] = where to go on after k matching bytes of stop i */
    int    *at;      /* private, owned: how much of stop i the text now ends with */
} fm_stop_filter;

/* Empty stops never match. */
void fm_stop_init(fm_stop_filter *f, const char *const *stop, int n_stop, int keep);
void fm_stop_fini(fm_stop_filter *f);

/* Appends what is decided to *out.  Returns the index of the stop that
 * matched (the one that ends first; of several that end together, the first
 * in list order), or -1.  After a match nothing more comes out. */
int  fm_stop_push(fm_stop_filter *f, const char *text, size_t len, fm_str *out);
void fm_stop_end(fm_stop_filter *f, fm_str *out); /* no more text: release what was held */

#endif
