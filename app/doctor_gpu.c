/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"
#include "llm/kernel/cuda/linear/lt_peak.h"

fm_status fm_doctor_gpu_product(fm_factor f, double *rate, int n)
{
    if (f != FM_FACTOR_BF16 && f != FM_FACTOR_FP8)
        return fm_fail(FM_E_NOSUP, "no large product of %s", fm_factor_name(f));
    return fm_cuda_lt_peak(f == FM_FACTOR_FP8 ? FM_FP8 : FM_BF16, rate, n);
}
