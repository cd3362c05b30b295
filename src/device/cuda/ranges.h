/* SPDX-License-Identifier: Apache-2.0 */
/* Named ranges for profilers that are attached (NVTX: Nsight Systems, Nsight Compute).  They lie
 * one in the other, of the calling thread. */
#ifndef FM_DEVICE_CUDA_RANGES_H
#define FM_DEVICE_CUDA_RANGES_H

/* 0: no profiler listens, or this build knows none; ranges would be lost. */
int fm_ranges_are_read(void);

void fm_range_push(const char *name); /* copied by who reads it */
void fm_range_pop(void);

#endif
