/* SPDX-License-Identifier: Apache-2.0 */
/* One op on both sides: the CPU's, the GPU's, and what they wrote compared. */
#include "llm/op/shadow/shadow_internal.h"

/* The GPU's twin of a weight; names the layer the pass is in. */
static const fm_shadow_twin *weight_of(fm_run *r, const void *cpu)
{
    fm_shadow            *s = fm__shadow(r);
    const fm_shadow_twin *t = fm__shadow_twin(s, cpu);
    s->layer                = t->layer;
    return t;
}

static void *buffer_of(fm_run *r, const void *cpu)
{
    return fm__shadow_twin(fm__shadow(r), cpu)->gpu;
}

static fm_act act_of(fm_run *r, fm_act a)
{
    return (fm_act){a.width ? buffer_of(r, a.data) : NULL, a.width, a.width};
}

static fm_f32s f32s_of(fm_run *r, fm_f32s a)
{
    return (fm_f32s){a.width ? buffer_of(r, a.data) : NULL, a.width};
}

/* After an op: the faults of both are the run's. */
int fm__shadow_is_well(fm_run *r)
{
    const fm_shadow *s = fm__shadow(r);
    if (r->fault == FM_OK) r->fault = s->cpu->fault;
    if (r->fault == FM_OK) r->fault = s->gpu->fault;
    return r->fault == FM_OK;
}

static void compare_f32s(fm_run *r, fm_shadow_op op, const char *weight, fm_f32s x, int is_out)
{
    const fm_shadow      *s = fm__shadow(r);
    const fm_shadow_twin *t = fm__shadow_twin(s, x.data);
    const fm_shadow_rows  a = {.op       = op,
                               .weight   = weight,
                               .tensor   = t->name,
                               .cpu      = x.data,
                               .gpu      = t->gpu,
                               .n_row    = is_out ? r->n_out : r->n_row,
                               .width    = x.width,
                               .apart    = x.width,
                               .row_from = is_out ? NULL : s->row_from};
    if (fm__shadow_is_well(r)) fm__shadow_compare(r, &a);
}

static void compare_act(fm_run *r, fm_shadow_op op, const char *weight, fm_act x, int row0,
                        int is_out)
{
    const fm_shadow      *s = fm__shadow(r);
    const fm_shadow_twin *t = fm__shadow_twin(s, x.data);
    const fm_shadow_rows  a = {.op       = op,
                               .weight   = weight,
                               .tensor   = t->name,
                               .cpu      = x.data,
                               .gpu      = t->gpu,
                               .is_bf16  = 1,
                               .row0     = row0,
                               .n_row    = is_out ? r->n_out : r->n_row,
                               .width    = x.width,
                               .apart    = x.apart,
                               .row_from = is_out ? NULL : s->row_from};
    if (fm__shadow_is_well(r)) fm__shadow_compare(r, &a);
}

/* clang-format off */
#define CPU(r, verb, ...) fm__shadow(r)->cpu->ops->verb(fm__shadow(r)->cpu, __VA_ARGS__)
#define GPU(r, verb, ...) fm__shadow(r)->gpu->ops->verb(fm__shadow(r)->gpu, __VA_ARGS__)
/* clang-format on */

static void embed(fm_run *r, fm_f32s x, const void *table)
{
    const fm_shadow_twin *w = weight_of(r, table);
    CPU(r, embed, x, table);
    GPU(r, embed, f32s_of(r, x), w->gpu);
    compare_f32s(r, FM_SHADOW_EMBED, w->name, x, 0);
}

static void rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *norm)
{
    const fm_shadow_twin *w = weight_of(r, norm);
    CPU(r, rmsnorm, y, x, norm);
    GPU(r, rmsnorm, act_of(r, y), f32s_of(r, x), w->gpu);
    compare_act(r, FM_SHADOW_RMSNORM, w->name, y, 0, 0);
}

static void gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *norm)
{
    const fm_shadow_twin *w = weight_of(r, norm);
    CPU(r, gather_norm, y, x, norm);
    GPU(r, gather_norm, act_of(r, y), f32s_of(r, x), w->gpu);
    compare_act(r, FM_SHADOW_GATHER_NORM, w->name, y, 0, 1);
}

/* Rows of the GPU include those that pad a step. */
static int rows_there(const fm_run *r, const fm_matrix *m)
{
    const fm_run *gpu = fm__shadow(r)->gpu;
    return m == &r->weights->head ? gpu->n_out : gpu->n_row;
}

static void linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *m, int n_row)
{
    const fm_shadow_twin *w = weight_of(r, m);
    CPU(r, linear_f32, y, x, m, n_row);
    GPU(r, linear_f32, f32s_of(r, y), act_of(r, x), w->gpu, rows_there(r, m));
    compare_f32s(r, FM_SHADOW_LINEAR, w->name, y, m == &r->weights->head);
}

static void linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *m, int n_row)
{
    const fm_shadow_twin *w = weight_of(r, m);
    CPU(r, linear_act, y, x, m, n_row);
    GPU(r, linear_act, act_of(r, y), act_of(r, x), w->gpu, rows_there(r, m));
    compare_act(r, FM_SHADOW_LINEAR_ACT, w->name, y, 0, 0);
}

/* Those of generated rows go on to the latent space, where attend is compared. */
static void rope_q(fm_run *r, fm_act q)
{
    CPU(r, rope_q, q);
    GPU(r, rope_q, act_of(r, q));
    compare_act(r, FM_SHADOW_ROPE_Q, NULL, q, fm__shadow(r)->n_gen, 0);
}

