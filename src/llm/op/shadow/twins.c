/* SPDX-License-Identifier: Apache-2.0 */
/* Which weight and buffer of the GPU belongs to which of the CPU's. */
#include <stdlib.h>

#include "llm/op/shadow/shadow_internal.h"

enum { PER_LAYER = 16, BESIDES = 24 };

static void add(fm_shadow *s, const char *name, const void *cpu, const void *gpu)
{
    if (cpu) s->twin[s->n_twin++] = (fm_shadow_twin){.cpu = cpu, .gpu = (void *)gpu, .name = name};
}

static void add_matrix(fm_shadow *s, const char *name, const fm_matrix *cpu, const fm_matrix *gpu)
{
    if (cpu->n) add(s, name, cpu, gpu);
}

static void list_layer(fm_shadow *s, int l)
{
    const fm_layer_weights *c = &s->cpu->weights->layer[l], *g = &s->gpu->weights->layer[l];
    const fm_ffn_weights   *f = &c->ffn;
    const int               low_rank = s->cpu->config->q_lora > 0;
    add(s, "input_layernorm", c->attn.norm, g->attn.norm);
    add_matrix(s, "q_a_proj", &c->attn.q_down, &g->attn.q_down);
    add(s, "q_a_layernorm", low_rank ? c->attn.q_norm : NULL, g->attn.q_norm);
    add_matrix(s, low_rank ? "q_b_proj" : "q_proj", &c->attn.q_up, &g->attn.q_up);
    add_matrix(s, "kv_a_proj_with_mqa", &c->attn.kv_down, &g->attn.kv_down);
    add(s, "kv_a_layernorm", c->attn.kv_norm, g->attn.kv_norm);
    add(s, "kv_b_proj", &c->attn, &g->attn);
    add_matrix(s, "o_proj", &c->attn.out, &g->attn.out);
    add(s, "post_attention_layernorm", f->norm, g->ffn.norm);
    add(s, f->is_moe ? "mlp.shared_experts" : "mlp", &f->mlp, &g->ffn.mlp);
    if (!f->is_moe) return;
    add_matrix(s, "mlp.gate", &f->router, &g->ffn.router);
    add(s, "e_score_correction_bias", f->bias, g->ffn.bias);
    add(s, "mlp.experts", f->expert, g->ffn.expert);
}

static void add_act(fm_shadow *s, const char *name, fm_act cpu, fm_act gpu)
{
    if (cpu.width)
        s->twin[s->n_twin++] = (fm_shadow_twin){cpu.data, gpu.data, name, cpu.width, cpu.stride, 1};
}

static void add_f32s(fm_shadow *s, const char *name, fm_f32s cpu, fm_f32s gpu)
{
    if (cpu.width)
        s->twin[s->n_twin++] = (fm_shadow_twin){cpu.data, gpu.data, name, cpu.width, cpu.width, 0};
}

static void list_buffers(fm_shadow *s)
{
    const fm_acts *c = &s->cpu->act, *g = &s->gpu->act;
    add_f32s(s, "x", c->x, g->x);
    add_act(s, "h", c->h, g->h);
    add_f32s(s, "cq", c->cq, g->cq);
    add_act(s, "cqn", c->cqn, g->cqn);
    add_act(s, "q", c->q, g->q);
    add_f32s(s, "ckv", c->ckv, g->ckv);
    add_act(s, "o", c->o, g->o);
    add_f32s(s, "y", c->y, g->y);
    add_f32s(s, "score", c->score, g->score);
    add_act(s, "hl", c->hl, g->hl);
    add_f32s(s, "logits", c->logits, g->logits);
}

fm_status fm__shadow_list_twins(fm_shadow *s)
{
    const fm_weights *c = s->cpu->weights, *g = s->gpu->weights;
    s->twin = calloc((size_t)(c->n_layer * PER_LAYER + BESIDES), sizeof *s->twin);
    if (!s->twin) return fm_fail(FM_E_OOM, "shadow run");
    list_buffers(s);
    add(s, "embed_tokens", c->embed, g->embed);
    for (int l = 0; l < c->n_layer; l++) list_layer(s, l);
    add(s, "norm", c->norm, g->norm);
    add_matrix(s, "lm_head", &c->head, &g->head);
    return FM_OK;
}

const fm_shadow_twin *fm__shadow_twin(const fm_shadow *s, const void *cpu)
{
    const fm_shadow_twin *t = s->twin;
    while (t < s->twin + s->n_twin && t->cpu != cpu) t++;
    FM_BUG_UNLESS(t < s->twin + s->n_twin);
    return t;
}
