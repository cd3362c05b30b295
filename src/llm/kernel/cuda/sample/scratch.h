/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of sampling.  Plain C, so that a build without CUDA can count it, too. */
#ifndef FM_LLM_KERNEL_CUDA_SAMPLE_SCRATCH_H
#define FM_LLM_KERNEL_CUDA_SAMPLE_SCRATCH_H

#include <stdint.h>

#include "base/slab.h"

enum {
    FM__PART_FEW  = 2048, /* tokens of a part: few rows are divided further */
    FM__PART_MANY = 8192,
    FM__MANY_ROWS = 32,
    FM__RUNNERS   = 4, /* tokens of a part that may have won the race */
};

typedef unsigned long long fm__u64; /* as CUDA's atomics want it */

/* Weights of a part or a row: all, and of the tokens nearer than some distances. */
enum { FM__RINGS = 3 };
typedef struct {
    fm__u64 z, sum[FM__RINGS];
    int32_t n[FM__RINGS];
} fm__rings;

/* Scratch of one call. */
typedef struct {
    fm__u64   *best;     /* [n_row, n_part] key of the largest logit, packed with fm__pack_best() */
    float     *score;    /* [n_row, n_part] of the best runner, nearly: see scan.cu */
    int32_t   *n_runner; /* [n_row, n_part]; more than FM__RUNNERS: too many to list */
    int32_t   *runner;   /* [n_row, n_part, FM__RUNNERS] ids */
    fm__rings *rings;    /* [n_row, n_part] of rows that need them */
    int        n_part, part;
} fm__sample_scratch;

/* Room for the parts of these or of fewer rows, which have more parts each. */
static inline fm__sample_scratch fm__sample_carve(fm_slab *slab, int n_row, int vocab)
{
    fm__sample_scratch s;
    const size_t       parts = (size_t)n_row * (size_t)((vocab + FM__PART_FEW - 1) / FM__PART_FEW);
    s.best                   = (fm__u64 *)fm_slab_take(slab, parts * sizeof *s.best);
    s.score                  = (float *)fm_slab_take(slab, parts * sizeof *s.score);
    s.n_runner               = (int32_t *)fm_slab_take(slab, parts * sizeof *s.n_runner);
    s.runner = (int32_t *)fm_slab_take(slab, parts * FM__RUNNERS * sizeof *s.runner);
    s.rings  = (fm__rings *)fm_slab_take(slab, parts * sizeof *s.rings);
    s.part   = n_row < FM__MANY_ROWS ? FM__PART_FEW : FM__PART_MANY;
    s.n_part = (vocab + s.part - 1) / s.part;
    return s;
}

/* Bytes of fm_cuda_sample_args.scratch. */
static inline size_t fm_cuda_sample_bytes(int n_row, int vocab)
{
    fm_slab count = {0, 0, 0};
    (void)fm__sample_carve(&count, n_row, vocab);
    return count.used;
}

#endif
