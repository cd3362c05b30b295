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

static void list_layer(fm_shadow *s, const fm_layer_weights *c, const fm_layer_weights *g)
{
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

static void list_mtp(fm_shadow *s, const fm_mtp_weights *c, const fm_mtp_weights *g)
{
    add(s, "enorm", c->enorm, g->enorm);
    add(s, "hnorm", c->hnorm, g->hnorm);
    add_matrix(s, "eh_proj of embeddings", &c->of_embed, &g->of_embed);
    add_matrix(s, "eh_proj of states", &c->of_state, &g->of_state);
    list_layer(s, &c->layer, &g->layer);
    add(s, "shared_head.norm", c->norm, g->norm);
}

/* RECEIVED and GATHERED are other names of buffers on one rank; routing is compared by route.c. */
static void list_buffers(fm_shadow *s)
{
    const fm_activations *l = &s->cpu->limits.activations;
    for (int i = 0; i < l->n; i++) {
        const fm_activation *b  = &l->buffer[i];
        const int            is_input = b->type == FM_ACT_INPUT;
        if (!b->width || b->type == FM_ACT_ROUTING) continue;
        if (b->use == FM_ACT_RECEIVED || b->use == FM_ACT_GATHERED) continue;
        void *c = fm_activation_at(&s->cpu->act, b), *g = fm_activation_at(&s->gpu->act, b);
        s->twin[s->n_twin++] =
            is_input ? (fm_shadow_twin){((fm_act *)c)->data, ((fm_act *)g)->data, b->name, b->width,
                                        ((fm_act *)c)->stride, 1}
                     : (fm_shadow_twin){((fm_f32s *)c)->data, ((fm_f32s *)g)->data, b->name,
                                        b->width, b->width, 0};
    }
}

fm_status fm__shadow_list_twins(fm_shadow *s)
{
    const fm_weights *c = s->cpu->weights, *g = s->gpu->weights;
    s->twin = calloc((size_t)((c->n_layer + 2 * c->n_mtp) * PER_LAYER + BESIDES), sizeof *s->twin);
    if (!s->twin) return fm_fail(FM_E_OOM, "shadow run");
    list_buffers(s);
    add(s, "embed_tokens", c->embed, g->embed);
    for (int l = 0; l < c->n_layer; l++) list_layer(s, &c->layer[l], &g->layer[l]);
    for (int l = 0; l < c->n_mtp; l++) list_mtp(s, &c->mtp[l], &g->mtp[l]);
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
