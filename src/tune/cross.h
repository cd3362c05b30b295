/* SPDX-License-Identifier: Apache-2.0 */
/* An ablation over features that are on or off: none off, each one off, each pair
 * off, and so on to the full cross of 2^n cells. */
#ifndef FM_TUNE_CROSS_H
#define FM_TUNE_CROSS_H

#include <stdint.h>

enum { FM_CROSS_MAX_FEATURE = 16 };

/* The cells with at most `most_off` features off, as masks (bit i: feature i is off),
 * fewest off first.  Returns their number; off[] has room for 2^n_feature. */
int fm_cross(uint32_t *off, int n_feature, int most_off);

int fm_cross_n_off(uint32_t off); /* features of a cell that are off */

#endif
