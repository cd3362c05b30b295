/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops that runs both, and the run around it. */
#include "llm/op/shadow.h"

#include <stdlib.h>

#include "llm/op/shadow_internal.h"

/* --- one op on both sides --------------------------------------------------- */

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
    return (fm_act){a.width ? buffer_of(r, a.data) : NULL, a.width};
}

static fm_f32s f32s_of(fm_run *r, fm_f32s a)
{
    return (fm_f32s){a.width ? buffer_of(r, a.data) : NULL, a.width};
}

/* After an op: the faults of both are the run's. */
static int both_well(fm_run *r)
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
                               .row_from = is_out ? NULL : s->row_from};
    if (both_well(r)) fm__shadow_compare(r, &a);
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
                               .row_from = is_out ? NULL : s->row_from};
    if (both_well(r)) fm__shadow_compare(r, &a);
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
                                      .row_from = s->row_from + span->row0 + i};
            fm__shadow_compare(r, &a);
        }
}

static void store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm)
{
    const fm_shadow_twin *w = weight_of(r, norm);
    CPU(r, store_kv, layer, ckv, norm);
    GPU(r, store_kv, layer, f32s_of(r, ckv), w->gpu);
    if (both_well(r)) compare_cached(r, layer, w->name);
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
    if (both_well(r)) fm__shadow_compare_routes(r, out, s->gpu->act.route, score, bias);
}

static void dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing routes)
{
    const fm_acts *g = &fm__shadow(r)->gpu->act;
    CPU(r, dispatch, h_all, route_all, h, routes);
    GPU(r, dispatch, g->h_all, g->route_all, g->h, g->route);
    both_well(r);
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
    both_well(r);
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
    both_well(r);
}

/* --- a pass ----------------------------------------------------------------- */

/* Rows of spans of one form, from `row` on, as the GPU orders them. */
static int take_spans(fm_shadow *s, const fm_batch *b, fm_form form, int32_t *row_to, int row)
{
    fm_batch *to = &s->batch;
    for (int k = 0; k < b->n_span; k++) {
        if (b->span[k].form != form) continue;
        to->span[to->n_span]      = b->span[k];
        to->span[to->n_span].row0 = row;
        to->n_span++;
        for (int i = 0; i < b->span[k].n_row; i++, row++) {
            const int from   = b->span[k].row0 + i;
            to->token[row]   = b->token[from];
            to->pos[row]     = b->pos[from];
            s->row_from[row] = from;
            row_to[from]     = row;
        }
    }
    return row;
}

static void begin(fm_run *r)
{
    fm_shadow      *s      = fm__shadow(r);
    const fm_batch *b      = r->batch;
    int32_t        *row_to = (int32_t *)s->room;
    s->batch.n_span        = 0;
    s->batch.n_row         = b->n_row;
    s->batch.n_out         = b->n_out;
    s->batch.is_decode     = b->is_decode;
    s->layer               = -1;
    s->n_gen               = take_spans(s, b, FM_FORM_GENERATED, row_to, 0);
    take_spans(s, b, FM_FORM_PROMPT, row_to, s->n_gen);
    for (int i = 0; i < b->n_out; i++) s->batch.out[i] = row_to[b->out[i]];
    fm_run_start(s->cpu, &s->batch);
    fm_run_start(s->gpu, &s->batch);
    both_well(r);
}

static void end(fm_run *r)
{
    const fm_shadow *s = fm__shadow(r);
    fm_run_finish(s->cpu);
    fm_run_finish(s->gpu);
    both_well(r);
}

/* Whoever takes the CPU's logits ends the pass; the GPU has to choose from its. */
static fm_status logits_of(fm_run *r, const fm_batch *b, const float **all)
{
    FM_TRY(fm_run_logits(fm__shadow(r)->cpu, b, all));
    const fm_status rc = fm__shadow_choose(r, b, *all);
    if (r->fault == FM_OK) r->fault = rc;
    return rc;
}

/* --- making one ------------------------------------------------------------- */

