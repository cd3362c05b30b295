/* SPDX-License-Identifier: Apache-2.0 */
/* Plain C: the definition. */
#include "chem/xc/product.h"

static void multiply(const fm_product *p)
{
    for (int r = 0; r < p->n_row; r++)
        for (int c = 0; c < p->n_column; c += FM_PRODUCT_COLUMNS) {
            double        sum[FM_PRODUCT_COLUMNS] = {0};
            const double *a = p->A + (size_t)r * p->row, *b = p->B + c;
            for (int k = 0; k < p->n_k; k++, a += p->column, b += p->b_stride)
                for (int i = 0; i < FM_PRODUCT_COLUMNS; i++) sum[i] += *a * b[i];
            for (int i = 0; i < FM_PRODUCT_COLUMNS; i++)
                p->out[(size_t)r * p->out_stride + (size_t)(c + i)] = sum[i];
        }
}

static void transpose(double *out, size_t out_stride, const double *in, size_t in_stride, int n,
                      int m)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            out[(size_t)j * out_stride + (size_t)i] = in[(size_t)i * in_stride + (size_t)j];
}

extern const fm_product_kernels fm__product_ref;
const fm_product_kernels        fm__product_ref = {FM_ISA_REF, multiply, transpose};
