/* SPDX-License-Identifier: Apache-2.0 */
/* Routed experts.  Pairs are sorted on the device, tiles go through both
 * products, and the outputs of a row's experts are added in slot order; ranks of a set
 * divide channels and outputs of its experts and gather the middle. */
#include "llm/kernel/cuda/experts/experts.h"

#include "llm/kernel/cuda/exchange/combine.h"
#include "llm/kernel/cuda/route/route.h"
#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/variants.h"
#include "llm/op/cuda/cuda_internal.h"

/* One pass of rows through the experts. */
typedef struct {
    fm_run               *r;
    fm_cuda_run          *g;
    const uint16_t       *h;      /* [n_row, D] rows of all groups, from row0 on */
    const int32_t        *chosen; /* [n_row, k] experts */
    const float          *weight; /* [n_row, k] */
    const fm_mlp_weights *own;    /* the expert in slot 0, behind which the others lie; NULL: none */
    int                   row0, n_row, n_own;
    int                   n_pair; /* of these experts: a bound, or what was counted */
    int                   is_counted;
} expert_pass;

/* --- pairs ----------------------------------------------------------------- */

static fm_cuda_pairs_args pairs_of(const expert_pass *p, int width)
{
    const fm_cuda_run *g     = p->g;
    const int          pairs = g->exchange.way == FM_COMBINE_PAIRS;
    return (fm_cuda_pairs_args){.expert     = pairs ? g->exchange.own_slot : p->chosen,
                                .count      = g->count,
                                .offset     = g->offset,
                                .pair_row   = g->pair_row,
                                .pair_of    = g->pair_of,
                                .block      = g->block,
                                .n_block    = g->n_block,
                                .scratch    = (int32_t *)g->middle, /* free until the products */
                                .n_row      = p->n_row,
                                .top_k      = p->r->config->top_k,
                                .n_expert   = p->n_own ? p->n_own : 1,
                                .block_rows = width,
                                .box        = fm_cuda_experts_box(width)};
}

/* Of scales, on this rank. */
static int has_whole_blocks(const fm_mlp_weights *w)
{
    return w->gate_up.scale_row0 == 0 && w->down.scale_row0 == 0 && w->down.n % 4 == 0;
}

static int width_of(const expert_pass *p)
{
    const fm_model_config *c       = p->r->config;
    const int              is_e4m3 = p->own && p->own->gate_up.scale;
    if (p->own && fm__cuda_quantises(p->r, &p->own->gate_up))
        return fm_cuda_fp8_block_rows(p->n_row * c->top_k, c->n_expert, has_whole_blocks(p->own));
    return fm_cuda_experts_block_rows(p->n_row * c->top_k, c->n_expert, is_e4m3);
}

int fm__cuda_sorts_along(const fm_run *r)
{
    const fm_cuda_run *g = r->backend;
    return r->n_row <= FM_CUDA_ROUTE_FEW && r->config->n_expert <= FM_CUDA_FEW_EXPERTS &&
           g->exchange.way == FM_COMBINE_HERE && r->weights->shard.group.n == 1 && !g->immediate &&
           !fm_cuda_leaves_out(FM_VARIANT_ROUTE_FEW);
}

fm_status fm__cuda_route_and_sort(fm_run *r, const fm_cuda_route_args *route)
{
    fm_cuda_run      *g = fm__gpu(r);
    const expert_pass p = {
        .r = r, .g = g, .chosen = route->expert, .n_row = r->n_row, .n_own = r->config->n_expert};
    const fm_cuda_pairs_args a = pairs_of(&p, width_of(&p)); /* few rows: of any weights */
    g->pass.is_sorted          = 1;
    return fm_cuda_route_and_sort(route, &a, g->stream);
}

static fm_status sort_by_expert(const expert_pass *p, int width)
{
    const fm_cuda_pairs_args a         = pairs_of(p, width);
    const int                is_sorted = p->g->pass.is_sorted;
    p->g->pass.is_sorted               = 0;
    return is_sorted ? FM_OK : fm_cuda_pairs(&a, p->g->stream);
}

