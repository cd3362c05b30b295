/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/gp.h"
#include "tune/tpe.h"

enum { FAR_EVERY = 10 }; /* a model can be wrong: so often a point far from all others is tried */

static const fm_search_sampler samplers[] = {
    {"gp", fm_gp_score},
    {"tpe", fm_tpe_score},
    {"random", NULL},
};

const fm_search_sampler *fm_search_sampler_find(const char *name)
{
    for (size_t i = 0; i < sizeof samplers / sizeof samplers[0]; i++)
        if (!strcmp(samplers[i].name, name)) return &samplers[i];
    return NULL;
}

/* Points before the model has anything to go by: a few more than there are
 * dimensions, fewer where the space is small. */
static int n_start(const fm_space *s)
{
    const double size = fm_space_size(s);
    int          n    = s->n + 3;
    if (n > 12) n = 12;
    while (n > 2 && n > size / 12) n--;
    return n;
}

static double nearest(const fm_study *s, const fm_point *p)
{
    double near = INFINITY;
    for (int i = 0; i < s->n; i++) {
        const double d = fm_point_distance(s->space, p, &s->trial[i].at);
        if (d < near) near = d;
    }
    return near;
}

/* Each parameter is drawn on its own scale, so that a branch with few points is met as
 * often as one with many.  A space that is nearly exhausted: any candidate. */
static fm_status draw(fm_point *out, const fm_study *s, fm_mt *random)
{
    enum { TRIES = 100 };
    for (int k = 0; k < TRIES; k++) {
        FM_TRY(fm_point_random(s->space, random, out));
        if (!fm_study_has(s, out)) return FM_OK;
    }
    fm_candidates c = {0};
    FM_TRY(fm_candidates_make(&c, s, random));
    *out = c.point[fm_mt_python_below(random, (uint32_t)c.n)];
    fm_candidates_fini(&c);
    return FM_OK;
}

/* Of a few drawn at random, the one farthest from all before it. */
static fm_status draw_far(fm_point *out, const fm_study *s, fm_mt *random)
{
    enum { FEW = 12 };
    double best_near = -1;
    for (int k = 0; k < FEW; k++) {
        fm_point p;
        FM_TRY(draw(&p, s, random));
        const double near = nearest(s, &p);
        if (near <= best_near) continue;
        best_near = near;
        *out      = p;
    }
    return FM_OK;
}

static int largest(const double *score, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    return best;
}

static fm_status by_model(fm_point *out, const fm_search_sampler *how, const fm_study *s,
                          fm_mt *random)
{
    fm_candidates c = {0};
    FM_TRY(fm_candidates_make(&c, s, random));
    double   *score = malloc((size_t)c.n * sizeof *score);
    fm_status rc    = score ? how->score(score, s, &c, random) : fm_fail(FM_E_OOM, "candidates");
    if (rc == FM_OK) *out = c.point[largest(score, c.n)];
    free(score);
    fm_candidates_fini(&c);
    return rc;
}

static int n_with_value(const fm_study *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->trial[i].state == FM_TRIAL_OK;
    return n;
}

fm_status fm_suggest(fm_point *out, const fm_search_sampler *how, const fm_study *s)
{
    fm_mt random;
    fm_mt_seed_python(&random, s->seed * 1000003u + (uint64_t)s->n);
    if (!how->score) return draw(out, s, &random);
    if (s->n < n_start(s->space) || n_with_value(s) < 2) return draw_far(out, s, &random);
    if (s->n % FAR_EVERY == FAR_EVERY - 1) return draw_far(out, s, &random);
    return by_model(out, how, s, &random);
}
