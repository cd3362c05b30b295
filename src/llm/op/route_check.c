/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/route_check.h"

#include <math.h>

float fm_route_score(const fm_route_row *x, int expert)
{
    return x->bias ? x->probability[expert] + x->bias[expert] : x->probability[expert];
}

/* a is larger, and not by rounding. */
static int is_clearly_larger(const fm_route_row *x, float a, float b)
{
    return a - b > x->near * fmaxf(fabsf(a), fabsf(b));
}

static int n_group(const fm_model_config *c)
{
    return c->route == FM_ROUTE_GREEDY ? 1 : c->n_group;
}

static float group_score(const fm_route_row *x, int group)
{
    const int per   = x->config->n_expert / n_group(x->config);
    float     first = -INFINITY, second = -INFINITY;
    for (int e = group * per; e < (group + 1) * per; e++) {
        const float s = fm_route_score(x, e);
        if (s > first)
            second = first, first = s;
        else if (s > second)
            second = s;
    }
    return x->config->route == FM_ROUTE_NOAUX_TC ? first + second : first;
}

typedef enum { OUT, MAYBE, IN } membership; /* of a group among the top_group best */

static membership membership_of(const fm_route_row *x, int group)
{
    const float own      = group_score(x, group);
    int         n_better = 0, n_rival = 0; /* rivals: better, or nearly as good */
    if (n_group(x->config) == 1) return IN;
    for (int g = 0; g < n_group(x->config); g++) {
        const float other = group_score(x, g);
        if (g == group) continue;
        n_better += is_clearly_larger(x, other, own);
        n_rival += !is_clearly_larger(x, own, other);
    }
    return n_better >= x->config->top_group ? OUT : n_rival >= x->config->top_group ? MAYBE : IN;
}

static int contains(const int32_t *expert, int n, int e)
{
    for (int i = 0; i < n; i++)
        if (expert[i] == e) return 1;
    return 0;
}

static int has_one_of(const int32_t *expert, int n, int group, int per)
{
    for (int i = 0; i < n; i++)
        if (expert[i] / per == group) return 1;
    return 0;
}

/* No expert of this group is left out that is clearly better than the worst one chosen. */
static int misses_none(const fm_route_row *x, const int32_t *expert, int group, int per,
                       float worst)
{
    for (int e = group * per; e < (group + 1) * per; e++)
        if (is_clearly_larger(x, fm_route_score(x, e), worst) &&
            !contains(expert, x->config->top_k, e))
            return 0;
    return 1;
}

int fm_route_is_possible(const fm_route_row *x, const int32_t *expert)
{
    const fm_model_config *c     = x->config;
    const int              per   = c->n_expert / n_group(c);
    float                  worst = INFINITY;
    for (int i = 0; i < c->top_k; i++) {
        if (expert[i] < 0 || expert[i] >= c->n_expert || contains(expert, i, expert[i])) return 0;
        worst = fminf(worst, fm_route_score(x, expert[i]));
    }
    for (int g = 0; g < n_group(c); g++) {
        const int        is_used = has_one_of(expert, c->top_k, g, per);
        const membership m       = membership_of(x, g);
        if (is_used && m == OUT) return 0;
        if ((is_used || m == IN) && !misses_none(x, expert, g, per, worst)) return 0;
    }
    return 1;
}
