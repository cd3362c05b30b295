/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/variants.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static const char *const name[FM_N_VARIANT] = {
    [FM_VARIANT_ATTEND_FEW]     = "attend_few",
    [FM_VARIANT_ATTEND_TWO]     = "attend_two",
    [FM_VARIANT_ATTEND_BOXES]   = "attend_boxes",
    [FM_VARIANT_EXPANDED_WIDE]  = "expanded_wide",
    [FM_VARIANT_LINEAR_WIDE]    = "linear_wide",
    [FM_VARIANT_LINEAR_TILES]   = "linear_tiles",
    [FM_VARIANT_LINEAR_TWO]     = "linear_two",
    [FM_VARIANT_LINEAR_128X256] = "linear_128x256",
    [FM_VARIANT_ROUTE_FEW]      = "route_few",
    [FM_VARIANT_SORT_TWO]       = "sort_two",
    [FM_VARIANT_NORM_SUM]       = "norm_sum",
    [FM_VARIANT_SIDE]           = "side",
    [FM_VARIANT_EXPERTS_8]      = "experts_8",
    [FM_VARIANT_EXPERTS_16]     = "experts_16",
    [FM_VARIANT_EXPERTS_32]     = "experts_32",
    [FM_VARIANT_EXPERTS_256]    = "experts_256",
};

static unsigned       left_out; /* bit i: variant i */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave_out(const char *word, size_t n)
{
    for (int i = 0; i < FM_N_VARIANT; i++)
        if (strlen(name[i]) == n && !memcmp(name[i], word, n)) {
            left_out |= 1u << i;
            return;
        }
    if (n) FM_WARN("cuda", "FM_CUDA_LEAVE_OUT names %.*s, which is no variant", (int)n, word);
}

static void look(void)
{
    const char *at = getenv("FM_CUDA_LEAVE_OUT");
    while (at && *at) {
        const size_t n = strcspn(at, ",");
        leave_out(at, n);
        at += n + (at[n] == ',');
    }
}

int fm_cuda_leaves_out(fm_cuda_variant v)
{
    pthread_once(&once, look);
    return left_out >> v & 1;
}
