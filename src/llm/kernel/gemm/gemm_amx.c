/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 16 rows x 32 outputs in the five tiles of tiles_amx.h, 32 k at a time:
 *
 *              w0  w1
 *         x    c0  c1
 *
 * Two products take 32 cycles and read 3 KB, more than L2 delivers in that time.  So several
 * blocks of rows multiply a panel slice by slice of k (cache blocking): the weights of a slice
 * stay in L1, partial sums are kept in c, and only rows of x come from L2.
 *
 * The last rows, fewer than 16, are covered by a block that begins 16 rows before the end and
 * computes some rows again; a product of fewer than 16 rows is one lower block.  A row's sum runs
 * over k in the same steps in each, so its bits are the same too. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/gemm/listener_amx.h"
#include "llm/kernel/tiles_amx.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS  = FM__TILE_ROWS, /* of a block */
    LINE  = 64,
    DEPTH = 32,                   /* k of a product */
    STEP  = DEPTH * FM_PANEL * 2, /* bytes of w that two products need */
    PART  = FM__TILE_SLICE,       /* k of rows that are gathered at once */
    SLICE = 2 * PART,             /* its weights and a block's sums fit into L1 */
    AHEAD = 4 * STEP,             /* bytes between reading and prefetching */
};

/* What is prefetched into L2 meanwhile: `lines` cache lines with each step. */
typedef struct {
    const char *from;
    int         lines;
} prefetch;

static inline void prefetch_some(prefetch *e)
{
    for (int i = 0; i < e->lines; i++, e->from += LINE) _mm_prefetch(e->from, _MM_HINT_T1);
}

static void clear_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
}

static void load_sums(const float *c)
{
    _tile_loadd(0, c, FM_PANEL * 4);
    _tile_loadd(1, c + FM__HALF, FM_PANEL * 4);
}

static void store_sums(float *c)
{
    _tile_stored(0, c, FM_PANEL * 4);
    _tile_stored(1, c + FM__HALF, FM_PANEL * 4);
}

typedef void add_fn(const char *x, long stride, const char *w);

static inline void add_rows(const char *x, long stride, const char *w)
{
    fm__add_to(0, x, stride, w);
}

/* Sums += x w over k; both begin there. */
INLINE void add_steps(add_fn *add, fm__tile_source x, const char *w, int k, prefetch *e)
{
    fm__memory_is_written();
    for (int p = 0; p < k; p += DEPTH, w += STEP) {
        add(x.base + p * 2, x.stride, w);
        prefetch_some(e);
    }
}

/* The sums of `rows` rows += x w over k in [from, from + k), at most a part; w begins there. */
static void add_part(const void *const *x, int rows, int from, const char *w, int k, prefetch *e)
{
    fm__gathered g;
    add_steps(add_rows, fm__tile_rows(&g, x, rows, from, k), w, k, e);
}

/* A block's slice, whose weights begin at w: its rows pass by, unless they have to be gathered. */
static void add_slice(const void *const *x, int even, int from, const char *w, int k, prefetch *e)
{
    if (even || fm__evenly_spaced(x, ROWS)) {
        add_steps(fm__add_passing, fm__even_rows(x, ROWS, from), w, k, e);
        return;
    }
    for (int p = 0; p < k; p += PART)
        add_part(x, ROWS, from + p, w + (size_t)p * FM_PANEL * 2, fm__least(PART, k - p), e);
}

/* Whole blocks, at least two; the next slice is fetched while they pass this one.  A panel of
 * one part is attention's, which has just packed it. */
static void many_blocks(float *c, const void *const *x, int n_block, const char *w, int k,
                        const fm__listener *l)
{
    const int lines = k > PART ? (STEP / LINE + n_block - 1) / n_block : 0;
    const int even  = fm__evenly_spaced(x, n_block * ROWS); /* mostly, and then asked only once */
    for (int p = 0; p < k; p += SLICE) {
        const int   n    = fm__least(SLICE, k - p);
        const char *here = w + (size_t)p * FM_PANEL * 2;
        prefetch      e    = {here + (size_t)n * FM_PANEL * 2, lines};
        for (int b = 0; b < n_block; b++) {
            float *sum = c + (size_t)b * ROWS * FM_PANEL;
            if (p) load_sums(sum);
            else clear_sums();
            add_slice(x + b * ROWS, even, p, here, n, &e);
            store_sums(sum);
            if (p + n == k && b > 0) fm__tell(l, (b - 1) * ROWS, ROWS); /* its stores are through */
        }
    }
    fm__tell(l, (n_block - 1) * ROWS, ROWS);
}

/* Where the block of the rows from i on of m begins, and how high it is. */
typedef struct {
    int at, rows;
} block;

static block block_of(int i, int m)
{
    const int rows = fm__least(ROWS, m);
    return (block){fm__least(i, m - rows), rows};
}

/* The block of the rows from i on of m, over the whole of k. */
static void one_block(float *c, const void *const *x, int i, int m, const char *w, int k)
{
    const block b = block_of(i, m);
    /* What earlier rows met is here already, and so is what attention just packed. */
    const int here = i || (k <= PART && m >= ROWS);
    prefetch    e    = {w + AHEAD, here ? 0 : STEP / LINE};
    clear_sums();
    for (int p = 0; p < k; p += PART)
        add_part(x + b.at, b.rows, p, w + (size_t)p * FM_PANEL * 2, fm__least(PART, k - p), &e);
    store_sums(c + (size_t)b.at * FM_PANEL);
}

static void multiply(float *c, const void *const *x, const char *w, int m, int k,
                     const fm__listener *l)
{
    const int n_block = m / ROWS, done = n_block > 1 ? n_block * ROWS : 0;
    fm__shape_tiles(fm__least(m, ROWS));
    if (done) many_blocks(c, x, n_block, w, k, l);
    for (int i = done; i < m; i += ROWS) {
        one_block(c, x, i, m, w, k);
        fm__tell(l, i, fm__least(m - i, ROWS));
    }
    fm__memory_is_written();
}

void fm__gemm_bf16_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    (void)scale;
    multiply(c, x, w, m, k, &(fm__listener){NULL, NULL});
}

void fm__telling_bf16_amx(float *restrict c, const void *const *restrict x,
                          const float *const *restrict x_scale, const void *restrict w,
                          const float *restrict scale, int m, int k, fm_rows_done *done, void *ctx)
{
    (void)x_scale;
    (void)scale;
    multiply(c, x, w, m, k, &(fm__listener){done, ctx});
}