static fm_cuda_combine_shape shape_of(const expert_pass *p)
{
    const fm_shard         *s       = &p->r->weights->shard;
    const fm_cuda_exchange *x       = &p->g->exchange;
    const fm_model_config  *c       = p->r->config;
    const int               largest = fm_shard_most_experts(s, c);
    return (fm_cuda_combine_shape){.group_row0 = p->g->there.group_row0,
                            .expert     = p->chosen,
                            .where      = x->where,
                            .row0       = p->row0,
                            .n_row      = p->n_row,
                            .top_k      = c->top_k,
                            .D          = c->hidden,
                            .n_group    = s->group.n,
                            .n_set      = s->expert.n,
                            .n_channel  = s->channel.n,
                            .n_attn     = s->attn.n,
                            .group      = s->group.index,
                            .set        = s->expert.index,
                            .channel    = s->channel.index,
                            .attn       = s->attn.index,
                            .most_items = p->is_counted ? 0 : fm__cuda_least(c->top_k, largest),
                            .as_rows    = x->way == FM_COMBINE_ROWS,
                            .key        = x->key,
                            .key_first  = x->key_first,
                            .key_place  = x->key_place};
}

/* Which set computes which slot of a row; how many there are is asked
 * for where the pass is not padded. */
static fm_status sort_by_set(expert_pass *p)
{
    const fm_shard          *s     = &p->r->weights->shard;
    fm_cuda_run             *g     = p->g;
    fm_cuda_exchange        *x     = &g->exchange;
    const fm_cuda_combine_shape     t     = shape_of(p);
    const int                n_key = s->group.n * s->expert.n, n_slot = p->n_row * t.top_k;
    const fm_cuda_pairs_args a = {.expert     = x->key,
                                  .count      = x->key_count,
                                  .offset     = x->key_first,
                                  .pair_row   = g->pair_row,
                                  .pair_of    = x->key_place,
                                  .block      = g->block,
                                  .n_block    = g->n_block,
                                  .n_row      = p->n_row,
                                  .top_k      = t.top_k,
                                  .n_expert   = n_key,
                                  .block_rows = n_slot};
    FM_TRY(fm_cuda_combine_keys(&t, x->key, x->own_slot, g->stream));
    FM_TRY(fm_cuda_pairs(&a, g->stream));
    if (g->pass.is_padded) return FM_OK;
    FM_TRY(
        fm_cuda_download(x->key_items, x->key_count, (size_t)n_key * sizeof(int32_t), g->stream));
    FM_TRY(fm__cuda_wait(p->r));
    p->is_counted = 1;
    p->n_pair     = 0;
    for (int i = 0; i < s->group.n; i++)
        p->n_pair += x->key_items[i * s->expert.n + s->expert.index];
    return FM_OK;
}

/* --- products -------------------------------------------------------------- */

static fm_cuda_expert_matrix matrix(const fm_matrix *m)
{
    return (fm_cuda_expert_matrix){m->panels, m->scale, m->scale_row0};
}

/* No more blocks than pairs, nor than full ones and one of each expert. */
static int most_blocks(const expert_pass *p, int width)
{
    return fm__cuda_least(p->n_pair, p->n_pair / width + p->n_own);
}

static fm_cuda_experts_args tiles(const expert_pass *p, int width)
{
    const fm_cuda_run *g = p->g;
    return (fm_cuda_experts_args){.gate_up    = matrix(&p->own->gate_up),
                                  .down       = matrix(&p->own->down),
                                  .h          = p->h,
                                  .middle     = g->middle,
                                  .pair_out   = g->pair_out,
                                  .pair_row   = g->pair_row,
                                  .block      = g->block,
                                  .n_block    = g->n_block,
                                  .block_rows = width,
                                  .max_block  = most_blocks(p, width),
                                  .n_expert   = p->n_own,
                                  .n_pair     = p->n_pair,
                                  .n_sm       = g->dev.n_sm};
}

static void run_tiles(const expert_pass *p, int width)
{
    fm_run                 *r   = p->r;
    const fm_cuda_exchange *x   = &p->g->exchange;
    const fm_share          me  = r->weights->shard.channel;
    const fm_columns        col = fm__channels_by(me, p->own->inter);
    const fm_cuda_pieces    own =
        fm__cuda_pieces(col, sizeof(uint16_t), x->room, me.index, (size_t)p->n_pair);
    fm_cuda_experts_args up = tiles(p, width), down = up;
    up.D   = p->own->gate_up.k;
    up.I   = p->own->gate_up.n / 2;
    down.D = p->own->down.n;
    down.I = p->own->inter;
    if (x->channel) up.middle = (uint16_t *)own.own;
    if (up.I) r->fault = fm_cuda_experts_up(&up, p->g->stream);
    if (x->channel) fm__cuda_gather(r, &own, x->channel, down.middle, p->n_pair, 0);
    if (r->fault == FM_OK && down.D) r->fault = fm_cuda_experts_down(&down, p->g->stream);
}