static void destroy(fm_run *r)
{
    fm_shadow *s = fm__shadow(r);
    fm_run_destroy(s->gpu);
    fm_run_destroy(s->cpu);
    free(s->twin);
    free(s->room);
    fm_sampler_destroy(s->sampler);
    free(s->draw);
    free(s->sampled);
    free(s->row_from);
    free(s->batch.token);
    free(s->batch.pos);
    free(s->batch.span);
    free(s->batch.out);
    free(s);
    free(r);
}

static const fm_ops shadow_ops = {
    .name        = "shadow",
    .begin       = begin,
    .end         = end,
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
    .logits      = logits_of,
    .report      = fm__shadow_report,
    .destroy     = destroy,
};

/* Bytes of the widest thing that is compared at once. */
static size_t widest(const fm_model_config *c, const fm_run_limits *lim)
{
    const size_t T     = (size_t)lim->max_rows;
    const int    row[] = {c->hidden,
                          c->n_head * (c->nope + c->rope),
                          c->n_head * c->v_dim,
                          fm_kv_width(c),
                          c->q_lora,
                          c->n_expert,
                          2 * c->top_k};
    size_t       most  = (size_t)lim->max_out * (size_t)c->vocab;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (T * (size_t)row[i] > most) most = T * (size_t)row[i];
    return most * sizeof(float);
}

size_t fm_run_shadow_bytes(const fm_model_config *c, const fm_run_limits *lim)
{
    const size_t T = (size_t)lim->max_rows;
    return widest(c, lim) + fm_sampler_bytes(c->vocab) +
           T * (3 * sizeof(int32_t) + sizeof(fm_span)) +
           (size_t)lim->max_out * (sizeof(int32_t) + sizeof(fm_draw) + sizeof(fm_sampled));
}

static fm_status make_ready(fm_shadow *s)
{
    const fm_cuda_run *g = fm__gpu(s->gpu);
    const size_t T = (size_t)s->cpu->limits.max_rows, out = (size_t)s->cpu->limits.max_out;
    if (s->cpu->ranks.replica->n_rank > 1)
        return fm_fail(FM_E_NOSUP, "--shadow compares one rank's run");
    FM_BUG_UNLESS(g->apart && !g->records && !g->kv_scale);
    s->room        = malloc(widest(s->cpu->config, &s->cpu->limits));
    s->draw        = calloc(out, sizeof *s->draw);
    s->sampled     = calloc(out, sizeof *s->sampled);
    s->row_from    = calloc(T, sizeof *s->row_from);
    s->batch.token = calloc(T, sizeof *s->batch.token);
    s->batch.pos   = calloc(T, sizeof *s->batch.pos);
    s->batch.span  = calloc(T, sizeof *s->batch.span); /* a span has a row */
    s->batch.out   = calloc(out, sizeof *s->batch.out);
    if (!s->room || !s->draw || !s->sampled || !s->row_from || !s->batch.token || !s->batch.pos ||
        !s->batch.span || !s->batch.out)
        return fm_fail(FM_E_OOM, "shadow run");
    FM_TRY(fm_sampler_create(&s->sampler, s->cpu->config->vocab));
    return fm__shadow_list_twins(s);
}

fm_status fm_run_create_shadow(fm_run **out, fm_run *cpu, fm_run *gpu)
{
    fm_run    *r = calloc(1, sizeof *r);
    fm_shadow *s = calloc(1, sizeof *s);
    if (!r || !s) {
        free(r);
        free(s);
        fm_run_destroy(gpu);
        fm_run_destroy(cpu);
        return fm_fail(FM_E_OOM, "shadow run");
    }
    *s = (fm_shadow){.cpu = cpu, .gpu = gpu};
    *r = (fm_run){.ops     = &shadow_ops,
                  .config  = cpu->config,
                  .weights = cpu->weights,
                  .limits  = cpu->limits,
                  .act     = cpu->act,
                  .ranks   = cpu->ranks,
                  .backend = s};
    const fm_status rc = make_ready(s);
    if (rc != FM_OK) {
        destroy(r);
        return rc;
    }
    *out = r;
    return FM_OK;
}
