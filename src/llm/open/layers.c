/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/open/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "llm/kernel/gemm/gemm.h"

/* As panels; INT4's scales are among its bytes. */
static double matrix_bytes(const fm_matrix *m)
{
    return (double)m->n * (double)fm_panel_bytes(m->dtype, m->k) / FM_PANEL;
}

static double cost_of(const double *price, const fm_matrix *m)
{
    return matrix_bytes(m) * price[m->dtype];
}

static double mlp_cost(const double *price, const fm_mlp_weights *m)
{
    return cost_of(price, &m->gate_up) + cost_of(price, &m->down);
}

/* Expected share of the experts that n_row rows use, if each has top_k random ones. */
static double share_touched(const fm_model_config *c, int n_row)
{
    return 1 - pow(1 - (double)c->top_k / c->n_expert, n_row);
}

/* --- prices ---------------------------------------------------------------- */

enum { BLOCK_BYTES = 8 << 20, TRIAL_K = 1024, TILE_ROWS = 64, TRIALS = 3 };

/* Kernel inputs for trials; the numbers do not matter, but none is subnormal. */
typedef struct {
    char  *weights; /* [BLOCK_BYTES] panels of TRIAL_K */
    float *scale, *x, *tile;
} bench_block;

static fm_status make_block(bench_block *b)
{
    const size_t n_scale = (size_t)fm_panel_scales(TRIAL_K);
    *b = (bench_block){.weights = aligned_alloc(64, BLOCK_BYTES),
                       .scale   = malloc(n_scale * sizeof *b->scale),
                       .x       = aligned_alloc(64, (size_t)TILE_ROWS * TRIAL_K * sizeof *b->x),
                       .tile    = aligned_alloc(64, (size_t)TILE_ROWS * FM_PANEL * sizeof *b->tile)};
    if (!b->weights || !b->scale || !b->x || !b->tile) return fm_fail(FM_E_OOM, "timing of layers");
    memset(b->weights, 0x3c, BLOCK_BYTES);
    memset(b->x, 0x3c, (size_t)TILE_ROWS * TRIAL_K * sizeof *b->x);
    for (size_t i = 0; i < n_scale; i++) b->scale[i] = 1;
    return FM_OK;
}

static void free_block(bench_block *b)
{
    free(b->weights);
    free(b->scale);
    free(b->x);
    free(b->tile);
}

/* Seconds to apply all of the block to n_row rows, the best of a few. */
static double try_tile(const bench_block *b, fm_dtype type, int n_row)
{
    fm_gemm_fn  *gemm  = fm_gemm_for(fm_gemm_pick(), type);
    const size_t panel = fm_panel_bytes(type, TRIAL_K);
    const void  *x[TILE_ROWS];
    double       best = INFINITY;
    for (int i = 0; i < TILE_ROWS; i++) x[i] = b->x + (size_t)i * TRIAL_K;
    for (int trial = 0; trial < TRIALS; trial++) {
        const double began = fm_now();
        for (size_t at = 0; at + panel <= BLOCK_BYTES; at += panel)
            gemm(b->tile, x, b->weights + at, b->scale, n_row, TRIAL_K);
        const double took = fm_now() - began;
        if (took < best) best = took;
    }
    return best;
}

/* Per byte; more rows than a tile has are several tiles. */
static double price_of(const bench_block *b, fm_dtype type, int n_row)
{
    const int rows = n_row < 1 ? 1 : n_row < TILE_ROWS ? n_row : TILE_ROWS;
    return try_tile(b, type, rows) / BLOCK_BYTES * (n_row > rows ? (double)n_row / rows : 1);
}

fm__prices fm__prices_of_bytes(void)
{
    fm__prices p;
    for (int t = 0; t < FM__N_DTYPE; t++) p.dense[t] = p.expert[t] = 1;
    return p;
}

fm_status fm__prices_measure(fm__prices *out, const fm_model_config *c, fm_dtype act, int n_row)
{
    const double touched = c->n_expert ? share_touched(c, n_row) * c->n_expert : 1;
    const int    each    = c->n_expert ? (int)ceil(n_row * (double)c->top_k / touched) : n_row;
    bench_block  b;
    const fm_status rc = make_block(&b);
    *out               = fm__prices_of_bytes();
    for (int t = 0; rc == FM_OK && t < FM__N_DTYPE; t++) {
        const int quantised = (t == FM_FP8 && c->fp8) || (t == FM_INT4 && c->int4);
        if (t != (int)act && !(quantised && act == FM_BF16)) continue;
        out->dense[t]  = price_of(&b, (fm_dtype)t, n_row);
        out->expert[t] = price_of(&b, (fm_dtype)t, each);
    }
    free_block(&b);
    return rc;
}

/* --- layers ---------------------------------------------------------------- */

static double layer_cost(const fm__layer_costs *c, const fm_layer_weights *w)
{
    const fm_attn_weights *a     = &w->attn;
    const double          *price = c->price->dense;
    double sum = cost_of(price, &a->q_down) + cost_of(price, &a->q_up) + cost_of(price, &a->kv_down) +
                 cost_of(price, &a->out) + mlp_cost(price, &w->ffn.mlp);
    const fm_range head = fm_shard_heads(c->shard, c->config);
    for (int h = 0; h < fm_range_len(head); h++)
        sum += cost_of(price, &a->k_up_t[h]) + cost_of(price, &a->v_up[h]);
    if (!w->ffn.is_moe) return sum;
    double experts = 0; /* those of other ranks are empty and cost nothing */
    for (int i = 0; i < c->config->n_expert; i++)
        experts += mlp_cost(c->price->expert, &w->ffn.expert[i]);
    return sum + cost_of(price, &w->ffn.router) + experts * share_touched(c->config, c->n_row);
}

fm_status fm__cut_by_cost(fm_range *stage, int n_stage, const fm__layer_costs *c)
{
    const int  n    = c->config->n_layer;
    fm_slab    none = {0};
    fm_weights w    = {0};
    double    *cost = malloc((size_t)n * sizeof *cost);
    if (!cost) return fm_fail(FM_E_OOM, "costs of layers");
    const fm_weights_want want = {.shard    = c->shard,
                                  .act      = c->types->act,
                                  .dtype_of = fm_source_dtype_of,
                                  .ctx      = c->types};
    const fm_status       rc   = fm_weights_layout(&w, c->config, &want, &none);
    if (rc == FM_OK) {
        for (int l = 0; l < n; l++) cost[l] = layer_cost(c, &w.layer[l]);
        fm_layout_cut_layers(stage, n_stage, cost, n, 0, cost_of(c->price->dense, &w.head));
    }
    fm_weights_fini(&w);
    free(cost);
    return rc;
}
