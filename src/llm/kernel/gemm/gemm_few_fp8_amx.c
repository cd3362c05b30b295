/* SPDX-License-Identifier: Apache-2.0 */
/* Up to 4 rows times FP8 panels whose weights count as BF16 numbers, on AMX tiles: each 128 k of a
 * panel are widened while those before them are multiplied. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_few.h"
#include "llm/kernel/gemm/widen_vbmi.h"
#include "llm/kernel/tiles_amx.h"

enum {
    DEPTH    = 32,          /* k of a product */
    SLICE    = FM__SCALE_K, /* k that are widened at once */
    WIDE     = SLICE * FM_PANEL * 2,
    MOST_K   = 512,         /* whose magnitudes are kept from panel to panel */
    LINE     = 64,
    PREFETCH = 16384, /* bytes between widening and prefetching */
};

/* The slices of all panels, one after the other; slice i lies at wide[i % 2]. */
typedef struct {
    const char        *panel;
    const float       *scale;
    const void *const *x;
    float             *c;
    int                m, k, n_slice; /* of a panel */
    fm__magnitudes     kept[MOST_K / SLICE];
    _Alignas(64) char  wide[2][WIDE];
} product;

static inline int depth_of(const product *p, int slice)
{
    return fm__least(SLICE, p->k - slice % p->n_slice * SLICE);
}

static inline fm__magnitudes magnitudes_of(product *p, int slice)
{
    const int s = slice % p->n_slice;
    if (s >= MOST_K / SLICE) return fm__scaled_magnitudes(p->scale[s * 2]);
    if (slice == s) p->kept[s] = fm__scaled_magnitudes(p->scale[s * 2]);
    return p->kept[s];
}

static void widen(product *p, int slice)
{
    const fm__magnitudes t  = magnitudes_of(p, slice);
    const size_t         at = (size_t)(slice / p->n_slice) * (size_t)p->k +
                      (size_t)(slice % p->n_slice) * SLICE;
    const char *from = p->panel + at * FM_PANEL;
    char       *to   = p->wide[slice % 2];
    for (int q = depth_of(p, slice) / 2; q; q--, from += LINE, to += 2 * LINE) {
        fm__fetch_soon(from + PREFETCH);
        fm__put_pair_row(to, fm__look_up(t, _mm512_loadu_si512(from)));
    }
}

static void multiply_slice(const product *p, int slice)
{
    const int             n = depth_of(p, slice), from = slice % p->n_slice * SLICE;
    fm__gathered          g;
    const fm__tile_source x = fm__tile_rows(&g, p->x, p->m, from, n);
    if (!from) fm__clear_pair(0);
    fm__memory_is_written();
    for (int q = 0; q < n; q += DEPTH)
        fm__add_to(0, x.base + q * 2, x.stride, p->wide[slice % 2] + q * FM_PANEL * 2);
    if (from + n == p->k)
        fm__store_pair(0, p->c + (size_t)(slice / p->n_slice * p->m) * FM_PANEL);
}

void fm__gemm_few_fp8_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                          const float *restrict scale, int n_panel, int m, int k)
{
    product p; /* neither kept nor wide is cleared */
    p.panel = w, p.scale = scale, p.x = x, p.c = c, p.m = m, p.k = k;
    p.n_slice       = (k + SLICE - 1) / SLICE;
    const int n_all = n_panel * p.n_slice;
    fm__shape_tiles(m);
    widen(&p, 0);
    for (int i = 0; i < n_all; i++) {
        if (i + 1 < n_all) widen(&p, i + 1);
        multiply_slice(&p, i);
    }
    fm__memory_is_written();
}
