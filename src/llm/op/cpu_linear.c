/* SPDX-License-Identifier: Apache-2.0 */
/* y = x W^T.  Work is divided by output: a unit is one panel of W over a group
 * of rows, so no sum is ever split and the thread count changes no bit. */
#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu_internal.h"

enum { ROW_GROUP = 256 }; /* rows whose inputs stay in a core's cache while panels pass */

typedef struct {
    const fm_cpu    *b;
    const char      *x; /* first row */
    size_t           x_row; /* bytes between rows */
    int              n_row;
    const fm_matrix *w;
} product;

typedef enum { STORE_F32, STORE_ACT, SWIGLU_ACT } ending;

static void put_tile(const product *p, ending e, void *y, int ld, int row, int panel, const float *c,
                     int m)
{
    const int      col = panel * (e == SWIGLU_ACT ? FM_PANEL / 2 : FM_PANEL);
    const int      n   = fm__min(p->w->n - panel * FM_PANEL, FM_PANEL);
    const size_t   at  = (size_t)row * (size_t)ld + (size_t)col;
    const fm_cpu  *b   = p->b;
    if (e == SWIGLU_ACT) fm_tile_swiglu((char *)y + at * b->act_bytes, b->act, (size_t)ld, c, m);
    if (e == STORE_ACT) fm_tile_store((char *)y + at * b->act_bytes, b->act, (size_t)ld, c, m, n);
    for (int i = 0; i < m && e == STORE_F32; i++, c += FM_PANEL)
        memcpy((float *)y + at + (size_t)i * (size_t)ld, c, (size_t)n * sizeof *c);
}

static void one_unit(const product *p, ending e, void *y, int ld, int group, int panel)
{
    const int last = fm__min((group + 1) * ROW_GROUP, p->n_row);
    float     tile[FM_TILE_ROWS * FM_PANEL] __attribute__((aligned(64)));
    for (int row = group * ROW_GROUP; row < last; row += FM_TILE_ROWS) {
        const int   m = fm__min(last - row, FM_TILE_ROWS);
        const void *x[FM_TILE_ROWS];
        for (int i = 0; i < m; i++) x[i] = p->x + (size_t)(row + i) * p->x_row;
        fm__panel(p->b, tile, x, p->w, panel, m);
        put_tile(p, e, y, ld, row, panel, tile, m);
    }
}

static void multiply(const product *p, ending e, void *y, int ld)
{
    const int n_panel = fm__panels(p->w), n_group = (p->n_row + ROW_GROUP - 1) / ROW_GROUP;
#pragma omp parallel for schedule(dynamic, 2) num_threads(p->b->n_thread)
    for (int u = 0; u < n_group * n_panel; u++) one_unit(p, e, y, ld, u / n_panel, u % n_panel);
}

static product product_of(const fm_cpu *b, fm_act x, const fm_matrix *w, int row0, int n_row)
{
    FM_BUG_UNLESS(x.width == w->k);
    return (product){b, fm__act_at(b, x, row0), (size_t)x.width * b->act_bytes, n_row, w};
}

void fm__cpu_linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    const product p = product_of(fm__cpu(r), x, w, 0, n_row);
    multiply(&p, STORE_F32, y.data, y.width);
}

void fm__cpu_linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row)
{
    const product p = product_of(fm__cpu(r), x, w, 0, n_row);
    multiply(&p, STORE_ACT, y.data, y.width);
}

static void start_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w, int row, int n)
{
    fm_cpu       *b    = fm__cpu(r);
    fm_exchange  *x    = &b->exchange;
    fm_comm      *attn = r->ranks.attn;
    void         *own  = b->mlp_middle;
    const product up   = product_of(b, h, &w->gate_up, row, n);
    x->mlp.col.n       = w->inter;
    x->mlp.n_row       = n;
    x->mlp_weights     = w;
    x->mlp_y           = (fm_f32s){y.data + (size_t)row * (size_t)y.width, y.width};
    if (attn->n_rank > 1) own = fm__own_piece(&x->mlp, x->mlp_room, attn->rank, n);
    multiply(&up, SWIGLU_ACT, own, w->gate_up.n / 2);
    if (attn->n_rank > 1) fm__start_gather(r, &x->mlp, attn, own, n);
}

void fm__finish_mlp(fm_run *r)
{
    fm_cpu               *b = fm__cpu(r);
    fm_exchange          *x = &b->exchange;
    const fm_mlp_weights *w = x->mlp_weights;
    if (!w) return;
    x->mlp_weights = NULL;
    if (r->ranks.attn->n_rank > 1 && !fm__finish_gather(r, &x->mlp, b->mlp_middle)) return;
    const fm_act  mid  = {b->mlp_middle, w->inter};
    const product down = product_of(b, mid, &w->down, 0, x->mlp.n_row);
    multiply(&down, STORE_F32, x->mlp_y.data, x->mlp_y.width);
}

/* y = W2 (silu(W1 h) * W3 h), a pass of rows at a time through the middle.
 * Ranks that divide the channels gather the middle; that of the last pass is
 * under way while the caller goes on. */
void fm__cpu_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w)
{
    for (int row = 0; row < r->batch->n_row; row += FM_PASS_ROWS) {
        fm__finish_mlp(r);
        start_mlp(r, y, h, w, row, fm__min(r->batch->n_row - row, FM_PASS_ROWS));
    }
    if (r->ranks.attn->n_rank == 1) fm__finish_mlp(r);
}
