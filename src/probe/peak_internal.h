/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that peak.c times. */
#ifndef FM_PROBE_PEAK_INTERNAL_H
#define FM_PROBE_PEAK_INTERNAL_H

#include "probe/peak.h"

typedef struct {
    double flop, seconds;
} fm__work;

/* About a millisecond of one instruction. */
typedef fm__work fm__peak_loop(void);

/* The loops that may be the fastest, ended by NULL; an empty list: no such instruction. */
enum { FM__PEAK_LOOPS = 4 };
void fm__peak_loops(fm__peak_loop *out[FM__PEAK_LOOPS], fm_isa isa, fm_factor f);

#endif
