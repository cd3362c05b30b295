/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a machine (roofline): bandwidth and peaks, which all results are compared with. */
#ifndef FM_BENCH_ROOF_H
#define FM_BENCH_ROOF_H

typedef struct {
    double bandwidth; /* bytes per second of memory */
    double bf16, fp8; /* FLOP per second of a large product; fp8 0: weights are bf16 */
    int    through_memory; /* what one op hands to the next goes through memory, not a cache */
} fm_roof;

/* An H200's, until it is measured. */
static const fm_roof fm_roof_h200 = {4.2e12, 790e12, 1400e12, 1};

#endif
