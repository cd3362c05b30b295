/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/engine_layers.h"

#include <math.h>
#include <stdlib.h>

static double matrix_bytes(const fm_matrix *m)
{
    return (double)m->n * m->k * (double)fm_dtype_bytes(m->dtype);
}

static double mlp_bytes(const fm_mlp_weights *m)
{
    return matrix_bytes(&m->gate_up) + matrix_bytes(&m->down);
}

/* Of n_expert, each row wants top_k, as if by lot. */
static double share_touched(const fm_model_config *c, int n_row)
{
    return 1 - pow(1 - (double)c->top_k / c->n_expert, n_row);
}

static double layer_cost(const fm__layer_costs *c, const fm_layer_weights *w)
{
    const fm_attn_weights *a   = &w->attn;
    double                 sum = matrix_bytes(&a->q_down) + matrix_bytes(&a->q_up) +
                 matrix_bytes(&a->kv_down) + matrix_bytes(&a->out) + mlp_bytes(&w->ffn.mlp);
    const fm_range head = fm_shard_heads(c->shard, c->config);
    for (int h = 0; h < fm_range_len(head); h++)
        sum += matrix_bytes(&a->k_up_t[h]) + matrix_bytes(&a->v_up[h]);
    if (!w->ffn.is_moe) return sum;
    double         experts = 0;
    const fm_range mine    = fm_shard_experts(c->shard, c->config);
    for (int i = mine.begin; i < mine.end; i++) experts += mlp_bytes(&w->ffn.expert[i]);
    return sum + matrix_bytes(&w->ffn.router) + experts * share_touched(c->config, c->n_row);
}

fm_status fm__cut_by_cost(fm_range *stage, int n_stage, const fm__layer_costs *c)
{
    const int  n    = c->config->n_layer;
    fm_slab    none = {0};
    fm_weights w    = {0};
    double    *cost = malloc((size_t)n * sizeof *cost);
    if (!cost) return fm_fail(FM_E_OOM, "costs of layers");
    const fm_weights_want want = {.shard    = c->shard,
                                  .act      = c->types->act,
                                  .dtype_of = fm_source_dtype_of,
                                  .ctx      = c->types};
    const fm_status       rc   = fm_weights_layout(&w, c->config, &want, &none);
    if (rc == FM_OK) {
        for (int l = 0; l < n; l++) cost[l] = layer_cost(c, &w.layer[l]);
        fm_layout_cut_layers(stage, n_stage, cost, n, 0, matrix_bytes(&w.head));
    }
    fm_weights_fini(&w);
    free(cost);
    return rc;
}
