/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/layouts.h"

typedef struct {
    fm_rank_sizes         *list;
    int                    n, most, n_rank;
    const fm_model_config *config;
    const fm_layout_wish  *wish;
} search;

static int suits(int n, int wish) { return !wish || n == wish; }

static int is_wanted(const fm_layout_wish *w, const fm_rank_sizes *s)
{
    return suits(s->tp, w->tp) && suits(s->pp, w->pp) && suits(s->dp, w->dp) &&
           suits(s->ep, w->ep) && (w->dp_attention < 0 || s->dp_attention == w->dp_attention);
}

static void add(search *a, fm_rank_sizes s)
{
    fm_layout any;
    if (a->n == a->most || !is_wanted(a->wish, &s)) return;
    if (fm_layout_make(&any, &s, a->config, 0, a->n_rank) != FM_OK) return;
    a->list[a->n++] = s;
}

/* Experts divided by all ranks of a stage, or whole on each; those between if they are asked for.
 */
static void add_experts(search *a, fm_rank_sizes s)
{
    const int asked = a->wish->ep;
    s.ep            = 1;
    add(a, s);
    s.ep = s.tp;
    if (s.tp > 1 && a->config->n_expert) add(a, s);
    s.ep = asked;
    if (asked > 1 && asked != s.tp && s.tp % asked == 0) add(a, s);
}

int fm_layouts_of(fm_rank_sizes *list, int most, int n_rank, const fm_model_config *c,
                  const fm_layout_wish *wish)
{
    search a = {list, 0, most, n_rank, c, wish};
    for (int tp = 1; tp <= n_rank; tp++) {
        if (n_rank % tp) continue;
        for (int pp = 1; pp <= n_rank / tp; pp++) {
            if (n_rank / tp % pp) continue;
            const int dp = n_rank / tp / pp;
            add_experts(&a, (fm_rank_sizes){.tp = tp, .pp = pp, .dp = dp});
            for (int d = 2; dp == 1 && d <= tp; d++)
                if (tp % d == 0)
                    add_experts(&a,
                                (fm_rank_sizes){.tp = tp, .pp = pp, .dp = d, .dp_attention = 1});
        }
    }
    return a.n;
}
