/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up functions that fm_cuda_mla_init() calls, and the kernels of the expanded form. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_MLA_INTERNAL_H
#define FM_LLM_KERNEL_CUDA_ATTENTION_MLA_INTERNAL_H

#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/variants.h"

fm_status fm__mla_absorbed_init(void);
fm_status fm__mla_absorbed_wide_init(void);
fm_status fm__mla_expanded_wide_init(void);

/* More than 32 heads of widths 512 + 64; the parts of rows with several are not yet merged. */
fm_status fm__mla_absorbed_wide(const fm_mla_absorbed_args *a, fm_stream stream);

/* Any width, and the one of the large models: 128 + 64 and 128.  The same bits. */
fm_status fm__mla_expanded_any(const fm_mla_expanded_args *a, fm_stream stream);
fm_status fm__mla_expanded_wide(const fm_mla_expanded_args *a, fm_stream stream);

static inline int fm__mla_expanded_is_wide(const fm_mla_expanded_args *a)
{
    return a->nope == 128 && a->rope == 64 && a->v_dim == 128 &&
           !fm_cuda_leaves_out(FM_VARIANT_EXPANDED_WIDE);
}

#endif
