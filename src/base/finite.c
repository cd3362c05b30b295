/* SPDX-License-Identifier: Apache-2.0 */
#include "base/finite.h"

#include "base/clones.h"
#include "base/number.h"

enum { LANES = 32, BLOCK = 4096 };

/* x - x is +0 for every finite x and NaN for the others, so the bits of the
 * differences stay 0 exactly as long as all are finite.  Independent lanes: the
 * compiler uses vector instructions. */
FM_CLONES static uint32_t bits_of_differences(const float *x, int n)
{
    uint32_t lane[LANES] = {0}, any = 0;
    int      i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] |= fm_bits_of_f32(x[i + j] - x[i + j]);
    for (; i < n; i++) any |= fm_bits_of_f32(x[i] - x[i]);
    for (int j = 0; j < LANES; j++) any |= lane[j];
    return any;
}

int fm_all_finite(const float *x, int n)
{
    for (int b = 0; b < n; b += BLOCK)
        if (bits_of_differences(x + b, n - b < BLOCK ? n - b : BLOCK)) return 0;
    return 1;
}
