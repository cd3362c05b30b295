/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/draft/gain.h"

static const double forget_step = 0.98, forget_draft = 0.9, prior_weight = 2;
enum { MIN_STEPS = 8 };

void fm_step_cost_add(fm_step_cost *c, int n_row, int n_token, double seconds)
{
    const double r = n_row;
    c->n           = forget_step * c->n + 1;
    c->rows        = forget_step * c->rows + r;
    c->rows2       = forget_step * c->rows2 + r * r;
    c->s           = forget_step * c->s + seconds;
    c->rows_s      = forget_step * c->rows_s + r * seconds;
    c->tokens      = forget_step * c->tokens + n_token;
}

/* Seconds a row adds.  Where all steps had the same rows, none is known. */
static double row_seconds(const fm_step_cost *c)
{
    const double spread = c->n * c->rows2 - c->rows * c->rows;
    if (spread <= 1e-9 * c->rows * c->rows) return 0;
    const double b = (c->n * c->rows_s - c->rows * c->s) / spread;
    return b > 0 ? b : 0;
}

double fm_step_cost_threshold(const fm_step_cost *c)
{
    if (c->n < MIN_STEPS || c->s <= 0) return 0;
    return row_seconds(c) * c->tokens / c->s;
}

void fm_acceptance_add(fm_acceptance *a, int n, int n_accepted)
{
    a->tried    = forget_draft * a->tried + n_accepted + (n_accepted < n);
    a->accepted = forget_draft * a->accepted + n_accepted;
}

double fm_acceptance_rate(const fm_acceptance *a, double prior)
{
    return (a->accepted + prior_weight * prior) / (a->tried + prior_weight);
}

int fm_drafts_that_pay(double rate, double threshold, int most)
{
    int    n = 0;
    double p = rate;
    while (n < most && p > threshold) {
        p *= rate;
        n++;
    }
    return n;
}
