/* SPDX-License-Identifier: Apache-2.0 */
/* Products of small dense matrices that lie in the second-level cache, without
 * packing.  A kernel family, one file per instruction set.
 *
 *     out[r][c] = sum_k A(r,k) B[k][c],   A(r,k) = A[r * row + k * column]
 *
 * Columns are counted in multiples of FM_PRODUCT_COLUMNS and rows of B and out
 * begin 64-byte aligned; what lies in the padding is computed as well.  The order
 * of a sum over k is ascending whatever the shape, so a result depends on its
 * row of A and its column of B alone.  Ours and not a BLAS': libraries that do not
 * know a processor, virtual ones above all, fall back to kernels of 2004. */
#ifndef FM_CHEM_XC_PRODUCT_H
#define FM_CHEM_XC_PRODUCT_H

#include <stddef.h>

#include "base/cpu.h"

enum { FM_PRODUCT_COLUMNS = 8 };

typedef struct {
    int           n_row, n_column, n_k;
    const double *A;
    size_t        row, column; /* strides of A */
    const double *B;
    size_t        b_stride;
    double       *out;
    size_t        out_stride;
} fm_product;

typedef struct {
    fm_isa isa;
    void (*multiply)(const fm_product *p);
    /* out[j][i] = in[i][j] for i < n, j < m, both multiples of FM_PRODUCT_COLUMNS */
    void (*transpose)(double *out, size_t out_stride, const double *in, size_t in_stride, int n,
                      int m);
} fm_product_kernels;

const fm_product_kernels *fm_product_kernels_at(int i); /* best first, plain C last; NULL beyond */
const fm_product_kernels *fm_product_kernels_pick(void);

/* A row length for n columns: padded, and such that rows do not map to the same cache set. */
static inline size_t fm_product_stride(int n)
{
    const size_t padded =
        ((size_t)n + FM_PRODUCT_COLUMNS - 1) / FM_PRODUCT_COLUMNS * FM_PRODUCT_COLUMNS;
    return padded % 32 == 0 ? padded + 8 : padded;
}

#endif
