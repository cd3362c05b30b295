/* SPDX-License-Identifier: Apache-2.0 */
#include "route_search.h"

#include "base/rng.h"

enum { EARLY = 48 }; /* requests that are sent while the first prefixes are computed */

typedef struct {
    uint64_t seed, n_draw;
} dice;

static int draw(dice *d, int n) { return (int)(fm_rng_u32(d->seed, d->n_draw++) % (uint32_t)n); }

static void swap(int *a, int *b)
{
    const int was = *a;
    *a            = *b;
    *b            = was;
}

/* One to three requests go elsewhere, or change places; half of them early ones. */
static void change(model_places *p, int n_request, dice *d)
{
    for (int n = 1 + draw(d, 3); n > 0; n--) {
        const int among = draw(d, 2) ? EARLY : n_request;
        int      *one   = &p->server[draw(d, among)];
        if (draw(d, 2))
            *one = draw(d, MODEL_WORKERS);
        else
            swap(one, &p->server[draw(d, among)]);
    }
}

static double cost(const model_result *r) { return r->ttft99 + 0.3 * r->ttft50; }

model_result model_search(const model_load *l, int n_core, uint64_t seed, int n_try)
{
    static model_places best;
    dice                d = {.seed = seed};
    model_result        r = model_run_places(l, MODEL_OURS, n_core, seed, &best);
    for (int i = 0; i < n_try; i++) {
        model_places p = best;
        change(&p, l->n_request, &d);
        const model_result now = model_run_places(l, MODEL_GIVEN, n_core, seed, &p);
        if (cost(&now) > cost(&r)) continue;
        r    = now;
        best = p;
    }
    return r;
}
