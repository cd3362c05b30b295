/* SPDX-License-Identifier: Apache-2.0 */
/* Which point to try next, given all trials so far.
 *
 *     study ──> candidates (not tried yet) ──score──> the best of them
 *
 * gp      Gaussian process over all losses, expected improvement (gp.h)
 * tpe     tree-structured Parzen estimator: the ratio of the density of good
 *         points to that of the others, which orders points as expected
 *         improvement does (tpe.c)
 * random  no model; what the others are measured against
 *
 * The first points of gp and tpe, and every tenth after them, are drawn at random, each the
 * farthest of a few from those before it.  A suggestion is a pure function of the study, its seed
 * included: a study that is continued goes on as if it had never stopped. */
#ifndef FM_TUNE_SAMPLER_H
#define FM_TUNE_SAMPLER_H

#include "tune/candidates.h"
#include "tune/study.h"

typedef struct {
    const char *name;
    /* How good each candidate looks, larger is better; NULL: any will do. */
    fm_status (*score)(double *score, const fm_study *s, const fm_candidates *c, fm_mt *random);
} fm_search_sampler;

const fm_search_sampler *fm_search_sampler_find(const char *name); /* or NULL */

/* FM_E_FULL: every point was tried, or the constraints allow none. */
fm_status fm_suggest(fm_point *out, const fm_search_sampler *how, const fm_study *s);

#endif
