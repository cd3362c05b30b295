/* SPDX-License-Identifier: Apache-2.0 */
/* Named NVTX ranges for an attached profiler (Nsight Systems, Nsight Compute).  Ranges nest, for
 * each thread by itself. */
#ifndef FM_DEVICE_CUDA_RANGES_H
#define FM_DEVICE_CUDA_RANGES_H

/* 0: no profiler is attached, or this build has no NVTX: push and pop do nothing. */
int fm_ranges_are_read(void);

void fm_range_push(const char *name); /* the profiler copies the name */
void fm_range_pop(void);

#endif
