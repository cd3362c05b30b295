/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of a step, made on the device: which parts of which rows there are
 * to do, and which tiles of which spans.  One block each; once per step, not
 * per layer. */
#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/ptx/ptx.cuh"

enum { THREADS = 256 };

/* Sum of x over the threads before this one; *total is the sum over all. */
FM_DEVICE int scan(int x, int *total)
{
    __shared__ int sum[THREADS];
    const int      t = threadIdx.x;
    __syncthreads(); /* the last call's readers are done */
    sum[t] = x;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        const int before = t >= step ? sum[t - step] : 0;
        __syncthreads();
        sum[t] += before;
        __syncthreads();
    }
    *total = sum[THREADS - 1];
    return sum[t] - x;
}

FM_DEVICE int divide_up(int x, int by)
{
    return x / by + (x % by > 0);
}

FM_KERNEL(THREADS) plan_units(const fm_mla_rows a)
{
    fm_grid_wait();
    const int n_row = min(*a.n_row, a.max_row);
    int       base = 0, several = 0, total;
    for (int i = threadIdx.x; i < a.n_done; i += THREADS) a.done[i] = 0;
    for (int first = 0; first < n_row; first += THREADS) {
        const int row   = first + threadIdx.x;
        const int keys  = row < n_row ? max(a.n_key[row], 0) : 0;
        const int table = row < n_row ? a.table[row] : 0;
        const int n     = fm_mla_parts(keys, a.part);
        const int unit0 = base + scan(n, &total);
        if (row < n_row) a.unit0[row] = unit0;
        for (int i = 0; i < n && unit0 + i < a.max_unit; i++)
            a.unit[unit0 + i] = {row, i, keys, table};
        base += total;
        scan(n > 1, &total);
        several += total;
    }
    if (threadIdx.x == 0) a.unit0[n_row] = base, a.unit0[n_row + 1] = several;
}

FM_KERNEL(THREADS) plan_tiles(const fm_mla_spans a)
{
    fm_grid_wait();
    const int n_span   = min(*a.n_span, a.max_span);
    int       key_base = 0, tile_base = 0, total;
    for (int first = 0; first < n_span; first += THREADS) {
        const int  s     = first + threadIdx.x;
        const bool there = s < n_span;
        const int  rows  = there ? max(a.span[s].n_row, 0) : 0;
        const int  keys  = rows ? min(a.span[s].pos0 + rows, a.key_end) - a.key_begin : 0;
        const int  tiles = keys > 0 ? divide_up(rows, FM_MLA_TILE_ROWS) : 0;
        const int  key0  = key_base + scan(max(keys, 0), &total);
        key_base += total;
        const int tile0 = tile_base + scan(tiles, &total);
        tile_base += total;
        if (there) a.key0[s] = key0;
        for (int i = 0; i < tiles && tile0 + i < a.max_tile; i++)
            a.tile[tile0 + i] = {s, (tiles - 1 - i) * FM_MLA_TILE_ROWS};
    }
    if (threadIdx.x == 0) a.key0[n_span] = key_base, *a.n_tile = min(tile_base, a.max_tile);
}

extern "C" fm_status fm_cuda_mla_plan(const fm_mla_rows *rows, fm_stream stream)
{
    if (rows->part < 1 || rows->part > FM_MLA_PART_MAX || rows->part % FM_MLA_LATENT_KEYS)
        return fm_fail(FM_E_NOSUP, "attention: parts of %d keys; want a multiple of %d up to %d",
                       rows->part, FM_MLA_LATENT_KEYS, FM_MLA_PART_MAX);
    FM_LAUNCH(plan_units, 1, THREADS, 0, stream, *rows);
    return fm_cuda_launched("mla plan");
}

extern "C" fm_status fm_cuda_mla_tiles(const fm_mla_spans *spans, fm_stream stream)
{
    if (spans->key_begin < 0 || spans->key_begin % FM_MLA_BLOCK_KEYS ||
        spans->key_end % FM_MLA_BLOCK_KEYS)
        return fm_fail(FM_E_NOSUP, "attention: keys %d to %d; want multiples of %d",
                       spans->key_begin, spans->key_end, FM_MLA_BLOCK_KEYS);
    FM_LAUNCH(plan_tiles, 1, THREADS, 0, stream, *spans);
    return fm_cuda_launched("mla tiles");
}
