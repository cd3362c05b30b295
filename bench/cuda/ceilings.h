/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU can do at best: the numbers every other number is held against. */
#ifndef FM_BENCH_CUDA_CEILINGS_H
#define FM_BENCH_CUDA_CEILINGS_H

typedef struct {
    double bandwidth; /* bytes per second of device memory */
    double bf16, fp8; /* FLOP per second of a large product */
} fm_gpu_ceilings;

/* An H200's, until this one's are measured. */
static const fm_gpu_ceilings fm_gpu_usual = {4.2e12, 790e12, 1400e12};

#endif
