/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/linear.h"

/* Up to here one reading of the weights serves all rows in our tiles. */
enum { FEW_ROWS = 64 };

int fm_cuda_linear_wants_lt(const fm_cuda_linear_args *a)
{
    return a->m > FEW_ROWS && !a->scale && !a->swiglu;
}

fm_status fm_cuda_linear(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    if (!lt || a->m <= FEW_ROWS || a->swiglu) return fm_cuda_linear_tiles(a, stream);
    return a->scale ? fm_cuda_linear_wide(a, stream) : fm_cuda_lt_run(lt, a, stream);
}
