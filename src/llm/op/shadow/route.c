/* SPDX-License-Identifier: Apache-2.0 */
/* Routing compared: where the scores of two experts nearly tie, either may be
 * chosen; the GPU's exp() need not round as the CPU's does. */
#include <math.h>
#include <string.h>

#include "llm/op/shadow/shadow_internal.h"

static const float NEAR = 0x1p-10f; /* part of the larger score */

typedef struct {
    const fm_model_config *c;
    const float   *p, *bias; /* [E] */
    const int32_t *want, *got; /* [k] */
} choice;

static float score(const choice *x, int e)
{
    return x->bias ? x->p[e] + x->bias[e] : x->p[e];
}

static int is_near(float a, float b)
{
    return fabsf(a - b) <= NEAR * fmaxf(fabsf(a), fabsf(b));
}

static int slot_of(const int32_t *expert, int k, int e)
{
    for (int i = 0; i < k; i++)
        if (expert[i] == e) return i;
    return -1;
}

static float group_score(const choice *x, int group)
{
    const int per   = x->c->n_expert / x->c->n_group;
    float     first = -INFINITY, second = -INFINITY;
    for (int e = group * per; e < (group + 1) * per; e++) {
        const float s = score(x, e);
        if (s > first) second = first, first = s;
        else if (s > second) second = s;
    }
    return x->c->route == FM_ROUTE_NOAUX_TC ? first + second : first;
}

/* A group's score nearly ties with that of one the CPU chose from. */
static int group_ties(const choice *x, int e)
{
    const int per = x->c->n_expert / x->c->n_group;
    if (x->c->route == FM_ROUTE_GREEDY || x->c->n_group < 2) return 0;
    for (int i = 0; i < x->c->top_k; i++)
        if (is_near(group_score(x, x->want[i] / per), group_score(x, e / per))) return 1;
    return 0;
}

static int may_be_chosen(const choice *x, int slot)
{
    const int got = x->got[slot];
    if (got < 0 || got >= x->c->n_expert || slot_of(x->got, slot, got) >= 0) return 0;
    return is_near(score(x, x->want[slot]), score(x, got)) || group_ties(x, got);
}

/* Slots with another expert than the CPU's; -1: one of them cannot be, and that is said. */
static int compare_choice(fm_run *r, const choice *x, int row)
{
    const fm_shadow *s = fm__shadow(r);
    int              n = 0;
    for (int i = 0; i < x->c->top_k; i++) {
        if (x->got[i] == x->want[i]) continue;
        n++;
        if (may_be_chosen(x, i)) continue;
        const int is_one = x->got[i] >= 0 && x->got[i] < x->c->n_expert;
        r->fault         = fm_fail(FM_E_DEVICE,
                                   "--shadow: layer %d, route, tensor expert, row %d, column %d: "
                                   "expert %d (score %.9g) on the CPU, %d (score %.9g) on the GPU, "
                                   "tolerance %.3g",
                                   r->call.layer, s->row_from[row], i, x->want[i],
                                   (double)score(x, x->want[i]), x->got[i],
                                   is_one ? (double)score(x, x->got[i]) : NAN,
                                   (double)(NEAR * fabsf(score(x, x->want[i]))));
        return -1;
    }
    return n;
}

static void compare_weights(fm_run *r, const float *want, const float *got, int row)
{
    fm_shadow       *s   = fm__shadow(r);
    fm_shadow_count *n   = &s->count[FM_OP_ROUTE];
    const double     may = fm__shadow_bound[FM_OP_ROUTE].of_value;
    for (int i = 0; i < r->config->top_k; i++) {
        const double w = (double)want[i], off = fabs((double)got[i] - w);
        if (!(off <= may * fabs(w))) {
            r->fault = fm_fail(FM_E_DEVICE,
                               "--shadow: layer %d, route, tensor weight, row %d, column %d: %.9g "
                               "on the CPU, %.9g on the GPU, tolerance %.3g",
                               r->call.layer, s->row_from[row], i, w, (double)got[i], may * fabs(w));
            return;
        }
        if (off > n->most * fabs(w)) n->most = off / fabs(w);
    }
}

void fm__shadow_compare_routes(fm_run *r, const fm_op_call *c)
{
    fm_shadow       *s   = fm__shadow(r);
    const fm_routing cpu = r->act.route, gpu = s->gpu->act.route;
    const fm_f32s    probability = r->act.score; /* by now */
    const size_t     k           = (size_t)r->config->top_k;
    const size_t     bytes       = (size_t)c->n_row * k * sizeof(int32_t);
    int32_t         *expert      = (int32_t *)s->room;
    float           *weight      = (float *)(s->room + bytes);
    fm__shadow_bring(r, expert, gpu.expert, bytes);
    fm__shadow_bring(r, weight, gpu.weight, bytes);
    for (int i = 0; r->fault == FM_OK && i < c->n_row; i++) {
        const size_t at = (size_t)i * k;
        const float *p  = probability.data + (size_t)i * (size_t)probability.width;
        const choice x  = {r->config, p, c->weights, cpu.expert + at, expert + at};
        const int    n  = compare_choice(r, &x, i);
        if (n == 0) compare_weights(r, cpu.weight + at, weight + at, i);
        if (n > 0) s->count[FM_OP_ROUTE].n_swap += n;
    }
    s->count[FM_OP_ROUTE].n_value += (int64_t)c->n_row * r->config->top_k;
    fm__shadow_send(r, gpu.expert, cpu.expert, bytes);
    fm__shadow_send(r, gpu.weight, cpu.weight, bytes);
}
