/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/linear.h"

/* Up to here our tiles are the faster ones, as measured on an H200: the library
 * takes 6 us for the smallest product, and with more rows the tiles read the
 * weights again. */
enum { FEW_ROWS = 32 };

int fm_cuda_linear_wants_lt(const fm_cuda_linear_args *a)
{
    return a->m > FEW_ROWS && !a->scale && !a->swiglu;
}

/* The experts' tiles are large, 128 x 64: half of the multiprocessors have one. */
static int fills_wide(const fm_cuda_linear_args *a)
{
    return a->m > FEW_ROWS && 2 * ((a->n + 127) / 128) * ((a->m + 63) / 64) >= a->n_sm;
}

fm_status fm_cuda_linear(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    if (fm_cuda_linear_wants_lt(a)) {
        const fm_status rc = fm_cuda_lt_run(lt, a, stream);
        if (rc != FM_E_NOSUP) return rc;
    }
    if (a->scale && !a->swiglu && fills_wide(a)) return fm_cuda_linear_wide(a, stream);
    return fm_cuda_linear_tiles(a, stream);
}
