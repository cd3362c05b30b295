/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in ascending order, for medians and percentiles. */
#ifndef FM_BASE_ASCENDING_H
#define FM_BASE_ASCENDING_H

#include <stddef.h>

void fm_sort_ascending(double *x, size_t n); /* no NaN among them */

#endif
