/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/experts/experts.h"

#include "llm/kernel/cuda/experts/experts_internal.h"
#include "llm/kernel/cuda/variants.h"

/* The next width, where one is left out. */
static int next_if_left_out(int rows)
{
    if (rows == 8 && fm_cuda_leaves_out(FM_VARIANT_EXPERTS_8)) rows = 16;
    if (rows == 16 && fm_cuda_leaves_out(FM_VARIANT_EXPERTS_16)) rows = 32;
    if (rows == 32 && fm_cuda_leaves_out(FM_VARIANT_EXPERTS_32)) rows = 64;
    return rows == 256 && fm_cuda_leaves_out(FM_VARIANT_EXPERTS_256) ? 64 : rows;
}

/* Twice the mean fits in one block: with uniform routing few experts then need
 * a second reading of their weights, which comes from L2. */
int fm_cuda_experts_block_rows(int n_pair, int n_expert, int is_e4m3)
{
    const int mean = n_pair / n_expert;
    if (n_expert == 1 && mean > 32 && mean <= 384) return 64; /* or tasks are too few */
    return next_if_left_out(mean <= 4    ? 8
                            : mean <= 8  ? 16
                            : mean <= 16 ? 32
                            : mean <= 64 || is_e4m3 ? 64
                                                    : 256);
}

int fm_cuda_experts_box(int block_rows) { return block_rows == 256 ? 64 : 0; }

fm_status fm_cuda_experts_init(void)
{
    FM_TRY(fm__cuda_experts_init_up());
    return fm__cuda_experts_init_down();
}
