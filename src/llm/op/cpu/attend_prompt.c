/* SPDX-License-Identifier: Apache-2.0 */
/* The expanded form: keys and values of each head are rebuilt from the cached
 * latents, block by block, and attended to with an online softmax.
 *
 *     unit of work     (prompt span, group of its rows, head)
 *     for each block of 256 keys, counted from position 0:
 *         K, V  = [k_up; v_up] c            expanded once, used by all rows of the unit
 *         for each tile of 64 queries:  S = Q K^T;  O = O * alpha + softmax(S) V
 *
 * Blocks start at position 0 whatever the chunk, and keys a query may not see
 * weigh exactly 0, so a row's bits depend on its sequence alone. */
#include <math.h>
#include <omp.h>

#include "llm/op/cpu/cpu_internal.h"

typedef struct {
    fm_run                *r;
    fm_cpu                *b;
    fm_matrix              k_up, v_up; /* of the head, in the type of activations */
    const fm_span         *span;
    fm_act                 o, q;
    int                    layer, head;
    int                    row0, n_row; /* of the batch */
    int                    key_w, value_w;
    float                  scale;
    fm_thread_scratch     *t;
} unit;

/* Where 32 outputs of expanded rows go. */
typedef struct {
    const float *tile;
    char        *to;
    size_t       width; /* of a row */
    fm_dtype     act;
    int          cols;
} expanded;

static void put_expanded(void *ctx, int from, int n)
{
    const expanded *e = ctx;
    fm_tile_store(e->to + (size_t)from * e->width * fm_dtype_bytes(e->act), e->act, e->width,
                  e->tile + from * FM_PANEL, n, e->cols);
}

/* rows [n] of `dst` = up * latents, 32 outputs at a time */
static void expand(const unit *u, const fm_matrix *up, const void *const *latent, int n, char *dst,
                   int width)
{
    const fm_cpu *b = u->b;
    for (int p = 0; p < fm__panels(up); p++) {
        expanded e = {u->t->tile, dst + (size_t)p * FM_PANEL * b->act_bytes, (size_t)width, b->act,
                      fm__min(up->n - p * FM_PANEL, FM_PANEL)};
        fm__panel_told(b, u->t->tile, latent, NULL, up, p, n, put_expanded, &e);
    }
}

/* key = [k_up c | kR | zeros], then both as panels */
static void build_block(const unit *u, int key0, int n)
{
    const fm_cpu          *b  = u->b;
    const fm_model_config *c  = u->r->config;
    const size_t           es = b->act_bytes, rope = (size_t)c->rope * es;
    const size_t           used = (size_t)(c->nope + c->rope) * es, row = (size_t)u->key_w * es;
    const void            *latent[FM_PROMPT_KEYS], *line[FM_PROMPT_KEYS];

    for (int i = 0; i < n; i++) latent[i] = fm__kv_at(u->r, b, u->layer, u->span, key0 + i);
    expand(u, &u->k_up, latent, n, u->t->key, u->key_w);
    expand(u, &u->v_up, latent, n, u->t->value, u->value_w);
    for (int i = 0; i < n; i++) {
        char *key = (char *)u->t->key + (size_t)i * row;
        memcpy(key + (size_t)c->nope * es, (const char *)latent[i] + (size_t)c->kv_lora * es, rope);
        memset(key + used, 0, row - used);
    }

    fm_pack_fn *across = b->act == FM_BF16 ? b->pack->across_bf16 : b->pack->across_f32;
    fm_pack_fn *along  = b->act == FM_BF16 ? b->pack->along_bf16 : b->pack->along_f32;
    for (int i = 0; i < n; i++) line[i] = (char *)u->t->key + (size_t)i * row;
    for (int i = 0; i < n; i += FM_PANEL)
        across((char *)u->t->k_panel + (size_t)(i / FM_PANEL) * fm_panel_bytes(b->act, u->key_w),
               line + i, fm__min(n - i, FM_PANEL), u->key_w);
    for (int i = 0; i < n; i++) line[i] = (char *)u->t->value + (size_t)i * (size_t)u->value_w * es;
    along(u->t->v_panel, line, n, u->value_w);
}

/* Scores of m queries against the block's first n_key keys: a tile [m, 32] for
 * every 32 keys. */
