/* SPDX-License-Identifier: Apache-2.0 */
/* The median rule: a running trial is hopeless when the best intermediate value it has
 * reported so far is worse than the median of what earlier trials had
 * reported at the same step. */
#ifndef FM_TUNE_PRUNE_H
#define FM_TUNE_PRUNE_H

#include "tune/study.h"

enum { FM_PRUNE_AFTER = 4 }; /* ended trials that reached the step */

int fm_prune(const fm_study *s, const fm_trial *t);

#endif
