/* SPDX-License-Identifier: Apache-2.0 */
/* Variants of kernels that can be left out by name, to measure what each of them gains:
 *
 *     FM_CUDA_LEAVE_OUT=attend_few,route_few fathom bench ...
 *
 * Another variant of the family takes its work; bits are the same, so only time changes.
 * tools/gpu/ladder.sh measures all of them in turn. */
#ifndef FM_LLM_KERNEL_CUDA_VARIANTS_H
#define FM_LLM_KERNEL_CUDA_VARIANTS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    FM_VARIANT_ATTEND_FEW,       /* attention: one part is divided among thread blocks */
    FM_VARIANT_ATTEND_TWO,       /* attention: a cluster of two shares the keys */
    FM_VARIANT_ATTEND_BOXES,     /* attention: keys loaded by TMA boxes */
    FM_VARIANT_EXPANDED_WIDE,    /* attention of prompts by wgmma */
    FM_VARIANT_LINEAR_WIDE,      /* products: thread blocks of many rows of w */
    FM_VARIANT_LINEAR_TILES,     /* products: tiles of ours where cuBLASLt could be used */
    FM_VARIANT_LINEAR_TWO,       /* products: two of the same rows in one launch */
    FM_VARIANT_LINEAR_128X256,   /* E4M3 weights: two tiles of w per warpgroup */
    FM_VARIANT_ROUTE_FEW,        /* routing and sorting in one launch */
    FM_VARIANT_SORT_TWO,         /* pairs sorted by two kernels */
    FM_VARIANT_NORM_SUM,         /* sum over a row's experts inside the next norm */
    FM_VARIANT_SIDE,             /* shared expert in a second stream */
    FM_VARIANT_EXPERTS_8,        /* experts: blocks of 8 tokens */
    FM_VARIANT_EXPERTS_16,       /* of 16 */
    FM_VARIANT_EXPERTS_32,       /* of 32 */
    FM_VARIANT_EXPERTS_256,      /* of 256 */
    FM_N_VARIANT
} fm_cuda_variant;

/* Whether FM_CUDA_LEAVE_OUT names it.  The variable is read once. */
int fm_cuda_leaves_out(fm_cuda_variant v);

#ifdef __cplusplus
}
#endif

#endif
