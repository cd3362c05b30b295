/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel computes a product: by size alone, since all give the same bits.  Times were
 * measured on an H200. */
#include "llm/kernel/cuda/linear/linear.h"
#include "llm/kernel/cuda/variants.h"

enum {
    FEW_ROWS   = 16,
    MORE_ROWS  = 32,
    MOST_ROWS  = 64,
    LONG_K     = 4096,
    HUGE_N     = 65536,
    SMALL      = 5 << 18, /* weights */
};

/* Up to how many rows our tiles are faster than cuBLASLt, which takes 6 us for
 * the smallest product; with more than 32 rows the tiles read the weights again. */
static int most_tile_rows(const fm_cuda_linear_args *a)
{
    const int64_t rows = (int64_t)a->n * a->n_batch;
    const int     fits = rows <= 32 * (int64_t)a->n_sm; /* two tiles for each multiprocessor */
    if (rows * a->k <= SMALL) return MOST_ROWS;
    return (fits && a->k <= LONG_K) || a->n > HUGE_N ? MORE_ROWS : FEW_ROWS;
}

int fm_cuda_linear_wants_lt(const fm_cuda_linear_args *a)
{
    if (a->scale || a->swiglu) return 0;
    return a->m > most_tile_rows(a) || fm_cuda_leaves_out(FM_VARIANT_LINEAR_TILES);
}

static int is_plain(const fm_cuda_linear_args *a)
{
    return !a->scale && !a->by_k && a->n_batch == 1 && !fm_cuda_linear_wants_lt(a);
}

int fm_cuda_linear_suits_two(const fm_cuda_linear_args *a, const fm_cuda_linear_args *b)
{
    return a->m == b->m && a->m <= FEW_ROWS && is_plain(a) && is_plain(b) &&
           !fm_cuda_leaves_out(FM_VARIANT_LINEAR_TWO);
}

/* --- E4M3 weights ------------------------------------------------------------ */

/* A thread block, and the ns it takes for 128 k: alone on its multiprocessor, and beside
 * as many as that holds. */
typedef struct {
    int tokens, rows, cluster, per_sm;
    int one, full;
} tile_price;

enum {
    BLOCK_NS = 1500, /* to begin and to store */
    SPARE    = 16,   /* of so many multiprocessors, clusters of four leave one idle */
};

static const tile_price few_tiles = {32, 32, 1, 1, 270, 270}, more_tiles = {32, 64, 1, 1, 460, 460},
                        tiles = {32, 64, 1, 2, 420, 760};

static const tile_price wide_tiles[] = {
    [FM_CUDA_WIDE_64X64]   = {64, 64, 2, 2, 330, 450},
    [FM_CUDA_WIDE_128X64]  = {128, 64, 4, 1, 400, 400},
    [FM_CUDA_WIDE_64X128]  = {64, 128, 2, 1, 440, 440},
    [FM_CUDA_WIDE_128X128] = {128, 128, 2, 1, 680, 680},
    [FM_CUDA_WIDE_128X256] = {128, 256, 2, 1, 1250, 1250},
};

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t count(const fm_cuda_linear_args *a, const tile_price *t)
{
    return up(a->m, t->tokens) * up(a->n, t->rows * t->cluster) * t->cluster;
}

/* ns */
static int64_t price(const fm_cuda_linear_args *a, const tile_price *t)
{
    const int64_t n_sm = a->n_sm - (t->cluster > 2 ? a->n_sm / SPARE : 0);
    const int64_t n = count(a, t), round = t->per_sm * n_sm, last = n % round;
    const int64_t steps = up(a->k, 128), full = steps * t->full + BLOCK_NS;
    return n / round * full + (last == 0 ? 0 : last <= n_sm ? steps * t->one + BLOCK_NS : full);
}

static int64_t price_of_tiles(const fm_cuda_linear_args *a)
{
    if (count(a, &tiles) >= 2 * a->n_sm) return price(a, &tiles);
    return price(a, count(a, &few_tiles) <= a->n_sm ? &few_tiles : &more_tiles);
}

static int is_left_out(fm_cuda_wide w)
{
    return w == FM_CUDA_WIDE_128X256 && fm_cuda_leaves_out(FM_VARIANT_LINEAR_128X256);
}

int fm_cuda_linear_wants_wide(const fm_cuda_linear_args *a, fm_cuda_wide *out)
{
    if (!a->scale || a->m <= MORE_ROWS) return 0;
    int64_t least = price_of_tiles(a);
    int     found = 0;
    for (int i = 0; i < FM_CUDA_N_WIDE; i++) {
        const int64_t p = price(a, &wide_tiles[i]);
        if (p >= least || is_left_out((fm_cuda_wide)i)) continue;
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
