/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_BASE_ARGMAX_H
#define FM_BASE_ARGMAX_H

/* The first largest value; NaN counts as -inf; 0 if nothing exceeds -inf. */
int fm_argmax(const float *x, int n);

#endif
