/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU benchmarks stand on: memory, random contents, graphs that are
 * replayed and timed, one line per result.  Any CUDA error ends the program. */
#ifndef FM_BENCH_CUDA_STAND_H
#define FM_BENCH_CUDA_STAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

/* Ceilings of an H200: reading, and cuBLAS on a large BF16 product. */
#define STAND_BANDWIDTH 4.2e12
#define STAND_FLOPS 790e12

typedef enum { STAND_BF16, STAND_E4M3, STAND_FACTORS } stand_contents;

void  stand_open(void); /* prints the GPU's name */
int   stand_sm(void);   /* multiprocessors */
void *stand_take(size_t bytes);
void *stand_random(size_t bytes, stand_contents what,
                   uint64_t seed); /* never zeros: they run faster */
void *stand_upload(const void *from, size_t bytes);
void  stand_free(void *p); /* NULL is fine */
void  stand_need(fm_status s);

/* Captures record(arg, stream), replays it, and gives the median time in us. */
double stand_time(void (*record)(void *arg, fm_stream stream), void *arg);

/* One result: its time, and what it moved and computed in it. */
void stand_head(void);
void stand_line(const char *kernel, const char *shape, int T, double us, double bytes, double flop);

#endif
