/* SPDX-License-Identifier: Apache-2.0 */
/* The register-blocked product of product.h.  A file per instruction set defines
 * the vector type `vec` of VEC doubles, LOAD, STORE, SPREAD (one number to all
 * lanes), MADD(a, b, c) = a b + c, and the tile TILE_ROWS x TILE_VECS that fills
 * its registers, and includes this one. */
#include "chem/xc/product.h"

/* One tile: R rows and V vectors of columns stay in registers while k runs. */
#define DEFINE_TILE(R, V)                                                                          \
    static void tile_##R##_##V(const fm_product *p, int r, int c)                                  \
    {                                                                                              \
        vec           sum[R][V];                                                                   \
        const double *a = p->A + (size_t)r * p->row, *b = p->B + c;                                \
        for (int i = 0; i < R; i++)                                                                \
            for (int j = 0; j < V; j++) sum[i][j] = SPREAD(0.0);                                   \
        for (int k = 0; k < p->n_k; k++, a += p->column, b += p->b_stride) {                       \
            vec column[V];                                                                         \
            for (int j = 0; j < V; j++) column[j] = LOAD(b + j * VEC);                             \
            for (int i = 0; i < R; i++) {                                                          \
                const vec x = SPREAD(a[(size_t)i * p->row]);                                       \
                for (int j = 0; j < V; j++) sum[i][j] = MADD(x, column[j], sum[i][j]);             \
            }                                                                                      \
        }                                                                                          \
        double *out = p->out + (size_t)r * p->out_stride + c;                                      \
        for (int i = 0; i < R; i++)                                                                \
            for (int j = 0; j < V; j++)                                                            \
                STORE(out + (size_t)i * p->out_stride + j * VEC, sum[i][j]);                       \
    }
