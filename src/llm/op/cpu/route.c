/* SPDX-License-Identifier: Apache-2.0 */
/* The three routing methods.  Ties go to the lowest group, then the lowest
 * expert; weights never contain the selection bias. */
#include <math.h>
#include <string.h>

#include "base/argmax.h"
#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu/cpu_internal.h"

enum {
    MAX_EXPERTS = 4096,
    ROWS_ALONE  = 4, /* routed by one thread sooner than the others are awake */
};

static float group_score(const float *choice, int n, fm_route_method method)
{
    float first = -INFINITY, second = -INFINITY;
    for (int i = 0; i < n; i++) { /* branch-free: the comparison is unpredictable */
        const float lower = choice[i] > first ? first : choice[i];
        first             = choice[i] > first ? choice[i] : first;
        second            = lower > second ? lower : second;
    }
    return method == FM_ROUTE_NOAUX_TC ? first + second : first;
}

/* Experts outside the top_group best groups cannot be chosen. */
static void keep_groups(const fm_model_config *c, float *choice)
{
    const int per = c->n_expert / c->n_group;
    float     score[MAX_EXPERTS];
    char      kept[MAX_EXPERTS];
    memset(kept, 0, (size_t)c->n_group);
    for (int g = 0; g < c->n_group; g++) score[g] = group_score(choice + g * per, per, c->route);
    for (int i = 0; i < c->top_group; i++) {
        const int g = fm_argmax(score, c->n_group);
        kept[g]     = 1;
        score[g]    = -INFINITY;
    }
    for (int g = 0; g < c->n_group; g++)
        for (int e = g * per; e < (g + 1) * per && !kept[g]; e++) choice[e] = -INFINITY;
}

static void route_row(const fm_model_config *c, float *p, const float *bias, int32_t *expert,
                      float *weight)
{
    float choice[MAX_EXPERTS], sum = 0;
    if (c->score == FM_SCORE_SIGMOID) fm_row_sigmoid(p, c->n_expert);
    else fm_row_softmax(p, c->n_expert);
    for (int e = 0; e < c->n_expert; e++) choice[e] = bias ? p[e] + bias[e] : p[e];
    if (c->route != FM_ROUTE_GREEDY && c->n_group > 1) keep_groups(c, choice);
    for (int i = 0; i < c->top_k; i++) {
        expert[i]         = fm_argmax(choice, c->n_expert);
        weight[i]         = p[expert[i]];
        choice[expert[i]] = -INFINITY;
        sum += weight[i];
    }
    for (int i = 0; i < c->top_k; i++)
        weight[i] = (c->norm_top_k ? weight[i] / (sum + 1e-20f) : weight[i]) * c->routed_scale;
}

typedef struct {
    const fm_model_config *c;
    fm_routing             out;
    fm_f32s                score;
    const float           *bias;
} routing;

static void route_one(const routing *a, int i)
{
    const size_t at = (size_t)i * (size_t)a->c->top_k;
    route_row(a->c, a->score.data + (size_t)i * (size_t)a->score.width, a->bias,
              a->out.expert + at, a->out.weight + at);
}

void fm__cpu_route(fm_run *r, fm_routing out, fm_f32s score, const float *bias)
{
    const routing a = {r->config, out, score, bias};
    const int     n = r->batch->n_row;
    FM_BUG_UNLESS(r->config->n_expert <= MAX_EXPERTS);
    if (n <= ROWS_ALONE) {
        for (int i = 0; i < n; i++) route_one(&a, i);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(fm__cpu(r)->n_thread)
    for (int i = 0; i < n; i++) route_one(&a, i);
}
