/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers a stage of the pipeline has. */
#include <errno.h>
#include <stdlib.h>

#include "llm/rank/layout.h"

typedef struct {
    const double *cost;
    int           n_layer;
    double        embed, head;
} work;

/* Layers that fit into one stage of at most `limit`, from `first` on, leaving
 * one for each of `n_after` stages behind it. */
static int fill_stage(const work *w, int first, int n_after, double limit)
{
    double sum = first == 0 ? w->embed : 0;
    int    end = first;
    while (end < w->n_layer - n_after) {
        const int is_last = end + 1 == w->n_layer;
        sum += w->cost[end] + (is_last ? w->head : 0);
        if (sum > limit && end > first) break;
        end++;
    }
    return end;
}

static double stage_cost(const work *w, fm_range s)
{
    double sum = (s.begin == 0 ? w->embed : 0) + (s.end == w->n_layer ? w->head : 0);
    for (int l = s.begin; l < s.end; l++) sum += w->cost[l];
    return sum;
}

static double cut(const work *w, fm_range *stage, int n_stage, double limit)
{
    double worst = 0;
    for (int p = 0, at = 0; p < n_stage; p++) {
        const int end   = p == n_stage - 1 ? w->n_layer : fill_stage(w, at, n_stage - 1 - p, limit);
        stage[p]        = (fm_range){at, end};
        const double is = stage_cost(w, stage[p]);
        if (is > worst) worst = is;
        at = end;
    }
    return worst;
}

/* The greedy cut meets any limit that can be met; the least one is found by
 * halving, since costs are few enough digits long for that to end. */
void fm_layout_cut_layers(fm_range *stage, int n_stage, const double *cost, int n_layer,
                          double embed_cost, double head_cost)
{
    enum { HALVINGS = 60 };
    FM_BUG_UNLESS(n_stage >= 1 && n_stage <= n_layer);
    const work w  = {cost, n_layer, embed_cost, head_cost};
    double     lo = 0, hi = embed_cost + head_cost;
    for (int l = 0; l < n_layer; l++) hi += cost[l];
    for (int i = 0; i < HALVINGS; i++) {
        const double mid = (lo + hi) / 2;
        if (cut(&w, stage, n_stage, mid) <= mid) hi = mid;
        else lo = mid;
    }
    cut(&w, stage, n_stage, hi);
}

fm_status fm_layout_read_layers(fm_range *stage, int n_stage, const char *list, int n_layer)
{
    int         at = 0;
    const char *s  = list;
    for (int p = 0; p < n_stage; p++) {
        char *end;
        errno        = 0;
        const long n = strtol(s, &end, 10);
        if (end == s || errno || n < 1 || n > n_layer - at || *end != (p + 1 < n_stage ? ',' : 0))
            return fm_fail(FM_E_ARG,
                           "--pp-layer-partition \"%s\": %d numbers are needed, each at least 1, "
                           "that add up to the %d layers of the model",
                           list, n_stage, n_layer);
        stage[p] = (fm_range){at, at + (int)n};
        at += (int)n;
        s = end + 1;
    }
    if (at != n_layer)
        return fm_fail(FM_E_ARG,
                       "--pp-layer-partition \"%s\" adds up to %d; the model has %d layers", list,
                       at, n_layer);
    return FM_OK;
}
