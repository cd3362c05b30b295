/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that ranks divide among them.  Gathered, they lie as pieces, one
 * behind the other in rank order:
 *
 *     [n_row, columns of part 0] [n_row, columns of part 1] ...
 *
 * Nothing is computed but x += y.  All pointers are borrowed device memory. */
#ifndef FM_LLM_KERNEL_CUDA_EXCHANGE_COLUMNS_H
#define FM_LLM_KERNEL_CUDA_EXCHANGE_COLUMNS_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n things of `width` columns each, divided in blocks of `unit` things: part i
 * of weights/shard.h. */
typedef struct {
    int n_part, n, unit, width;
} fm_cuda_parts;

/* y[i] = row i of the pieces, or y += it. */
typedef struct {
    void         *y;     /* [n_row, n * width] */
    const void   *piece; /* the first; 16-byte aligned */
    fm_cuda_parts parts;
    int           element; /* bytes: 2, or 4 for f32 */
    int           add;     /* f32 only */
    int           n_row;
} fm_cuda_unpack_args;
fm_status fm_cuda_unpack(const fm_cuda_unpack_args *a, fm_stream stream);

/* y[i] = columns [begin, begin + width) of x[i]; all multiples of 4. */
typedef struct {
    float       *y; /* [n_row, width] */
    const float *x; /* [n_row, ldx] */
    int          n_row, begin, width, ldx;
} fm_cuda_take_columns_args;
fm_status fm_cuda_take_columns(const fm_cuda_take_columns_args *a, fm_stream stream);

/* y[i] = table[row[i]], bf16; where row[i] is negative, y[i] stays as it is. */
typedef struct {
    uint16_t       *y;     /* [n_row, width] */
    const uint16_t *table; /* [, width] */
    const int32_t  *row;   /* [n_row] */
    int             n_row, width; /* a multiple of 4 */
} fm_cuda_take_rows_args;
fm_status fm_cuda_take_rows(const fm_cuda_take_rows_args *a, fm_stream stream);

/* Words that ranks divide, of tokens the host does not know: in the lists of what
 * this rank contributes and of where each row's word then lies, `chosen` takes
 * the place of what stands for it.
 *
 *     own[i]   -2 - c: the row of token chosen[c] here, or -1 if another has it
 *     at[i]    -1 - p: base[of the part that has it] + p, with the token
 *              chosen[-1 - token[i]] */
typedef struct {
    int32_t       *own; /* [n_own] */
    int32_t       *at;  /* [n_row] */
    const int32_t *token, *chosen;
    const int32_t *base; /* [n_part] */
    fm_cuda_parts  words;
    int            part; /* this rank's */
    int            n_own, n_row;
} fm_cuda_find_words_args;
fm_status fm_cuda_find_words(const fm_cuda_find_words_args *a, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
