/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOISE_TIMES 5.0
#define OWN_TIMES 3.0 /* its own scatter: most of its repeats are as slow as its median */
#define MOST_BELOW 0.8 /* of a rate: this is slow beside any noise */

enum { FEW = 3 };

/* The others of a sample's kind. */
typedef struct {
    double *median, *spread; /* [n] room for all samples */
    int     n;
} others;

static int is_of_kind(const fm_sample *a, const fm_sample *b)
{
    return a->rate.n > 0 && b->rate.n > 0 && a->kind && b->kind && !strcmp(a->kind, b->kind);
}

static void gather(others *o, const fm_sample *sample, int n, int but)
{
    o->n = 0;
    for (int i = 0; i < n; i++) {
        if (i == but || !is_of_kind(&sample[i], &sample[but])) continue;
        o->median[o->n]   = sample[i].rate.median;
        o->spread[o->n++] = sample[i].rate.spread;
    }
}

/* Share by which x is worse than ref; negative: better. */
static double worse_by(const fm_metric *m, double x, double ref)
{
    return m->is_time ? x / ref - 1 : 1 - x / ref;
}

/* Slow at its best, too, or so slow in most repeats that the others do not matter. */
static int is_steady(const fm_metric *m, const fm_rate *r, double ref, double off, double threshold)
{
    if (worse_by(m, r->best, ref) > threshold / 2) return 1;
    return off > 2 * threshold && fabs(ref - r->median) > OWN_TIMES * r->spread;
}

static double threshold_of(const fm_metric *m, double noise)
{
    const double t = fmax(m->least, NOISE_TIMES * noise);
    return m->is_time ? t : fmin(t, fmax(m->least, MOST_BELOW));
}

static void judge(fm_deviation *d, const fm_metric *m, const fm_rate *r, others *o)
{
    const fm_rate their     = fm_rate_of(o->median, o->n);
    const double  theirs    = fm_rate_of(o->spread, o->n).median;
    const double  scatter   = o->n < FEW ? fmax(theirs, r->spread) : theirs;
    const double  noise     = fmax(their.spread, scatter) / their.median;
    const double  threshold = threshold_of(m, noise);
    const double  off       = worse_by(m, r->median, their.median);
    d->others               = their.median;
    d->n_other              = o->n;
    if (!(off > threshold) || fabs(r->median - their.median) < m->least_off) return;
    d->is_unsteady = !is_steady(m, r, their.median, off, threshold);
    if (!d->is_unsteady) d->off = off;
}

void fm_compare(const fm_metric *m, const fm_sample *sample, int n, fm_deviation *out)
{
    double *room = calloc(2 * (size_t)n + 1, sizeof *room);
    FM_BUG_UNLESS(room != NULL);
    others o = {.median = room, .spread = room + n};
    for (int i = 0; i < n; i++) {
        out[i] = (fm_deviation){0};
        gather(&o, sample, n, i);
        if (o.n > 0) judge(&out[i], m, &sample[i].rate, &o);
    }
    free(room);
}

void fm_deviation_words(const fm_metric *m, double off, char *out, size_t size)
{
    if (!m->is_time)
        snprintf(out, size, "%.0f %% below", 100 * off);
    else
        snprintf(out, size, off < 9 ? "%.1f times" : "%.0f times", 1 + off);
}
