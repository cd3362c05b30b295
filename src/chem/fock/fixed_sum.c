/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fock/fixed_sum.h"

#include <math.h>

double fm_fixed_scale(double bound)
{
    int e;
    if (!(bound > 0)) return 1;
    frexp(bound, &e);
    return ldexp(1, 61 - e > 1000 ? 1000 : 61 - e);
}

fm_status fm_fixed_all_reduce(fm_comm *comm, int64_t *x, size_t n, double *scratch)
{
    if (comm->n_rank == 1) return FM_OK;
    for (size_t k = 0; k < n; k++) {
        scratch[2 * k]     = (double)(x[k] >> 32);
        scratch[2 * k + 1] = (double)(x[k] & 0xffffffff);
    }
    FM_TRY(fm_all_reduce_f64(comm, scratch, 2 * n));
    for (size_t k = 0; k < n; k++)
        x[k] = (int64_t)((uint64_t)(int64_t)scratch[2 * k] << 32) + (int64_t)scratch[2 * k + 1];
    return FM_OK;
}
