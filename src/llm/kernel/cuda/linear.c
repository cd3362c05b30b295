/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel computes a product.  None of this moves a bit; the numbers are
 * what an H200 measured. */
#include "llm/kernel/cuda/linear.h"

enum {
    FEW_ROWS  = 16,
    MORE_ROWS = 32,
    MOST_ROWS = 64,
    LONG_K    = 4096,
    HUGE_N    = 65536,
    SMALL     = 5 << 18, /* weights */
};

/* Up to how many rows our tiles are faster than cuBLASLt, which takes 6 us for
 * the smallest product; with more than 32 rows the tiles read the weights again. */
static int most_tile_rows(const fm_cuda_linear_args *a)
{
    const int64_t rows = (int64_t)a->n * a->n_batch;
    const int     fits = rows <= 16 * (int64_t)a->n_sm; /* a tile for each multiprocessor */
    if (rows * a->k <= SMALL) return MOST_ROWS;
    return (fits && a->k <= LONG_K) || a->n > HUGE_N ? MORE_ROWS : FEW_ROWS;
}

int fm_cuda_linear_wants_lt(const fm_cuda_linear_args *a)
{
    return !a->scale && !a->swiglu && a->m > most_tile_rows(a);
}

/* --- E4M3 weights ------------------------------------------------------------ */

/* What 128 k of one round of thread blocks take, in units of 73 ns: with one on
 * each multiprocessor, and with as many as it holds. */
typedef struct {
    int tokens, rows, per_sm; /* of a thread block; on a multiprocessor */
    int one, full;
} tile_price;

static const tile_price few_tiles = {32, 32, 2, 5, 7}, tiles = {32, 64, 2, 7, 10};

static const tile_price wide_tiles[] = {
    [FM_CUDA_WIDE_64X128]  = {64, 128, 2, 16, 26},
    [FM_CUDA_WIDE_128X256] = {128, 256, 1, 33, 33},
};

static int64_t count(const fm_cuda_linear_args *a, const tile_price *t)
{
    return (int64_t)((a->m + t->tokens - 1) / t->tokens) * ((a->n + t->rows - 1) / t->rows);
}

static int64_t price(const fm_cuda_linear_args *a, const tile_price *t)
{
    const int64_t n = count(a, t), round = (int64_t)t->per_sm * a->n_sm, last = n % round;
    return n / round * t->full + (last == 0 ? 0 : last <= a->n_sm ? t->one : t->full);
}

static int64_t price_of_tiles(const fm_cuda_linear_args *a)
{
    const int is_few = count(a, &few_tiles) <= (int64_t)few_tiles.per_sm * a->n_sm;
    return price(a, is_few ? &few_tiles : &tiles);
}

int fm_cuda_linear_wants_wide(const fm_cuda_linear_args *a, fm_cuda_wide *out)
{
    if (!a->scale || a->swiglu || a->m <= MORE_ROWS) return 0;
    int64_t least = price_of_tiles(a);
    int     found = 0;
    for (int i = 0; i < FM_CUDA_N_WIDE; i++) {
        const int64_t p = price(a, &wide_tiles[i]);
        if (p > least || (found && p == least)) continue;
        least = p;
        *out  = (fm_cuda_wide)i;
        found = 1;
    }
    return found;
}

fm_status fm_cuda_linear(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    fm_cuda_wide wide;
    if (fm_cuda_linear_wants_lt(a)) {
        const fm_status rc = fm_cuda_lt_run(lt, a, stream);
        if (rc != FM_E_NOSUP) return rc;
    }
    if (fm_cuda_linear_wants_wide(a, &wide)) return fm_cuda_linear_wide(a, wide, stream);
    return fm_cuda_linear_tiles(a, stream);
}
