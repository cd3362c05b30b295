/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/cross.h"

#include "base/status.h"

int fm_cross_n_off(uint32_t off)
{
    int n = 0;
    for (; off; off &= off - 1) n++;
    return n;
}

int fm_cross(uint32_t *off, int n_feature, int most_off)
{
    FM_BUG_UNLESS(n_feature >= 0 && n_feature <= FM_CROSS_MAX_FEATURE);
    int n = 0;
    for (int k = 0; k <= most_off && k <= n_feature; k++)
        for (uint32_t mask = 0; mask < (uint32_t)1 << n_feature; mask++)
            if (fm_cross_n_off(mask) == k) off[n++] = mask;
    return n;
}
