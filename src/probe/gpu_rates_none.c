/* SPDX-License-Identifier: Apache-2.0 */
/* A build without CUDA: what the driver says is still known, but nothing can be measured. */
#include "probe/gpu_rates.h"

int fm_gpu_rates_count(void) { return 0; }

fm_status fm_gpu_rates(fm_rates_gpu *out, fm_gpu_facts *facts, int index, fm_gpu_product *product)
{
    (void)out;
    (void)facts;
    (void)index;
    (void)product;
    return fm_fail(FM_E_NOSUP, "this build has no CUDA");
}
