/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU benchmarks stand on: memory, random contents, graphs that are
 * replayed and timed, marks in a stream, results that leave the process.  Any
 * CUDA error ends the process. */
#ifndef FM_BENCH_CUDA_STAND_H
#define FM_BENCH_CUDA_STAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "bench/cuda/report.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STAND_NO_GPU = 2 }; /* exit status of a process that found none */

/* The section that measures for `seconds` and sends its results to `fd`. */
void stand_open(const char *section, double seconds, const fm_roof *c, int fd);
int  stand_sm(void);      /* multiprocessors */
int  stand_is_over(void); /* its time */
const fm_roof *stand_ceilings(void);
void                   stand_need(fm_status s);

/* --- memory ----------------------------------------------------------------- */

typedef enum { STAND_BF16, STAND_E4M3, STAND_FACTORS, STAND_LOGITS } stand_contents;

void *stand_take(size_t bytes);
void *stand_random(size_t bytes, stand_contents what,
                   uint64_t seed); /* never zeros: they run faster */
void *stand_upload(const void *from, size_t bytes);
void  stand_free(void *p); /* NULL is fine */

/* --- time ------------------------------------------------------------------- */

/* Captures record(arg, stream) as often as a good third of a millisecond holds,
 * replays that, and gives the median time of one go in us. */
double stand_time(void (*record)(void *arg, fm_stream stream), void *arg);

/* Marks in a stream: 0 when the first is put after a reset, and so on.  Wait
 * before asking for the time between two. */
enum { STAND_MARKS = 8192 };
void   stand_marks_reset(void);
int    stand_mark(fm_stream stream);
double stand_between(int from, int to); /* us */
void   stand_wait(void);                /* until the GPU has done everything */

/* The stream waits this long before it goes on: what is put into it meanwhile
 * runs without waiting for the host. */
void stand_hold(fm_stream stream, double us);

/* --- results ---------------------------------------------------------------- */

void stand_send(const fm_gpu_result *x); /* `section` is filled in here */

/* One go of a kernel: its time, and what it moved and computed in it. */
void stand_line(const char *kernel, const char *shape, int T, double us, double bytes, double flop);
void stand_line_fp8(const char *kernel, const char *shape, int T, double us, double bytes,
                    double flop); /* held against the FP8 peak */
void stand_number(const char *name, const char *shape, double value, const char *unit);

#ifdef __cplusplus
}
#endif

#endif
