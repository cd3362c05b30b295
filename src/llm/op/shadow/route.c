/* SPDX-License-Identifier: Apache-2.0 */
/* Routing compared: where the scores of two experts nearly tie, either may be
 * chosen; the GPU's exp() need not round as the CPU's does. */
#include <math.h>

#include "llm/op/route_check.h"
#include "llm/op/shadow/shadow_internal.h"

static const float NEAR = 0x1p-10f; /* part of the larger score */

/* Slots with another expert than the CPU's; -1: they cannot be chosen, and that is said. */
static int compare_choice(fm_run *r, const fm_route_row *x, const int32_t *want, const int32_t *got,
                          int row)
{
    int n = 0, first = -1;
    for (int i = r->config->top_k - 1; i >= 0; i--)
        if (got[i] != want[i]) n++, first = i;
    if (n == 0 || fm_route_is_possible(x, got)) return n;
    const int is_one = got[first] >= 0 && got[first] < r->config->n_expert;
    r->fault         = fm_fail(FM_E_DEVICE,
                               "--shadow: layer %d, route, tensor expert, row %d, column %d: expert %d "
                                       "(score %.9g) on the CPU, %d (score %.9g) on the GPU, tolerance %.3g",
                               r->call.layer, fm__shadow(r)->row_from[row], first, want[first],
                               (double)fm_route_score(x, want[first]), got[first],
                       is_one ? (double)fm_route_score(x, got[first]) : NAN,
                               (double)(NEAR * fabsf(fm_route_score(x, want[first]))));
    return -1;
}

static void compare_weights(fm_run *r, const float *want, const float *got, int row)
{
    fm_shadow       *s   = fm__shadow(r);
    fm_shadow_count *n   = &s->count[FM_OP_ROUTE];
    const double     may = fm__shadow_bound[FM_OP_ROUTE].of_value;
    for (int i = 0; i < r->config->top_k; i++) {
        const double w = (double)want[i], off = fabs((double)got[i] - w);
        if (!(off <= may * fabs(w))) {
            r->fault =
                fm_fail(FM_E_DEVICE,
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
        const size_t       at = (size_t)i * k;
        const float       *p  = probability.data + (size_t)i * (size_t)probability.width;
        const fm_route_row x  = {r->config, p, c->weights, NEAR};
        const int          n  = compare_choice(r, &x, cpu.expert + at, expert + at, i);
        if (n == 0) compare_weights(r, cpu.weight + at, weight + at, i);
        if (n > 0) s->count[FM_OP_ROUTE].n_swap += n;
    }
    s->count[FM_OP_ROUTE].n_value += (int64_t)c->n_row * r->config->top_k;
    fm__shadow_send(r, gpu.expert, cpu.expert, bytes);
    fm__shadow_send(r, gpu.weight, cpu.weight, bytes);
}
