/* SPDX-License-Identifier: Apache-2.0 */
/* The logits of a link, from the head in bytes (kernel/draft_head).  A thread multiplies the same
 * panels in every link of a chain, so that a small head stays in its core's cache. */
#include <omp.h>

#include "llm/op/cpu/cpu_internal.h"

enum { PANELS = 4, ROWS = FM_TILE_ROWS / PANELS }; /* of a tile */

static int n_panel(const fm_model_config *c, const fm_shard *s)
{
    return (fm_range_len(fm_shard_outputs(s->attn, c->vocab)) + FM_PANEL - 1) / FM_PANEL;
}

void fm__carve_draft_head(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                          const fm_run_limits *lim, fm_slab *s)
{
    const size_t n = (size_t)n_panel(c, shard);
    if (!lim->draft_head || !fm_draft_head_pick()) return;
    b->draft_head.k     = c->hidden;
    b->draft_head.panel = fm_slab_take(s, n * fm_draft_panel_bytes(c->hidden));
    b->draft_head.words = fm_slab_take(s, n * sizeof *b->draft_head.words);
    b->draft_row        = fm_slab_take(s, (size_t)lim->max_out * (size_t)c->hidden);
    b->draft_scale      = fm_slab_take(s, (size_t)lim->max_out * sizeof *b->draft_scale);
}

void fm__fill_draft_head(fm_run *r)
{
    fm_cpu          *b    = fm__cpu(r);
    const fm_matrix *head = &r->weights->head;
    if (!b->draft_head.panel) return;
    FM_BUG_UNLESS(head->dtype == FM_BF16 && head->k == b->draft_head.k);
#pragma omp parallel for schedule(static, PANELS) num_threads(b->n_thread)
    for (int i = 0; i < fm__panels(head); i++)
        fm_draft_head_pack(&b->draft_head, i, fm__panel_data(head, i));
}

/* Panels [first, first + n) of rows [row0, row0 + m). */
static void multiply(const fm_cpu *b, fm_f32s y, int first, int n, int row0, int m)
{
    float          tile[FM_TILE_ROWS * FM_PANEL] __attribute__((aligned(64)));
    const uint8_t *q[ROWS];
    for (int i = 0; i < m; i++) q[i] = b->draft_row + (size_t)(row0 + i) * (size_t)b->draft_head.k;
    fm_draft_head_pick()(tile, q, b->draft_scale + row0, &b->draft_head, first, n, m);
    for (int p = 0; p < n; p++) {
        const int at = (first + p) * FM_PANEL, width = fm__min(y.width - at, FM_PANEL);
        for (int i = 0; i < m; i++)
            memcpy(y.data + (size_t)(row0 + i) * (size_t)y.width + (size_t)at,
                   tile + (p * m + i) * FM_PANEL, (size_t)width * sizeof *tile);
    }
}

void fm__cpu_linear_draft(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w)
{
    const fm_cpu *b = fm__cpu(r);
    const int     n = r->batch->n_out, n_all = fm__panels(w);
    if (!b->draft_head.panel) {
        fm__cpu_linear_f32(r, y, x, w, n);
        return;
    }
#pragma omp parallel num_threads(b->n_thread)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++)
            b->draft_scale[i] =
                fm_draft_head_row(b->draft_row + (size_t)i * (size_t)w->k,
                                  (const fm_bf16 *)(const void *)fm__act_at(b, x, i), w->k);
#pragma omp for schedule(static)
        for (int p = 0; p < (n_all + PANELS - 1) / PANELS; p++)
            for (int row = 0; row < n; row += ROWS)
                multiply(b, y, p * PANELS, fm__min(PANELS, n_all - p * PANELS), row,
                         fm__min(ROWS, n - row));
    }
}
