/* SPDX-License-Identifier: Apache-2.0 */
/* A random forest: regression trees, each grown on a bootstrap sample of the trials. It predicts
 * the measured function where no trial was made. */
#ifndef FM_TUNE_FOREST_H
#define FM_TUNE_FOREST_H

#include "tune/study.h"

typedef struct fm_forest fm_forest;

/* From all ended trials, with the losses of fm_study_losses().  FM_E_FULL: fewer than 4. */
fm_status fm_forest_create(fm_forest **out, const fm_study *s);
void      fm_forest_destroy(fm_forest *f);
double    fm_forest_predict(const fm_forest *f, const fm_point *p);

#endif
