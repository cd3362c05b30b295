/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/tier_policy/costs.h"

enum {
    LEAST_TOKENS = 32, /* shorter prefixes are computed along with the rest of the prompt */
    TRY_AGAIN    = 64, /* loads declined before one is tried again, to measure */
};
static const double newest = 0.25; /* weight of the newest measurement */

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
