/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_BASE_FINITE_H
#define FM_BASE_FINITE_H

/* 1: none of the n values is NaN or infinite. */
int fm_all_finite(const float *x, int n);

#endif
