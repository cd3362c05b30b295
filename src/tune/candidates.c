/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/candidates.h"

#include <math.h>
#include <stdlib.h>

enum { ALL_UP_TO = 4096, COUNT_UP_TO = 1 << 18, N_RANDOM = 1500, N_PARENT = 6, N_CHILD = 80 };

/* How unlike two points are in a parameter, 0 to 1: the difference on its scale; for choices
 * without an order, and where it exists in one of them only, 1. */
static double distance_in(const fm_param *p, double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) != isnan(b);
    if (p->kind == FM_PARAM_CHOICE && !p->ordered) return a != b;
    if (p->kind == FM_PARAM_CHOICE) return p->n_choice > 1 ? fabs(a - b) / (p->n_choice - 1) : 0;
    return fabs(fm_param_unit(p, a) - fm_param_unit(p, b));
}

double fm_point_distance(const fm_space *s, const fm_point *a, const fm_point *b)
{
    double sum = 0;
    for (int i = 0; i < s->n; i++) {
        const double d = distance_in(&s->param[i], a->v[i], b->v[i]);
        sum += d * d;
    }
    return sqrt(sum);
}

void fm_candidates_fini(fm_candidates *c)
{
    free(c->point);
    *c = (fm_candidates){0};
}

static void add(fm_candidates *c, const fm_study *s, const fm_point *p)
{
    if (!fm_point_allowed(s->space, p) || fm_study_has(s, p)) return;
    if (c->n == c->cap) {
        c->cap          = c->cap ? 2 * c->cap : 256;
        fm_point *grown = realloc(c->point, (size_t)c->cap * sizeof *grown);
        FM_BUG_UNLESS(grown != NULL);
        c->point = grown;
    }
    c->point[c->n++] = *p;
}

/* Point number k, counted with the last parameter fastest.  0: the same point has a smaller
 * number, with other values of parameters that do not exist there. */
static int nth_point(const fm_space *s, int64_t k, fm_point *out)
{
    int64_t digit[FM_TUNE_MAX_PARAM];
    for (int i = s->n - 1; i >= 0; i--) {
        const int64_t n = fm_param_n_value(&s->param[i]);
        digit[i]        = k % n;
        out->v[i]       = fm_param_nth(&s->param[i], digit[i]);
        k /= n;
    }
    fm_point_settle(s, out);
    for (int i = 0; i < s->n; i++)
        if (isnan(out->v[i]) && digit[i]) return 0;
    return 1;
}

/* 0: there are too many. */
static int add_all(fm_candidates *c, const fm_study *s)
{
    if (fm_space_size(s->space) > COUNT_UP_TO) return 0;
    const int64_t n       = (int64_t)fm_space_size(s->space);
    int           n_point = 0;
    for (int64_t k = 0; k < n; k++) {
        fm_point p = {{0}};
        if (!nth_point(s->space, k, &p)) continue;
        if (++n_point > ALL_UP_TO) return 0;
        add(c, s, &p);
    }
    return 1;
}

/* A neighbour: one or two parameters move by a step whose size is drawn, too. */
static fm_point step_from(const fm_space *s, const fm_point *from, fm_mt *random)
{
    fm_point p = *from;
    for (int k = 1 + (int)fm_mt_python_below(random, 2); k > 0; k--) {
        const int       i  = (int)fm_mt_python_below(random, (uint32_t)s->n);
        const fm_param *a  = &s->param[i];
        const double width = exp(-4 * fm_mt_double(random)) * (fm_mt_double(random) < 0.5 ? -1 : 1);
        if (isnan(p.v[i]) || (a->kind == FM_PARAM_CHOICE && !a->ordered))
            p.v[i] = fm_param_value(a, fm_mt_double(random));
        else
            p.v[i] = fm_param_value(a, fm_param_unit(a, p.v[i]) + width);
    }
    for (int i = 0; i < s->n; i++) /* a parameter that comes to exist needs a value */
        if (isnan(p.v[i])) p.v[i] = fm_param_value(&s->param[i], fm_mt_double(random));
    fm_point_settle(s, &p);
    return p;
}

static void add_neighbours(fm_candidates *c, const fm_study *s, fm_mt *random)
{
    int       best[N_PARENT];
    const int n = fm_study_best(s, best, N_PARENT);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < N_CHILD; k++) {
            const fm_point p = step_from(s->space, &fm_study_find(s, best[i])->at, random);
            add(c, s, &p);
        }
}

fm_status fm_candidates_make(fm_candidates *c, const fm_study *s, fm_mt *random)
{
    if (!add_all(c, s)) {
        c->n = 0;
        for (int k = 0; k < N_RANDOM; k++) {
            fm_point p;
            FM_TRY(fm_point_random(s->space, random, &p));
            add(c, s, &p);
        }
        add_neighbours(c, s, random);
    }
    return c->n ? FM_OK : fm_fail(FM_E_FULL, "every point of the space was tried");
}
