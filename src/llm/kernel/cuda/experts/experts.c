/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/experts/experts.h"

#include "llm/kernel/cuda/experts/experts_internal.h"

/* Twice the mean fits in one block: with uniform routing few experts then need
 * a second reading of their weights, which comes from L2. */
int fm_cuda_experts_block_rows(int n_pair, int n_expert, int is_e4m3)
{
    const int mean = n_pair / n_expert;
    if (n_expert == 1 && mean > 32 && mean <= 384) return 64; /* or tasks are too few */
    return mean <= 4 ? 8 : mean <= 8 ? 16 : mean <= 16 ? 32 : mean <= 64 || is_e4m3 ? 64 : 256;
}

fm_status fm_cuda_experts_init(void)
{
    FM_TRY(fm__cuda_experts_init_up());
    return fm__cuda_experts_init_down();
}
