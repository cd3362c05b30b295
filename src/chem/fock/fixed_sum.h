/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that do not depend on their order: numbers are rounded to multiples of a power of
 * two and added as 64-bit integers, exactly.  The power is chosen from a bound of the
 * sums of magnitudes, so nothing overflows and 2^-61 of that bound is resolved. */
#ifndef FM_CHEM_FOCK_FIXED_SUM_H
#define FM_CHEM_FOCK_FIXED_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "comm/comm.h"

/* What numbers are multiplied with before rounding, for sums below `bound`. */
double fm_fixed_scale(double bound);

/* x[n] summed over the ranks of a group, on every rank.  Exact: halves of the integers
 * travel as doubles.  scratch[2n] */
fm_status fm_fixed_all_reduce(fm_comm *comm, int64_t *x, size_t n, double *scratch);

#endif
