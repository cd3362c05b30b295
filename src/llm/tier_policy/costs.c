/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/tier_policy/costs.h"

enum {
    LEAST_TOKENS = 32, /* shorter prefixes are computed along with the rest of the prompt */
    TRY_AGAIN    = 64, /* loads declined before one is tried again, to measure */
    LEAST_PAGES  = 16, /* before a step, however short it is */
};
static const double newest = 0.25; /* weight of the newest measurement */
static const double part = 0.75; /* of a step: where copies do make steps longer, they become fewer */

static void learn(double *mean, double value)
{
    *mean = *mean > 0 ? (1 - newest) * *mean + newest * value : value;
}

void fm_load_costs_computed(fm_load_costs *c, int n_token, double seconds)
{
    if (n_token > 0 && seconds > 0) learn(&c->compute, seconds / n_token);
}

void fm_load_costs_loaded(fm_load_costs *c, int is_from_files, int n_page, double seconds)
{
    if (n_page > 0 && seconds > 0) learn(&c->load[is_from_files], seconds / n_page);
}

void fm_load_costs_step(fm_load_costs *c, double seconds)
{
    if (seconds > 0) learn(&c->step, seconds);
}

int fm_load_fits_step(const fm_load_costs *c, int n_page)
{
    if (!(c->step > 0) || !(c->load[0] > 0)) return n_page;
    const double fit = part * c->step / c->load[0];
    const double n   = fit > LEAST_PAGES ? fit : LEAST_PAGES;
    return n < n_page ? (int)n : n_page;
}

int fm_load_pays(fm_load_costs *c, int is_from_files, int n_page, int n_token)
{
    const double load     = c->load[is_from_files];
    const int    is_known = c->compute > 0 && load > 0;
    const int    is_long  = n_token >= LEAST_TOKENS;
    const int    is_cheap = !is_known || load * n_page < c->compute * n_token;
    if (c->is_forced || (is_long && (is_cheap || c->n_declined >= TRY_AGAIN))) {
        c->n_declined = 0;
        return 1;
    }
    c->n_declined++;
    return 0;
}