/* Tokens of one span lie in pages: each is compared where it is cached. */
static void compare_cached(fm_run *r, int layer, const char *weight)
{
    fm_shadow         *s     = fm__shadow(r);
    const fm_cpu      *c     = fm__cpu(s->cpu);
    const fm_cuda_run *g     = fm__gpu(s->gpu);
    const int          width = fm_kv_width(r->config);
    for (int k = 0; k < s->batch.n_span; k++)
        for (int i = 0; r->fault == FM_OK && i < s->batch.span[k].n_row; i++) {
            const fm_span *span = &s->batch.span[k];
            char          *here = fm__kv_at(s->cpu, c, layer, span, span->pos0 + i);
            const size_t   at   = (size_t)(here - c->kv) - (size_t)layer * c->kv_layer;
            const fm_shadow_rows a = {.op       = FM_SHADOW_STORE_KV,
                                      .weight   = weight,
                                      .tensor   = "cache",
                                      .cpu      = here,
                                      .gpu      = g->kv + (size_t)layer * g->kv_layer + at,
                                      .is_bf16  = 1,
                                      .n_row    = 1,
                                      .width    = width,
                                      .apart    = width,
                                      .row_from = s->row_from + span->row0 + i};
            fm__shadow_compare(r, &a);
        }
}

static void store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm)
{
    const fm_shadow_twin *w = weight_of(r, norm);
    CPU(r, store_kv, layer, ckv, norm);
    GPU(r, store_kv, layer, f32s_of(r, ckv), w->gpu);
    if (fm__shadow_is_well(r)) compare_cached(r, layer, w->name);
}

static void attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *attn)
{
    const fm_shadow_twin *w = weight_of(r, attn);
    CPU(r, attend, o, q, layer, attn);
    GPU(r, attend, act_of(r, o), act_of(r, q), layer, w->gpu);
    compare_act(r, FM_SHADOW_ATTEND, w->name, o, 0, 0);
}

static void route(fm_run *r, fm_routing out, fm_f32s score, const float *bias)
{
    const fm_shadow *s = fm__shadow(r);
    CPU(r, route, out, score, bias); /* leaves probabilities in its scores */
    GPU(r, route, s->gpu->act.route, f32s_of(r, score), bias ? weight_of(r, bias)->gpu : NULL);
    if (fm__shadow_is_well(r)) fm__shadow_compare_routes(r, out, s->gpu->act.route, score, bias);
}

static void dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing routes)
{
    const fm_acts *g = &fm__shadow(r)->gpu->act;
    CPU(r, dispatch, h_all, route_all, h, routes);
    GPU(r, dispatch, g->h_all, g->route_all, g->h, g->route);
    fm__shadow_is_well(r);
}

static void mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *m)
{
    const fm_shadow_twin *w = weight_of(r, m);
    CPU(r, mlp, y, h, m);
    GPU(r, mlp, f32s_of(r, y), act_of(r, h), w->gpu);
    compare_f32s(r, FM_SHADOW_MLP, w->name, y, 0);
}

static void experts(fm_run *r, fm_f32s y, fm_act h, fm_routing routes, const fm_mlp_weights *expert,
                    int accumulate)
{
    const fm_shadow      *s = fm__shadow(r);
    const fm_shadow_twin *w = weight_of(r, expert);
    CPU(r, experts, y, h, routes, expert, accumulate);
    GPU(r, experts, f32s_of(r, y), s->gpu->act.h_all, s->gpu->act.route_all, w->gpu, accumulate);
    compare_f32s(r, FM_SHADOW_EXPERTS, w->name, y, 0);
}

static void gather_act(fm_run *r, fm_act all, fm_act mine)
{
    const fm_acts *g = &fm__shadow(r)->gpu->act;
    CPU(r, gather_act, all, mine);
    GPU(r, gather_act, g->o_all, g->o);
    fm__shadow_is_well(r);
}

static void gather_add(fm_run *r, fm_f32s x, fm_f32s y)
{
    CPU(r, gather_add, x, y);
    GPU(r, gather_add, f32s_of(r, x), f32s_of(r, y));
    compare_f32s(r, FM_SHADOW_GATHER_ADD, NULL, x, 0);
}

static void collect(fm_run *r, fm_f32s logits)
{
    fm_shadow *s = fm__shadow(r);
    CPU(r, collect, logits);
    GPU(r, collect, f32s_of(r, logits));
    r->act = s->cpu->act; /* the next pass's logits may lie elsewhere */
    fm__shadow_is_well(r);
}

const fm_ops fm__shadow_ops = {
    .name        = "shadow",
    .begin       = fm__shadow_begin,
    .end         = fm__shadow_end,
    .embed       = embed,
    .rmsnorm     = rmsnorm,
    .gather_norm = gather_norm,
    .linear_f32  = linear_f32,
    .linear_act  = linear_act,
    .rope_q      = rope_q,
    .store_kv    = store_kv,
    .attend      = attend,
    .route       = route,
    .mlp         = mlp,
    .experts     = experts,
    .gather_act  = gather_act,
    .gather_add  = gather_add,
    .dispatch    = dispatch,
    .collect     = collect,
    .logits      = fm__shadow_logits,
    .report      = fm__shadow_report,
    .destroy     = fm__shadow_destroy,
};
