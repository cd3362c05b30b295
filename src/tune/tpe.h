/* SPDX-License-Identifier: Apache-2.0 */
/* Tree-structured Parzen estimator (Bergstra and others, 2011): trials are divided into
 * the better ones and the rest, each parameter gets a density for either.  A few
 * candidates are drawn from the density of the better ones; the score of these is the
 * logarithm of the ratio, whose order is that of expected improvement. */
#ifndef FM_TUNE_TPE_H
#define FM_TUNE_TPE_H

#include "tune/candidates.h"

fm_status fm_tpe_score(double *score, const fm_study *s, const fm_candidates *c, fm_mt *random);

#endif
