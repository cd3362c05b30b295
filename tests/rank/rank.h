/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that run as several ranks: a check that fails on one rank ends
 * all of them, with its place. */
#ifndef FM_TESTS_RANK_RANK_H
#define FM_TESTS_RANK_RANK_H

#include <stdio.h>
#include <stdlib.h>

#include "comm/world.h"

#define CHECK(w, cond)                                                                             \
    do {                                                                                           \
        if (!(cond))                                                                               \
            fm_world_abort(w, "%s:%d: %s does not hold (%s)", __FILE__, __LINE__, #cond,           \
                           fm_why());                                                              \
    } while (0)

static inline fm_world *rank_open(void)
{
    fm_world *w = NULL;
    if (fm_world_open(&w, NULL) == FM_OK) return w;
    fprintf(stderr, "%s\n", fm_why());
    exit(1);
}

#endif
