/* SPDX-License-Identifier: Apache-2.0 */
/* Every op on both sides, each with its own weights and buffers. */
#include "llm/op/shadow/shadow_internal.h"

/* The GPU's twin of a weight, and of a buffer. */
static void *there(fm_run *r, const void *cpu)
{
    return cpu ? fm__shadow_twin(fm__shadow(r), cpu)->gpu : NULL;
}

static fm_act act_there(fm_run *r, fm_act a)
{
    return (fm_act){a.width ? there(r, a.data) : NULL, a.width, a.width};
}

static fm_f32s f32s_there(fm_run *r, fm_f32s a)
{
    return (fm_f32s){a.width ? there(r, a.data) : NULL, a.width};
}

/* Rows of the GPU include those that pad a step. */
static int rows_there(const fm_run *r, const fm_matrix *m)
{
    const fm_run *gpu = fm__shadow(r)->gpu;
    return m == &r->weights->head ? gpu->n_out : gpu->n_row;
}

/* clang-format off */
#define CPU(r, verb, ...) fm__shadow(r)->cpu->ops->verb(fm__shadow(r)->cpu, __VA_ARGS__)
#define GPU(r, verb, ...) fm__shadow(r)->gpu->ops->verb(fm__shadow(r)->gpu, __VA_ARGS__)
/* clang-format on */

static void embed(fm_run *r, fm_f32s x, const void *table)
{
    CPU(r, embed, x, table);
    GPU(r, embed, f32s_there(r, x), there(r, table));
}

static void rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    CPU(r, rmsnorm, y, x, w);
    GPU(r, rmsnorm, act_there(r, y), f32s_there(r, x), there(r, w));
}

static void gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    CPU(r, gather_norm, y, x, w);
    GPU(r, gather_norm, act_there(r, y), f32s_there(r, x), there(r, w));
}

static void linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    CPU(r, linear_f32, y, x, w, n_row);
    GPU(r, linear_f32, f32s_there(r, y), act_there(r, x), there(r, w), rows_there(r, w));
}

static void linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row)
{
    CPU(r, linear_act, y, x, w, n_row);
    GPU(r, linear_act, act_there(r, y), act_there(r, x), there(r, w), rows_there(r, w));
}

static void rope_q(fm_run *r, fm_act q)
{
    CPU(r, rope_q, q);
    GPU(r, rope_q, act_there(r, q));
}

static void store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm)
{
    CPU(r, store_kv, layer, ckv, norm);
    GPU(r, store_kv, layer, f32s_there(r, ckv), there(r, norm));
}

static void attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    CPU(r, attend, o, q, layer, w);
    GPU(r, attend, act_there(r, o), act_there(r, q), layer, there(r, w));
}

static void route(fm_run *r, fm_routing out, fm_f32s score, const float *bias)
{
    CPU(r, route, out, score, bias); /* leaves probabilities in its scores */
    GPU(r, route, fm__shadow(r)->gpu->act.route, f32s_there(r, score), there(r, bias));
}

static void dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing routes)
{
    const fm_acts *g = &fm__shadow(r)->gpu->act;
    CPU(r, dispatch, h_all, route_all, h, routes);
    GPU(r, dispatch, g->h_all, g->route_all, g->h, g->route);
}

static void mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w)
{
    CPU(r, mlp, y, h, w);
    GPU(r, mlp, f32s_there(r, y), act_there(r, h), there(r, w));
}

static void experts(fm_run *r, fm_f32s y, fm_act h, fm_routing routes, const fm_mlp_weights *w,
                    int accumulate)
{
    const fm_acts *g = &fm__shadow(r)->gpu->act;
    CPU(r, experts, y, h, routes, w, accumulate);
    GPU(r, experts, f32s_there(r, y), g->h_all, g->route_all, there(r, w), accumulate);
}

static void gather_act(fm_run *r, fm_act all, fm_act mine)
{
    const fm_acts *g = &fm__shadow(r)->gpu->act;
    CPU(r, gather_act, all, mine);
    GPU(r, gather_act, g->o_all, g->o);
}

static void gather_add(fm_run *r, fm_f32s x, fm_f32s y)
{
    CPU(r, gather_add, x, y);
    GPU(r, gather_add, f32s_there(r, x), f32s_there(r, y));
}

static void hidden(fm_run *r, fm_act h, fm_f32s x, const float *norm, const float *w)
{
    CPU(r, hidden, h, x, norm, w);
    GPU(r, hidden, act_there(r, h), f32s_there(r, x), there(r, norm), there(r, w));
}

static void best(fm_run *r, fm_f32s logits, fm_act state)
{
    CPU(r, best, logits, state);
    GPU(r, best, f32s_there(r, logits), act_there(r, state));
}

static void collect(fm_run *r, fm_f32s logits)
{
    CPU(r, collect, logits);
    GPU(r, collect, f32s_there(r, logits));
    r->act = fm__shadow(r)->cpu->act; /* the next pass's logits may lie elsewhere */
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
    .hidden      = hidden,
    .best        = best,
    .drafted     = fm__shadow_drafted,
    .logits      = fm__shadow_logits,
    .report      = fm__shadow_report,
    .destroy     = fm__shadow_destroy,
};
