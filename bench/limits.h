/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the limits of this machine (read bandwidth, multiply-add peak), which all results are
 * compared with. */
#ifndef FM_BENCH_LIMITS_H
#define FM_BENCH_LIMITS_H

#include <stddef.h>

#include "base/cpu.h"
#include "base/status.h"
#include "bench/roof.h"

typedef struct {
    int    n_thread;
    fm_isa isa;
    double read; /* bytes per second out of memory, all threads */
    double peak; /* FLOP per second of the bf16 product, all threads at once */
    double fed;  /* the same with operands from L1, as a rule; 0 unless AMX */
} fm_limits;

static inline fm_roof fm_roof_of(const fm_limits *l)
{
    return (fm_roof){.bandwidth = l->read, .bf16 = l->peak};
}

/* On an arena of its own (1 GiB in huge pages). */
fm_status fm_limits_measure(fm_limits *out, int n_thread);

#endif
