/* SPDX-License-Identifier: Apache-2.0 */
/* y = x W^T.  Work is divided by output: a unit is one panel of W over a group
 * of rows, so no sum is ever split and the thread count changes no bit. */
#include "llm/op/cpu/cpu_internal.h"

typedef struct {
    const fm_cpu    *b;
    fm_quantised     x;
    int              n_row, per_group;
    const fm_matrix *w;
} product;

typedef enum { STORE_F32, STORE_ACT, SWIGLU_ACT } ending;

/* Where a tile goes: row 0 of it, and the bytes of a row and between rows. */
typedef struct {
    char  *at;
    size_t bytes, stride;
} place;

static place place_of(const product *p, ending e, void *y, int ld, int row, int panel)
{
    const int    half = e == SWIGLU_ACT ? 2 : 1, n = fm__min(p->w->n - panel * FM_PANEL, FM_PANEL);
    const size_t each = e == STORE_F32 ? sizeof(float) : p->b->act_bytes;
    const size_t at   = (size_t)row * (size_t)ld + (size_t)(panel * FM_PANEL / half);
    return (place){(char *)y + at * each, (size_t)(n / half) * each, (size_t)ld * each};
}

/* Whole rows of a tile that go past the caches. */
static int goes_far(const product *p, ending e, place y)
{
    const size_t whole = FM_PANEL * (e == STORE_F32 ? sizeof(float) : p->b->act_bytes);
    return e != SWIGLU_ACT && y.bytes == whole && fm__is_far(p->b, (size_t)p->n_row * y.stride);
}

typedef struct {
    const product *p;
    ending         e;
    size_t         stride;
    fm_outlet      out;
} unit;

static void go_to_panel(unit *u, place to)
{
    u->stride    = to.stride;
    u->out.bytes = to.bytes;
    u->out.far   = goes_far(u->p, u->e, to);
    for (int i = 0; i < u->out.m; i++) u->out.to[i] = to.at + (size_t)i * to.stride;
}

static void put_rows(void *ctx, int from, int n)
{
    const unit      *u  = ctx;
    const fm_cpu    *b  = u->p->b;
    const fm_outlet *o  = &u->out;
    const float     *c  = o->tile + from * FM_PANEL;
    void *const     *to = o->to + from;
    const size_t     ld = u->stride / b->act_bytes;
    const int        n_out = (int)(o->bytes / b->act_bytes);
    fm__expect_rows(o, from + o->ahead, n);
    if (u->e == STORE_F32) fm__put_f32(o, from, n);
    else if (u->e == SWIGLU_ACT) fm_tile_swiglu(to[0], b->act, ld, c, n);
    else if (o->far) fm_tile_scatter(to, b->act, c, n);
    else fm_tile_store(to[0], b->act, ld, c, n, n_out);
}

static void multiply_panel(unit *u, float *tile, const void *const *x, const float *const *x_scale,
                           int panel)
{
    const product *p = u->p;
    fm__panel_to(p->b, &u->out, tile, x, p->x.scale ? x_scale : NULL, p->w, panel, put_rows, u);
}

/* Neighbouring panels times a group of rows. */
static void one_unit(const product *p, ending e, void *y, int ld, int group, fm_range panel)
{
    const int    row = group * p->per_group, m = fm__min(p->n_row - row, p->per_group);
    const int    together = fm__panels_together(p->b, p->w, m);
    float        tile[FM_TILE_ROWS * FM_PANEL] __attribute__((aligned(64)));
    const void  *x[FM_TILE_ROWS];
    const float *x_scale[FM_TILE_ROWS];
    unit         u;
    u.p = p, u.e = e, u.out.m = m;
    for (int i = 0; i < m; i++) {
        x[i] = p->x.data + (size_t)(row + i) * p->x.stride;
        if (p->x.scale) x_scale[i] = fm__scale_of_row(p->x.scale, p->w->k, row + i);
    }
    for (int first = panel.begin; first < panel.end; first += together) {
        const int n = fm__min(together, panel.end - first);
        const int is_made = fm__multiply_few(p->b, tile, x, p->w, first, n, m);
        for (int i = 0; i < n; i++) {
            go_to_panel(&u, place_of(p, e, y, ld, row, first + i));
            if (is_made) fm__put_tile(&u.out, tile + i * m * FM_PANEL, put_rows, &u);
            else multiply_panel(&u, tile, x, x_scale, first + i);
        }
    }
}

/* Groups of rows that a thread takes whole: they stay in its cache while all panels pass, and
 * panels that threads read at about the same time come from memory once.  The last round is
 * divided by panel, so that all end together. */
static int whole_groups(const product *p, int n_group)
{
    const int rounds = n_group / p->b->n_thread - 1;
    return rounds > 0 ? rounds * p->b->n_thread : 0;
}

static void multiply_alone(const product *p, ending e, void *y, int ld)
{
    const fm_range all = {0, fm__panels(p->w)};
    for (int row = 0, g = 0; row < p->n_row; row += p->per_group, g++)
        one_unit(p, e, y, ld, g, all);
}

