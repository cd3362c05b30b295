/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ascending.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void fm_sort_ascending(double *x, size_t n) { qsort(x, n, sizeof *x, compare); }
