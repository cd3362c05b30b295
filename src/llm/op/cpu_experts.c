/* SPDX-License-Identifier: Apache-2.0 */
/* Routed experts as a grouped product.
 *
 *     (row, slot) pairs ──sorted by expert──> blocks of up to 64 pairs
 *     phase 1   middle[pair]   = silu(W1 h[row]) * W3 h[row]     unit: block x panel
 *     phase 2   pair_out[pair] = W2 middle[pair]                 unit: block x panel
 *     phase 3   y[row]       (+)= sum over slots, in slot order, of weight * pair_out
 *
 * A pair's answer does not depend on how many pairs its expert received. */
#include <omp.h>

#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu_internal.h"

/* Counting sort of the pass's pairs by expert; returns the number of blocks. */
static int group_pairs(fm_cpu *b, const fm_model_config *c, const int32_t *expert, int n_row)
{
    const int n_pair = n_row * c->top_k;
    memset(b->count, 0, ((size_t)c->n_expert + 1) * sizeof *b->count);
    for (int i = 0; i < n_pair; i++) b->count[expert[i] + 1]++;
    int n_block = 0;
    for (int e = 0; e < c->n_expert; e++) {
        const int n = b->count[e + 1], first = b->count[e];
        for (int at = 0; at < n; at += FM_TILE_ROWS)
            b->block[n_block++] = (fm_expert_block){e, first + at, fm__min(n - at, FM_TILE_ROWS)};
        b->count[e + 1] += first;
    }
    for (int i = 0; i < n_pair; i++) {
        const int pair    = b->count[expert[i]]++;
        b->pair_row[pair] = i / c->top_k;
        b->pair_of[i]     = pair;
    }
    return n_block;
}

static void gate_up_unit(const fm_cpu *b, const fm_expert_block *k, const fm_mlp_weights *w,
                         fm_act h, int row0, int panel)
{
    float       tile[FM_TILE_ROWS * FM_PANEL] __attribute__((aligned(64)));
    const void *x[FM_TILE_ROWS];
    for (int i = 0; i < k->n; i++) x[i] = fm__act_at(b, h, row0 + b->pair_row[k->pair0 + i]);
    fm__panel(b, tile, x, &w->gate_up, panel, k->n);
    const size_t at = (size_t)k->pair0 * (size_t)w->inter + (size_t)panel * (FM_PANEL / 2);
    fm_tile_swiglu((char *)b->middle + at * b->act_bytes, b->act, (size_t)w->inter, tile, k->n);
}

static void down_unit(const fm_cpu *b, const fm_expert_block *k, const fm_mlp_weights *w, int panel)
{
    float       tile[FM_TILE_ROWS * FM_PANEL] __attribute__((aligned(64)));
    const void *x[FM_TILE_ROWS];
    const int   D = w->down.n;
    for (int i = 0; i < k->n; i++)
        x[i] = (char *)b->middle + (size_t)(k->pair0 + i) * (size_t)w->inter * b->act_bytes;
    fm__panel(b, tile, x, &w->down, panel, k->n);
    for (int i = 0; i < k->n; i++)
        memcpy(b->pair_out + (size_t)(k->pair0 + i) * (size_t)D + (size_t)panel * FM_PANEL,
               tile + i * FM_PANEL, FM_PANEL * sizeof(float));
}

/* The sum is complete before it meets what y had. */
static void combine_row(const fm_cpu *b, float *y, int D, const float *weight, int top_k, int row,
                        float *sum)
{
    memset(sum, 0, (size_t)D * sizeof *sum);
    for (int slot = 0; slot < top_k; slot++) {
        const size_t pair = (size_t)b->pair_of[row * top_k + slot];
        fm_row_scale_add(sum, b->pair_out + pair * (size_t)D, weight[slot], D);
    }
    if (sum != y) fm_row_add(y, sum, D);
}

static void one_pass(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                     int accumulate, int row0, int n_row)
{
    fm_cpu       *b       = fm__cpu(r);
    const int     k       = r->config->top_k;
    const size_t  at      = (size_t)row0 * (size_t)k;
    const int     n_block = group_pairs(b, r->config, rt.expert + at, n_row);
    const int     up      = fm__panels(&expert->gate_up), down = fm__panels(&expert->down);
#pragma omp parallel num_threads(b->n_thread)
    {
#pragma omp for schedule(dynamic, 2)
        for (int u = 0; u < n_block * up; u++) {
            const fm_expert_block *blk = &b->block[u / up];
            gate_up_unit(b, blk, &expert[blk->expert], h, row0, u % up);
        }
#pragma omp for schedule(dynamic, 2)
        for (int u = 0; u < n_block * down; u++) {
            const fm_expert_block *blk = &b->block[u / down];
            down_unit(b, blk, &expert[blk->expert], u % down);
        }
#pragma omp for schedule(static)
        for (int i = 0; i < n_row; i++) {
            float *to = y.data + (size_t)(row0 + i) * (size_t)y.width;
            combine_row(b, to, y.width, rt.weight + at + (size_t)i * (size_t)k, k, i,
                        accumulate ? b->scratch[omp_get_thread_num()].row : to);
        }
    }
}

void fm__cpu_experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                     int accumulate)
{
    for (int row = 0; row < r->batch->n_row; row += FM_PASS_ROWS)
        one_pass(r, y, h, rt, expert, accumulate, row,
                 fm__min(r->batch->n_row - row, FM_PASS_ROWS));
}