/* --- products of E4M3 activations ------------------------------------------- */

static fm_cuda_fp8_args bytes_tiles(const expert_pass *p, fm_cuda_bytes x, const fm_matrix *w,
                                    int width)
{
    const fm_cuda_run *g = p->g;
    fm_cuda_fp8_args   a = fm__cuda_bytes_args(p->r, x, w);
    a.block              = g->block;
    a.n_block            = g->n_block;
    a.block_rows         = width;
    a.max_block          = most_blocks(p, width);
    a.n_expert           = p->n_own;
    a.n_row              = p->n_pair;
    return a;
}

/* Gate and up: few pairs pick their rows, many have them in their own order. */
static void bytes_up(const expert_pass *p, uint16_t *middle, int width)
{
    fm_run          *r = p->r;
    fm_cuda_run     *g = p->g;
    const fm_matrix *w = &p->own->gate_up;
    if (w->n == 0) return;
    fm_cuda_fp8_args    a = bytes_tiles(p, g->pair8, w, width);
    const fm_cuda_bytes h = fm__cuda_bytes_of(r, p->h, w->k, p->n_row);
    if (fm_cuda_fp8_wants_order(width)) {
        const fm_cuda_pick_args in = {.x       = h.x,
                                      .x_scale = h.scale,
                                      .row     = g->pair_row,
                                      .y       = g->pair8.x,
                                      .scale   = g->pair8.scale,
                                      .n_row   = p->n_pair,
                                      .n_x     = p->n_row,
                                      .k       = w->k};
        if (r->fault == FM_OK) r->fault = fm_cuda_pick(&in, g->stream);
    } else {
        a.x       = h.x;
        a.x_scale = h.scale;
        a.x_row   = g->pair_row;
    }
    a.y   = middle;
    a.ldy = w->n / 2;
    a.out = FM_CUDA_FP8_SWIGLU;
    if (r->fault == FM_OK) r->fault = fm_cuda_fp8(&a, g->stream);
}

static void bytes_down(const expert_pass *p, int width)
{
    fm_cuda_run     *g = p->g;
    const fm_matrix *w = &p->own->down;
    fm_cuda_fp8_args a = bytes_tiles(p, g->pair8, w, width);
    fm__cuda_quantise(p->r, g->pair8, g->middle, w->k, p->n_pair);
    a.y   = g->pair_out;
    a.ldy = w->n;
    a.out = FM_CUDA_FP8_BF16;
    if (p->r->fault == FM_OK && w->n) p->r->fault = fm_cuda_fp8(&a, g->stream);
}

static void run_bytes(const expert_pass *p, int width)
{
    const fm_cuda_exchange *x   = &p->g->exchange;
    const fm_share          me  = p->r->weights->shard.channel;
    const fm_columns        col = fm__channels_by(me, p->own->inter);
    const fm_cuda_pieces    own =
        fm__cuda_pieces(col, sizeof(uint16_t), x->room, me.index, (size_t)p->n_pair);
    bytes_up(p, x->channel ? (uint16_t *)own.own : p->g->middle, width);
    if (x->channel) fm__cuda_gather(p->r, &own, x->channel, p->g->middle, p->n_pair, 0);
    if (p->r->fault == FM_OK) bytes_down(p, width);
}

/* --- combine --------------------------------------------------------------- */

static fm_status sum_here(const expert_pass *p, fm_f32s y, int accumulate)
{
    const fm_cuda_combine_args a = {.y          = y.data + (size_t)p->row0 * (size_t)y.width,
                                    .pair_out   = p->g->pair_out,
                                    .pair_of    = p->g->pair_of,
                                    .weight     = p->weight,
                                    .accumulate = accumulate,
                                    .n_row      = p->n_row,
                                    .top_k      = p->r->config->top_k,
                                    .width      = y.width};
    return y.width ? fm__cuda_combine_later(p->r, &a) : FM_OK;
}

/* Rows of a group, counted from the pass's first. */
static fm_range rows_in_pass(const expert_pass *p, int group)
{
    const int32_t *row0 = p->g->here.group_row0;
    const fm_range rows = {row0[group] - p->row0, row0[group + 1] - p->row0};
    return fm__overlap(rows, (fm_range){0, p->n_row});
}

/* Items that a set sends to a group. */
static size_t items(const expert_pass *p, const fm_cuda_combine_shape *t, int group, int set)
{
    const size_t rows = (size_t)fm_range_len(rows_in_pass(p, group));
    if (t->as_rows) return rows;
    if (p->is_counted) return (size_t)p->g->exchange.key_items[group * t->n_set + set];
    return rows * (size_t)t->most_items;
}

