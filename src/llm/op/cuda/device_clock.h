/* SPDX-License-Identifier: Apache-2.0 */
/* The device's clock converted to the host's. The host requests a timestamp and notes its own clock
 * before and after; of several requests the quickest counts, and half its duration is the error.
 * Two such comparisons give the ratio of the clock rates. */
#ifndef FM_LLM_OP_CUDA_DEVICE_CLOCK_H
#define FM_LLM_OP_CUDA_DEVICE_CLOCK_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

typedef struct {
    uint64_t device, host; /* the same moment */
    uint64_t error;        /* give or take, ns */
} fm_moment;

typedef struct {
    fm_stream stream;
    uint64_t *stamp; /* pinned */
    fm_moment first, last;
    int       is_asked; /* a timestamp was requested and not waited for */
} fm_device_clock;

fm_status fm_device_clock_open(fm_device_clock *c);  /* and compares */
void      fm_device_clock_close(fm_device_clock *c); /* {0} is fine */

/* Compares again if the last time is long ago.  Waits a few milliseconds at most. */
fm_status fm_device_clock_keep(fm_device_clock *c);
fm_status fm_device_clock_compare(fm_device_clock *c);

/* A device's time in CLOCK_MONOTONIC, ns. */
uint64_t fm_device_clock_to_host(const fm_device_clock *c, uint64_t device);

#endif
