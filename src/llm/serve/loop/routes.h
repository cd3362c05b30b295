/* SPDX-License-Identifier: Apache-2.0 */
/* The table of paths. */
#ifndef FM_LLM_SERVE_LOOP_ROUTES_H
#define FM_LLM_SERVE_LOOP_ROUTES_H

#include "llm/serve/loop/serve_internal.h"

enum { FM__GET = 1, FM__POST = 2, FM__PUT = 4, FM__OPEN = 8 }; /* OPEN: no key needed */

/* Answered by the engine in a dialect, by a worker, or at once. */
typedef struct {
    const char        *path;
    int                how;
    const char        *about;
    const fm__dialect *dialect;
    fm__text_fn       *text;
    void (*run)(fm_serve *s, fm_exchange *x);
} fm__route;

/* profile_routes.c */
void fm__profile_start(fm_serve *s, fm_exchange *x);
void fm__profile_stop(fm_serve *s, fm_exchange *x);

extern const fm__route fm__routes[];
extern const int       fm__n_route;

#endif
