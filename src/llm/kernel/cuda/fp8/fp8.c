/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel computes an E4M3 product: by size alone, since all give the same bits.  Times were
 * measured on an H200. */
#include "llm/kernel/cuda/fp8/fp8.h"

#include "llm/kernel/cuda/variants.h"

/* A thread block's task, and the ns it takes for 128 k. */
typedef struct {
    int pairs, rows, step;
} tile_price;

enum { TASK_NS = 1500 }; /* to begin and to store */

static const tile_price tiles[FM_CUDA_N_FP8] = {
    [FM_CUDA_FP8_8X64] = {8, 64, 235},       [FM_CUDA_FP8_16X64] = {16, 64, 240},
    [FM_CUDA_FP8_8X128] = {8, 128, 280},     [FM_CUDA_FP8_16X128] = {16, 128, 300},
    [FM_CUDA_FP8_32X128] = {32, 128, 345},   [FM_CUDA_FP8_64X128] = {64, 128, 430},
    [FM_CUDA_FP8_8X256] = {8, 256, 390},     [FM_CUDA_FP8_16X256] = {16, 256, 420},
    [FM_CUDA_FP8_32X256] = {32, 256, 500},   [FM_CUDA_FP8_128X128] = {128, 128, 640},
    [FM_CUDA_FP8_128X256] = {128, 256, 950}, [FM_CUDA_FP8_192X128] = {192, 128, 800},
};

static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Blocks of 128 rows of w are those of its scales, and four outputs are stored at once. */
static int suits_tokens(const fm_cuda_fp8_args *a)
{
    const int gate = a->out == FM_CUDA_FP8_SWIGLU ? 2 : 1;
    return a->scale_row0 == 0 && a->n / gate % 4 == 0 && a->ldy % 4 == 0;
}

static int can(const fm_cuda_fp8_args *a, fm_cuda_fp8_tile t)
{
    if (t >= FM_CUDA_FP8_128X256) return suits_tokens(a);
    return a->out != FM_CUDA_FP8_SWIGLU || tiles[t].rows >= 128;
}

static int64_t price(const fm_cuda_fp8_args *a, const tile_price *t)
{
    const int64_t tasks = up(a->n_row, t->pairs) * up(a->n, t->rows);
    return up(tasks, a->n_sm) * (up(a->k, FM_CUDA_FP8_K) * t->step + TASK_NS);
}

static fm_cuda_fp8_tile cheapest(const fm_cuda_fp8_args *a)
{
    fm_cuda_fp8_tile found = FM_CUDA_FP8_8X128;
    int64_t          least = price(a, &tiles[found]);
    for (int t = 0; t < FM_CUDA_N_FP8; t++) {
        const int64_t p = can(a, (fm_cuda_fp8_tile)t) ? price(a, &tiles[t]) : INT64_MAX;
        if (p >= least) continue;
        least = p;
        found = (fm_cuda_fp8_tile)t;
    }
    return found;
}

/* Up to a mean of 16, at least twice the mean fits in one block: routing is uneven, every block of
 * an expert reads its weights, and room for more pairs costs little while memory is the limit. */
int fm_cuda_fp8_block_rows(int n_pair, int n_expert, int is_aligned)
{
    const int mean = n_pair / n_expert;
    if (mean > 16 && mean <= 160 && is_aligned) return 192;
    if (mean > 32) return 128;
    if (mean <= 2 && !fm_cuda_leaves_out(FM_VARIANT_EXPERTS_8)) return 8;
    if (mean <= 6 && !fm_cuda_leaves_out(FM_VARIANT_EXPERTS_16)) return 16;
    return mean <= 16 ? 32 : 64;
}

int fm_cuda_fp8_wants_order(int block_rows) { return block_rows >= 128; }

fm_cuda_fp8_tile fm_cuda_fp8_pick(const fm_cuda_fp8_args *a)
{
    if (!a->block) return cheapest(a);
    switch (a->block_rows) {
    case 8: return FM_CUDA_FP8_8X256;
    case 16: return FM_CUDA_FP8_16X256;
    case 32: return FM_CUDA_FP8_32X256;
    case 64: return FM_CUDA_FP8_64X128;
    case 128: return suits_tokens(a) ? FM_CUDA_FP8_128X256 : FM_CUDA_FP8_128X128;
    default: return FM_CUDA_FP8_192X128;
    }
}

fm_status fm_cuda_fp8(const fm_cuda_fp8_args *a, fm_stream stream)
{
    return fm_cuda_fp8_by(a, fm_cuda_fp8_pick(a), stream);
}
