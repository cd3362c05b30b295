/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian process regression of the losses, and expected improvement.
 *
 *     k(a, b) = matern52(r),   r^2 = sum_i (distance_i(a, b) / length_i)^2
 *
 * with the distances of candidates.h, so that whole numbers, choices and
 * parameters that exist only sometimes have their place.  Lengths and noise
 * maximise the marginal likelihood (the variance is profiled out) times a log-normal prior; losses
 * worse than the median enter through a logarithm, so that failures do not bend the rest. */
#ifndef FM_TUNE_GP_H
#define FM_TUNE_GP_H

#include "tune/candidates.h"

fm_status fm_gp_score(double *score, const fm_study *s, const fm_candidates *c, fm_mt *random);

#endif