static size_t shared_columns(const expert_pass *p, int channel, int attn)
{
    return (size_t)fm_range_len(
        fm__combine_columns(&p->r->weights->shard, p->r->config->hidden, channel, attn));
}

static fm_device_exchange list_messages(const expert_pass *p, const fm_cuda_combine_shape *t)
{
    fm_cuda_exchange *x    = &p->g->exchange;
    size_t            sent = 0, taken = 0;
    for (int i = 0; i < t->n_group * t->n_attn; i++) {
        const int    group = i / t->n_attn, set = i / t->n_channel;
        const size_t out = items(p, t, group, t->set) *
                           shared_columns(p, t->channel, i % t->n_attn) * sizeof(float);
        const size_t in = items(p, t, t->group, set) *
                          shared_columns(p, i % t->n_channel, t->attn) * sizeof(float);
        x->send_at[i] = sent;
        x->send_n[i]  = out;
        x->recv_at[i] = taken;
        x->recv_n[i]  = in;
        sent += out;
        taken += in;
    }
    return (fm_device_exchange){.src     = x->sent,
                                .dst     = x->received,
                                .send_at = x->send_at,
                                .send_n  = x->send_n,
                                .recv_at = x->recv_at,
                                .recv_n  = x->recv_n};
}

static fm_status send_home(const expert_pass *p, fm_f32s y, int accumulate)
{
    fm_cuda_run                   *g   = p->g;
    const fm_cuda_combine_shape           t   = shape_of(p);
    const fm_range                 own = rows_in_pass(p, t.group);
    const fm_device_exchange       x   = list_messages(p, &t);
    const fm_cuda_combine_pack_args out = {t, g->pair_out, g->pair_of, p->weight,
                                          g->exchange.sent};
    const fm_cuda_combine_unpack_args  in  = {.shape = t,
                                          .in     = g->exchange.received,
                                          .weight = p->weight,
                                          .y      = y.data,
                                          .y_row0 = p->row0 + own.begin - g->here.group_row0[t.group],
                                          .n_own  = fm_range_len(own),
                                          .own0   = own.begin,
                                          .accumulate = accumulate};
    FM_TRY(fm_cuda_combine_pack(&out, g->stream));
    FM_TRY(fm_device_all_to_all(g->exchange.stage, &x, g->stream));
    return fm_cuda_combine_unpack(&in, g->stream);
}

/* --- passes ---------------------------------------------------------------- */

static void run_pass(expert_pass *p, fm_f32s y, int accumulate)
{
    fm_run                 *r     = p->r;
    const fm_model_config  *c     = r->config;
    const fm_cuda_exchange *x     = &p->g->exchange;
    const int               width = width_of(p);
    p->n_pair                     = p->n_row * fm__cuda_least(c->top_k, p->n_own);
    if (x->way == FM_COMBINE_PAIRS) fm__is_well(r, sort_by_set(p));
    if (r->fault == FM_OK) r->fault = sort_by_expert(p, width);
    if (r->fault == FM_OK && p->n_pair)
        (fm__cuda_quantises(r, &p->own->gate_up) ? run_bytes : run_tiles)(p, width);
    fm__cuda_side_join(r); /* y has the shared expert's output */
    p->g->pass.is_routed = 0;
    if (r->fault == FM_OK)
        r->fault = x->way == FM_COMBINE_HERE ? sum_here(p, y, accumulate)
                                                  : send_home(p, y, accumulate);
}

void fm__cuda_experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                      int accumulate)
{
    fm_cuda_run    *g     = fm__gpu(r);
    const fm_shard *s     = &r->weights->shard;
    const int       n_own = fm_shard_n_expert(s, r->config);
    const int       n     = g->here.group_row0[s->group.n];
    for (int row = 0; r->fault == FM_OK && row < n; row += FM_CUDA_PASS_ROWS) {
        const size_t at = (size_t)row * (size_t)r->config->top_k;
        expert_pass  p  = {.r      = r,
                           .g      = g,
                           .h      = (const uint16_t *)h.data + (size_t)row * (size_t)h.width,
                           .chosen = rt.expert + at,
                           .weight = rt.weight + at,
                           .own    = n_own ? expert + fm_placement_expert(s->placement, s->expert.index, 0)
                                           : NULL,
                           .row0   = row,
                           .n_row  = fm__cuda_least(n - row, FM_CUDA_PASS_ROWS),
                           .n_own  = n_own};
        run_pass(&p, y, accumulate);
    }
}
