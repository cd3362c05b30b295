/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the measured variation each parameter explains by itself: the main
 * effects of a functional analysis of variance (Hutter and others, 2014).  A random forest is
 * fitted to the trials; the marginal of a parameter is the forest's mean over all other parameters,
 * and its share is the variance of the marginal over the variance of the whole.  Shares sum to at
 * most about 1; the rest are interactions. */
#ifndef FM_TUNE_IMPORTANCE_H
#define FM_TUNE_IMPORTANCE_H

#include "tune/study.h"

/* share[space->n].  FM_E_FULL: too few trials; all shares are 0. */
fm_status fm_importance(double *share, const fm_study *s);

#endif
