/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/work.h"

#include <math.h>

#include "llm/kernel/draft_head/draft_head.h"
#include "llm/model/model.h"

typedef struct {
    fm_stage_work    *to;
    const fm_model   *model;
    const fm_weights *w;
    int               on_gpu;
} counting;

static fm_dtype factor_of(const counting *c, const fm_matrix *m)
{
    if (c->w->act == FM_F32) return FM_F32;
    return m->dtype == FM_FP8 && c->on_gpu && c->w->config->fp8_activations ? FM_FP8 : FM_BF16;
}

static fm_product product_of(const counting *c, fm_work_kind kind, const fm_matrix *m, double count)
{
    return (fm_product){.kind   = kind,
                        .factor = factor_of(c, m),
                        .bytes  = fm_matrix_bytes(m),
                        .flops  = 2.0 * m->n * m->k,
                        .count  = count};
}

static int is_alike(const fm_product *a, const fm_product *b)
{
    return a->kind == b->kind && a->factor == b->factor && a->bytes == b->bytes &&
           a->flops == b->flops;
}

static void add(counting *c, fm_work_kind kind, const fm_matrix *m, double count)
{
    fm_stage_work   *s = c->to;
    const fm_product p = product_of(c, kind, m, count);
    if (!m->n) return;
    for (int i = 0; i < s->n_product; i++)
        if (is_alike(&s->product[i], &p)) {
            s->product[i].count += count;
            return;
        }
    FM_BUG_UNLESS(s->n_product < FM_MAX_PRODUCT);
    s->product[s->n_product++] = p;
}

static void add_mlp(counting *c, const fm_mlp_weights *m)
{
    add(c, FM_WORK_MLP, &m->gate_up, 1);
    add(c, FM_WORK_MLP, &m->down, 1);
}

static void take_expert(counting *c, const fm_ffn_weights *f)
{
    const fm_weights *w = c->w;
    for (int e = 0; e < w->config->n_expert && !c->to->expert.bytes; e++) {
        const fm_mlp_weights *m = &f->expert[e];
        if (!m->gate_up.n) continue;
        const fm_product up   = product_of(c, FM_WORK_EXPERTS, &m->gate_up, 1);
        const fm_product down = product_of(c, FM_WORK_EXPERTS, &m->down, 1);
        c->to->expert         = up;
        c->to->expert.bytes += down.bytes;
        c->to->expert.flops += down.flops;
        c->to->expert.count = fm_shard_n_expert(&w->shard, w->config);
    }
}

static void add_layer(counting *c, const fm_layer_weights *l)
{
    const fm_matrix *linear[FM_MAX_LINEAR];
    const int        n = c->model->linears(l, linear);
    for (int i = 0; i < n; i++) add(c, FM_WORK_LINEAR, linear[i], 1);
    if (l->ffn.mlp.inter) add_mlp(c, &l->ffn.mlp);
    if (!l->ffn.is_moe) return;
    add(c, FM_WORK_LINEAR, &l->ffn.router, 1);
    take_expert(c, &l->ffn);
    c->to->n_moe++;
}

/* A byte for each weight, in E4M3 on a GPU (op/cuda/drafts.c) and in integers on a CPU that
 * multiplies those faster (op/cpu/draft_head.c). */
static fm_product link_head_of(const counting *c, int has_copy)
{
    const fm_matrix *head = &c->w->head;
    fm_product       p    = product_of(c, FM_WORK_HEAD, head, head->n ? 1 : 0);
    if (!has_copy || (!c->on_gpu && !fm_draft_head_pick())) return p;
    p.bytes = (double)head->n * head->k;
    if (c->on_gpu) p.factor = FM_FP8;
    return p;
}

void fm_stage_work_of(fm_stage_work *out, const fm_weights *w, double cached_bytes, int on_gpu,
                      int has_draft_head)
{
    const fm_model_config *c = w->config;
    *out                     = (fm_stage_work){.n_layer       = w->n_layer,
                                               .n_draft_layer = w->n_mtp > 0,
                                               .hidden        = c->hidden,
                                               .heads         = w->n_head,
                                               .cached_bytes  = cached_bytes,
                                               .n_expert      = c->n_expert,
                                               .top_k         = c->top_k,
                                               .shared_inter  = (double)c->n_shared * c->moe_inter,
                                               .moe_inter     = c->moe_inter};
    counting        all      = {.to = out, .w = w, .on_gpu = on_gpu};
    const fm_status found    = fm_model_find(&all.model, c);
    FM_BUG_UNLESS(found == FM_OK); /* whoever laid out the weights had it */
    if (w->n_layer) out->attend = all.model->attention(c, &w->layer[0].attn, w->n_head);
    for (int l = 0; l < w->n_layer; l++) add_layer(&all, &w->layer[l]);
    add(&all, FM_WORK_HEAD, &w->head, 1);
    out->link_head = link_head_of(&all, has_draft_head);
}

double fm_experts_met(const fm_stage_work *s, double rows)
{
    return s->n_expert > 0 ? s->n_expert * (1 - pow(1 - s->top_k / s->n_expert, rows)) : 0;
}
