/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/draft/gain.h"

static const double forget_step = 0.98, forget_depth = 0.95, forget_draft = 0.9, prior_weight = 2;
static const double held_up    = 3;   /* times the mean: longer steps are outliers and clipped */
static const double lower      = 0.3; /* quantile of step times that is estimated */
static const double pursuit    = 0.05; /* largest relative change of the estimate by one step */
static const double much_worse = 0.9, better = 1.01;
static const double worth_it   = 1.05; /* gain over no chain: without one no cache need be filled */
static const double flattest   = 0.75; /* time of a link, at least, relative to the one before it */
enum { MIN_STEPS = 8, TRIALS = 3, FEW = 8, AGAIN_SOON = 32, AGAIN_LATE = 256 };
static const double worth_waiting = 0.1; /* tokens more per sequence */
enum { LOOK_SOON = 8, LOOK_LATE = 64, TRY_AGAIN = 256 };    /* steps */
enum { REST_AFTER = 48, REST_PERIOD = 1024, AWAKE = 64 }; /* steps */

void fm_step_cost_add(fm_step_cost *c, int n_row, int n_token, double seconds)
{
    const double r = n_row, most = held_up * c->s / (c->n > 0 ? c->n : 1);
    if (c->n >= MIN_STEPS && seconds > most) seconds = most;
    c->n      = forget_step * c->n + 1;
    c->rows   = forget_step * c->rows + r;
    c->rows2  = forget_step * c->rows2 + r * r;
    c->s      = forget_step * c->s + seconds;
    c->rows_s = forget_step * c->rows_s + r * seconds;
    c->tokens = forget_step * c->tokens + n_token;
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

double fm_expected_tokens(double rate, int n)
{
    double sum = 1, p = 1;
    for (int i = 0; i < n; i++) sum += p *= rate;
    return sum;
}

double fm_acceptance_for(double length, int n)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (fm_expected_tokens(middle, n) < length)
            low = middle;
        else
            high = middle;
    }
    return high;
}

void fm_depths_add(fm_depths *d, int n, int n_accepted)
{
    for (int i = 1; i <= n && i < FM_PACE_LINKS; i++) {
        d->tried[i]   = forget_depth * d->tried[i] + 1;
        d->reached[i] = forget_depth * d->reached[i] + (n_accepted >= i);
    }
    if (n) d->lately += 0.5 * ((n_accepted > 0) - d->lately);
}

/* What is not known of a depth is taken from the one before. */
double fm_depths_tokens(const fm_depths *d, int n)
{
    const double next = 0.8;
    double       sum = 1, p = 1;
    for (int i = 1; i <= n && i < FM_PACE_LINKS; i++) {
        const double prior = p * next;
        p                  = (d->reached[i] + prior_weight * prior) / (d->tried[i] + prior_weight);
        sum += p;
    }
    return sum;
}

int fm_pace_size(int n_seq)
{
    int b = 0;
    while (b < FM_PACE_SIZES - 1 && 2 * n_seq >= 3 << b) b++;
    return b;
}

void fm_pace_add(fm_pace *p, int n_seq, int n_link, double seconds)
{
    const int      b     = fm_pace_size(n_seq);
    const unsigned known = p->n[b][n_link]++;
    double        *s     = &p->seconds[b][n_link];
    p->last[b][n_link]   = ++p->now;
    if (!known || (known < FEW && seconds < *s)) /* the first steps have cold caches */
        *s = seconds;
    else if (known >= FEW)
        *s *= 1 + pursuit * (seconds > *s ? lower : lower - 1);
}

static double pace(const fm_pace *p, int b, const fm_depths *d, int n) /* tokens per second */
{
    return fm_depths_tokens(d, n) / p->seconds[b][n];
}

/* An upper bound of the pace, from the times of shorter chains: a link and its rows cost at least
 * `flattest` of what the link before added. */
static double pace_at_best(const fm_pace *p, int b, const fm_depths *d, int n)
{
    const double *s = p->seconds[b], more = n > 1 ? flattest * (s[n - 1] - s[n - 2]) : 0;
    return fm_depths_tokens(d, n) / (s[n - 1] + (more > 0 ? more : 0));
}

/* Whether n links should be tried where others are at present the best. */
static int is_to_try(const fm_pace *p, int b, const fm_depths *d, int n, int best)
{
    const unsigned age = p->now - p->last[b][n];
    if (p->n[b][n] < TRIALS) return 1;
    if (n && !age && d->lately > fm_depths_tokens(d, 1) - 1 + 0.25) return 1;
    const unsigned links = n ? (unsigned)n : 1; /* longer chains cost more to try */
    const int is_worse = p->n[b][n] >= FEW && pace(p, b, d, n) <= much_worse * pace(p, b, d, best);
    return age > links * (is_worse ? AGAIN_LATE : AGAIN_SOON);
}

/* A length whose upper bound is not above the best is not tried. */
int fm_pace_links(const fm_pace *p, int n_seq, const fm_depths *d, int most, int tries, int *pays)
{
    const int b    = fm_pace_size(n_seq);
    int       best = *pays = 0;
    if (p->n[b][0] < TRIALS) return 0;
    for (int n = 1; n <= most; n++) {
        if (pace_at_best(p, b, d, n) <= pace(p, b, d, best)) break;
        if (tries && is_to_try(p, b, d, n, best)) return n;
        if (p->n[b][n] < TRIALS) break;
        if (pace(p, b, d, n) > (best ? better : worth_it) * pace(p, b, d, best)) best = n, *pays = 1;
    }
    return best && tries && is_to_try(p, b, d, 0, best) ? 0 : best;
}

void fm_rest_step(fm_rest *r, int paid) { r->idle = paid ? 0 : r->idle + 1; }

int fm_rest_keeps(const fm_rest *r)
{
    return r->idle < REST_AFTER || r->idle % REST_PERIOD < AWAKE;
}

int fm_rest_drafts(const fm_rest *r)
{
    return r->idle < REST_AFTER || (fm_rest_keeps(r) && r->idle % REST_PERIOD >= AWAKE / 2);
}

void fm_look_step(fm_look *l) { l->now++; }

int fm_look_is_due(const fm_look *l)
{
    return l->now - l->looked >= (l->period ? l->period : LOOK_SOON);
}

void fm_look_begin(fm_look *l)
{
    l->is_trial = !l->is_begun || l->now - l->tried >= TRY_AGAIN;
    if (l->is_trial) l->tried = l->now;
    l->is_begun = 1;
    l->sum      = 0;
}

void fm_look_add(fm_look *l, double extra) { l->sum += extra; }

void fm_look_end(fm_look *l, int n_seq)
{
    l->extra    = n_seq ? l->sum / n_seq : 0;
    l->looked   = l->now;
    l->is_trial = 0;
    if (l->extra >= worth_waiting || !l->period) l->period = LOOK_SOON;
    else if (l->period < LOOK_LATE) l->period *= 2;
}

int fm_look_proposes(const fm_look *l) { return l->is_trial || l->extra >= worth_waiting; }
