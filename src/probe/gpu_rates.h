/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU can do.  Two files implement this: cuda/gpu_rates.c, which a program
 * with CUDA is linked with, and gpu_rates_none.c, in which no rank has a GPU. */
#ifndef FM_PROBE_GPU_RATES_H
#define FM_PROBE_GPU_RATES_H

#include "probe/gpu_facts.h"
#include "probe/rates.h"

/* GPUs this process can compute on; 0: none. */
int fm_gpu_rates_count(void);

/* FLOP/s of a large bf16 or fp8 product on the open device, n times; matrix libraries are not
 * known here.  FM_E_NOSUP: there is no such product. */
typedef fm_status fm_gpu_product(fm_factor f, double *rate, int n);

/* Opens the GPU `index`, and measures reading its memory, f32 and f64 multiply-adds, the bus, and
 * what `product` (NULL: nothing) multiplies.  `facts` are read while it works, when clocks are
 * those of work.  FM_E_DEVICE: it cannot be used. */
fm_status fm_gpu_rates(fm_rates_gpu *out, fm_gpu_facts *facts, int index, fm_gpu_product *product);

#endif
