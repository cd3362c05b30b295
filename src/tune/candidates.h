/* SPDX-License-Identifier: Apache-2.0 */
/* Points that may be tried next: allowed by the constraints and not tried yet.
 * Of a small countable space, all; of a larger one, random points and neighbours of the
 * best trials so far. */
#ifndef FM_TUNE_CANDIDATES_H
#define FM_TUNE_CANDIDATES_H

#include "tune/study.h"

typedef struct {
    fm_point *point; /* [n] owned */
    int       n, cap;
} fm_candidates; /* {0} is an empty one */

/* FM_E_FULL: there is none. */
fm_status fm_candidates_make(fm_candidates *c, const fm_study *s, fm_mt *random);
void      fm_candidates_fini(fm_candidates *c);

double fm_point_distance(const fm_space *s, const fm_point *a, const fm_point *b); /* Euclidean */

#endif