/* Where weights are small and every thread has a tile of rows, each takes rows of its own, the same
 * that it has in the ops on single rows: weights are read by all threads, but rows do not move from
 * core to core. */
static int divides_rows(const product *p)
{
    enum { SMALL = 512 << 10, EACH = 16 };
    const size_t bytes = (size_t)fm__panels(p->w) * fm_panel_bytes(p->w->dtype, p->w->k);
    return p->n_row >= EACH * p->b->n_thread && bytes <= SMALL;
}

static void multiply_by_rows(product p, ending e, void *y, int ld)
{
    const int n_thread = p.b->n_thread;
    p.per_group        = fm__min(p.per_group, (p.n_row + n_thread - 1) / n_thread);
    const int n_group  = (p.n_row + p.per_group - 1) / p.per_group;
#pragma omp parallel for schedule(static) num_threads(n_thread)
    for (int g = 0; g < n_group; g++) one_unit(&p, e, y, ld, g, (fm_range){0, fm__panels(p.w)});
}

static void multiply_groups(const product *p, ending e, void *y, int ld)
{
    const int n_panel = fm__panels(p->w), n_group = (p->n_row + p->per_group - 1) / p->per_group;
    const int whole   = whole_groups(p, n_group);
#pragma omp parallel num_threads(p->b->n_thread)
    {
#pragma omp for schedule(dynamic) nowait
        for (int g = 0; g < whole; g++) one_unit(p, e, y, ld, g, (fm_range){0, n_panel});
#pragma omp for schedule(dynamic, 2)
        for (int u = whole * n_panel; u < n_group * n_panel; u++)
            one_unit(p, e, y, ld, u / n_panel, (fm_range){u % n_panel, u % n_panel + 1});
    }
}

static void multiply_one_group(const product *p, ending e, void *y, int ld)
{
    const int n = fm__panels(p->w), n_thread = p->b->n_thread, n_piece = fm__n_piece(n, n_thread);
#pragma omp parallel for schedule(dynamic) num_threads(n_thread)
    for (int i = 0; i < n_piece; i++) one_unit(p, e, y, ld, 0, fm__piece(n, n_thread, i));
}

static void multiply(const product *p, ending e, void *y, int ld)
{
    if (fm__is_small_product((size_t)p->w->n, p->w->k, p->n_row)) multiply_alone(p, e, y, ld);
    else if (divides_rows(p)) multiply_by_rows(*p, e, y, ld);
    else if (p->n_row > p->per_group) multiply_groups(p, e, y, ld);
    else if (p->n_row) multiply_one_group(p, e, y, ld); /* a step may want no logits */
}

static product product_of(const fm_cpu *b, fm_quantised x, const fm_matrix *w, int n_row)
{
    return (product){b, x, n_row, fm__even_block(n_row, fm__rows_at_once(b, w->k)), w};
}

void fm__cpu_linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    const product p = product_of(fm__cpu(r), fm__rows_for(r, x, w, 0, n_row), w, n_row);
    multiply(&p, STORE_F32, y.data, y.width);
}

void fm__cpu_linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row)
{
    const product p = product_of(fm__cpu(r), fm__rows_for(r, x, w, 0, n_row), w, n_row);
    multiply(&p, STORE_ACT, y.data, y.stride);
}

static void start_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w, int row, int n)
{
    fm_cpu       *b    = fm__cpu(r);
    fm_cpu_exchange  *x    = &b->exchange;
    fm_comm      *attn = r->ranks.attn;
    void         *own  = b->mlp_middle;
    const int     cols = w->gate_up.n / 2;
    const product up   = product_of(b, fm__rows_for(r, h, &w->gate_up, row, n), &w->gate_up, n);
    x->mlp.col.n       = w->inter;
    x->mlp.n_row       = n;
    x->mlp_weights     = w;
    x->mlp_y           = (fm_f32s){y.data + (size_t)row * (size_t)y.width, y.width};
    if (attn->n_rank > 1) own = fm__own_piece(&x->mlp, x->mlp_room, attn->rank, n);
    multiply(&up, SWIGLU_ACT, own, fm__act_stride(b, cols, attn->n_rank == 1));
    if (attn->n_rank > 1) fm__start_gather(r, &x->mlp, attn, own, n);
}

void fm__finish_mlp(fm_run *r)
{
    fm_cpu               *b = fm__cpu(r);
    fm_cpu_exchange          *x = &b->exchange;
    const fm_mlp_weights *w = x->mlp_weights;
    if (!w) return;
    x->mlp_weights = NULL;
    if (r->ranks.attn->n_rank > 1 && !fm__finish_gather(r, &x->mlp, b->mlp_middle)) return;
    const fm_act  mid  = {b->mlp_middle, w->inter, fm__act_stride(b, w->inter, r->ranks.attn->n_rank == 1)};
    const int     n    = x->mlp.n_row;
    const product down =
        product_of(b, fm__rows_in_place(r, mid, b->mlp_scale, &w->down, n), &w->down, n);
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