static void score_tiles(const unit *u, const void *const *q, int m, int n_key)
{
    fm_gemm_fn  *gemm  = fm_gemm_for(u->b->gemm, u->b->act);
    const size_t panel = fm_panel_bytes(u->b->act, u->key_w);
    for (int k = 0; k < n_key; k += FM_PANEL)
        gemm(u->t->score + k * m, q, (char *)u->t->k_panel + (size_t)(k / FM_PANEL) * panel, NULL, m,
             u->key_w);
}

/* Pointers to m queries of the head, with zeros behind them up to key_w.  Where they
 * lie, one head's queries are far apart and share few sets of L1, which AMX, reading
 * all of them at once for each 32 keys, would feel. */
static void gather_queries(const unit *u, const void **q, int row, int m)
{
    const fm_cpu *b     = u->b;
    const size_t  width = (size_t)(u->r->config->nope + u->r->config->rope) * b->act_bytes;
    const size_t  wide  = (size_t)u->key_w * b->act_bytes;
    for (int i = 0; i < m; i++) {
        q[i] = fm__act_at(b, u->q, u->row0 + row + i) + (size_t)u->head * width;
        if (wide == width && !fm__moves_rows(b)) continue;
        char *padded = (char *)u->t->query + (size_t)i * fm__row_stride(b, u->key_w);
        memcpy(padded, q[i], width);
        memset(padded + width, 0, wide - width);
        q[i] = padded;
    }
}

/* 32 columns of what a block adds, and what it is added to. */
typedef struct {
    const float *tile, *alpha;
    float       *out;
    size_t       ld;
} weighed;

static void add_weighed(void *ctx, int from, int n)
{
    const weighed *w = ctx;
    fm_tile_scale_add(w->out + (size_t)from * w->ld, w->ld, w->alpha + from,
                      w->tile + from * FM_PANEL, n);
}

/* Queries [row, row+m) of the unit against one block of n keys. */
static void meet(const unit *u, int row, int m, int key0, int n)
{
    const fm_cpu *b     = u->b;
    const int     pos   = u->span->pos0 + (u->row0 - u->span->row0) + row; /* of the first query */
    const int     seen  = fm__min(n, pos + m - key0);                      /* by the last query */
    const int     depth = (int)fm_round_up((size_t)seen, FM_PANEL);
    const size_t  panel = fm_panel_bytes(b->act, (int)fm_round_up((size_t)n, FM_PANEL));
    float        *out   = u->t->out + (size_t)row * (size_t)u->value_w;
    const void   *q[FM_QUERY_TILE], *p[FM_QUERY_TILE];
    float         alpha[FM_QUERY_TILE];
    int           visible[FM_QUERY_TILE];

    gather_queries(u, q, row, m);
    score_tiles(u, q, m, seen);
    for (int i = 0; i < m; i++) {
        visible[i] = fm__min(seen, pos + i + 1 - key0);
        p[i]       = (char *)u->t->weight + (size_t)i * (size_t)depth * b->act_bytes;
    }
    fm_tile_softmax(&(fm_softmax_step){.m = m, .n_tile = depth / FM_PANEL, .score = u->t->score,
                                       .scale = u->scale, .n_visible = visible, .type = b->act,
                                       .weight = u->t->weight, .max = u->t->max + row,
                                       .sum = u->t->sum + row, .alpha = alpha});
    for (int v = 0; v < u->value_w; v += FM_PANEL)
        fm_gemm_told(b->gemm, b->act, u->t->tile, p, NULL,
                     (char *)u->t->v_panel + (size_t)(v / FM_PANEL) * panel, NULL, m, depth,
                     add_weighed, &(weighed){u->t->tile, alpha, out + v, (size_t)u->value_w});
}

static void finish_rows(const unit *u)
{
    enum { SOON = 16 };
    const int    v_dim = u->r->config->v_dim;
    const size_t bytes = (size_t)v_dim * u->b->act_bytes, col = (size_t)u->head * bytes;
    for (int i = 0; i < u->n_row; i++) {
        const float *out = u->t->out + (size_t)i * (size_t)u->value_w;
        char  *to   = fm__act_at(u->b, u->o, u->row0 + i) + col;
        char  *soon = fm__act_at(u->b, u->o, u->row0 + fm__min(i + SOON, u->n_row - 1)) + col;
        fm__expect(soon, bytes);
        fm_row_store_scaled(to, u->b->act, out, 1.0f / u->t->sum[i], v_dim);
    }
}

