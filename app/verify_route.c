/* SPDX-License-Identifier: Apache-2.0 */
/* Routing against golden data.  Where experts or groups nearly tie, rounding decides, and one other
 * choice changes every number behind it: so the golden choice is taken, and the router's own must
 * be one that rounding explains. */
#include "llm/op/route_check.h"
#include "verify.h"

/* Scores of a router whose input is off by the roundings of BF16 layers; part of the larger score.
 */
static const float near = 0x1p-4f;

static int is_same(const int32_t *a, const int32_t *b, int k)
{
    for (int i = 0; i < k; i++) {
        int found = 0;
        for (int j = 0; j < k; j++) found |= a[i] == b[j];
        if (!found) return 0;
    }
    return 1;
}

/* The weights these experts have by the row's probabilities. */
static void take(const fm_route_row *x, const int32_t *want, int32_t *expert, float *weight)
{
    const fm_model_config *c   = x->config;
    float                  sum = 0;
    for (int i = 0; i < c->top_k; i++) sum += x->probability[want[i]];
    for (int i = 0; i < c->top_k; i++) {
        const float p = x->probability[want[i]];
        expert[i]     = want[i];
        weight[i]     = (c->norm_top_k ? p / (sum + 1e-20f) : p) * c->routed_scale;
    }
}

static int moe_layers_before(const fm_model_config *c, int layer)
{
    int n = 0;
    for (int l = 0; l < layer; l++) n += fm_layer_is_moe(c, l);
    return n;
}

static void end_op(fm_op_hook *h, fm_run *r, const fm_op_call *call)
{
    const fm_guide        *g       = (const fm_guide *)h;
    const fm_golden_case  *c       = g->golden;
    const fm_model_config *m       = r->config;
    const int              n_token = c->n_prompt + c->n_greedy - 1, k = m->top_k;
    if (call->op != FM_OP_ROUTE || r->fault != FM_OK) return;
    const int32_t *layer = c->route + (size_t)moe_layers_before(m, call->layer) * n_token * k;
    for (int i = 0; i < r->batch->n_row; i++) {
        const int32_t     *want = layer + r->batch->pos[i] * k;
        int32_t           *own  = r->act.route.expert + i * k;
        const fm_route_row x    = {m, r->act.score.data + (size_t)i * m->n_expert, call->weights,
                                   near};
        if (is_same(want, own, k)) continue;
        *(fm_route_is_possible(&x, want) ? &g->v->n_tied : &g->v->n_misrouted) += 1;
        take(&x, want, own, r->act.route.weight + i * k);
    }
}

void fm_guide_on(fm_guide *g, fm_run *r, const fm_golden_case *c, fm_verify_case *v)
{
    *g           = (fm_guide){.hook = {.end = end_op}, .golden = c, .v = v};
    v->is_guided = 1;
    fm_run_add_hook(r, &g->hook);
}

void fm_guide_off(fm_guide *g, fm_run *r) { fm_run_remove_hook(r, &g->hook); }