static void run_unit(const unit *u)
{
    const int pos0 = u->span->pos0 + (u->row0 - u->span->row0), n_key = pos0 + u->n_row;
    memset(u->t->out, 0, (size_t)u->n_row * (size_t)u->value_w * sizeof(float));
    for (int i = 0; i < u->n_row; i++) u->t->max[i] = -INFINITY, u->t->sum[i] = 0;
    for (int key0 = 0; key0 < n_key; key0 += FM_PROMPT_KEYS) {
        const int n = fm__min(n_key - key0, FM_PROMPT_KEYS);
        build_block(u, key0, n);
        for (int row = 0; row < u->n_row; row += FM_QUERY_TILE) {
            const int m = fm__min(u->n_row - row, FM_QUERY_TILE);
            if (pos0 + row + m > key0) meet(u, row, m, key0, n);
        }
    }
    finish_rows(u);
}

/* A head's matrix in the type of activations; if it has to be widened, in `room`. */
static fm_matrix up_matrix(const fm_cpu *b, const fm_matrix *up, char *room)
{
    const size_t bytes = fm_panel_bytes(b->act, up->k);
    if (up->dtype == b->act) return *up;
    for (int p = 0; p < fm__panels(up); p++) fm__up_panel(b, up, p, room + (size_t)p * bytes);
    return (fm_matrix){.n = up->n, .k = up->k, .dtype = b->act, .panels = room};
}

/* Rows that share an expansion: as many as possible while every thread has a
 * few units to do.  The choice moves no bit. */
static int rows_per_unit(const fm_run *r, int prompt_rows, int n_thread)
{
    int rows = FM_PROMPT_ROWS;
    while (rows > 128 && (prompt_rows + rows - 1) / rows * r->weights->n_head < 3 * n_thread) rows /= 2;
    return rows;
}

/* The groups of all prompt spans; the last rows of a span, which see most
 * keys, come first. */
static int make_groups(const fm_batch *batch, fm_prompt_group *group, int per)
{
    int n = 0;
    for (int k = 0; k < batch->n_span; k++) {
        const fm_span *s = &batch->span[k];
        if (s->form != FM_FORM_PROMPT) continue;
        for (int g = (s->n_row - 1) / per; g >= 0; g--)
            group[n++] = (fm_prompt_group){k, s->row0 + g * per, fm__min(per, s->n_row - g * per)};
    }
    return n;
}

/* Heads that a thread takes at once: all of a short prompt, whose rows then stay in its core's cache,
 * if there are enough prompts. */
static int heads_at_once(const fm_run *r, int prompt_rows, int n_group, int n_thread)
{
    enum { SHORT = 64, EACH = 4 };
    const int whole = n_group >= EACH * n_thread && prompt_rows <= SHORT * n_group;
    return whole ? r->weights->n_head : 1;
}

void fm__attend_prompt(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    fm_cpu                *b = fm__cpu(r);
    const fm_model_config *c = r->config;
    const int              H = r->weights->n_head;
    int                    prompt_rows = 0;
    for (int i = 0; i < r->batch->n_span; i++)
        if (r->batch->span[i].form == FM_FORM_PROMPT) prompt_rows += r->batch->span[i].n_row;
    if (!prompt_rows) return;

    const int n_group = make_groups(r->batch, b->group, rows_per_unit(r, prompt_rows, b->n_thread));
    const int key_w   = (int)fm_round_up((size_t)(c->nope + c->rope), FM_PANEL);
    const int value_w = (int)fm_round_up((size_t)c->v_dim, FM_PANEL);
    const int at_once = heads_at_once(r, prompt_rows, n_group, b->n_thread);
#pragma omp parallel for schedule(dynamic, at_once) num_threads(b->n_thread)
    for (int k = 0; k < n_group * H; k++) {
        const fm_prompt_group *g      = &b->group[k / H];
        fm_thread_scratch     *t      = &b->scratch[omp_get_thread_num()];
        const fm_matrix       *k_up   = &w->k_up[k % H], *v_up = &w->v_up[k % H];
        char                  *behind = (char *)t->up + (size_t)k_up->n * (size_t)k_up->k * b->act_bytes;
        const unit             u      = {r, b, up_matrix(b, k_up, t->up), up_matrix(b, v_up, behind),
                                         &r->batch->span[g->span], o, q, layer, k % H,
                                         g->row0, g->n_row, key_w, value_w, fm_attention_scale(c), t};
        run_unit(&u);
    }
}
