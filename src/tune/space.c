/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "tune/space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/expr.h"

enum { MOST_DRAWS = 10000 };

int fm_space_find(const fm_space *s, const char *name, size_t len)
{
    for (int i = 0; i < s->n; i++)
        if (strlen(s->param[i].name) == len && !memcmp(s->param[i].name, name, len)) return i;
    return -1;
}

static void param_fini(fm_param *p)
{
    for (int i = 0; i < p->n_choice; i++) free(p->choice[i]);
    free(p->choice);
    free(p->name);
    *p = (fm_param){0};
}

void fm_space_fini(fm_space *s)
{
    for (int i = 0; i < s->n; i++) param_fini(&s->param[i]);
    for (int i = 0; i < s->n_constraint; i++) free(s->constraint[i]);
    *s = (fm_space){0};
}

/* ---- scales ---- */

int64_t fm_param_n_value(const fm_param *p)
{
    if (p->kind == FM_PARAM_CHOICE) return p->n_choice;
    if (p->kind == FM_PARAM_REAL) return 0;
    return (int64_t)floor((p->hi - p->lo) / p->step) + 1;
}

double fm_space_size(const fm_space *s)
{
    double n = 1;
    for (int i = 0; i < s->n; i++) {
        const int64_t count = fm_param_n_value(&s->param[i]);
        n *= count ? (double)count : INFINITY;
    }
    return n;
}

static double to_scale(const fm_param *p, double x) { return p->is_log ? log(x) : x; }

double fm_param_unit(const fm_param *p, double value)
{
    if (p->kind == FM_PARAM_CHOICE) return (value + 0.5) / p->n_choice;
    const double width = to_scale(p, p->hi) - to_scale(p, p->lo);
    return width > 0 ? (to_scale(p, value) - to_scale(p, p->lo)) / width : 0.5;
}

double fm_param_nth(const fm_param *p, int64_t i)
{
    return p->kind == FM_PARAM_CHOICE ? (double)i : p->lo + (double)i * p->step;
}

double fm_param_value(const fm_param *p, double unit)
{
    const double u = unit < 0 ? 0 : unit > 1 ? 1 : unit;
    if (p->kind == FM_PARAM_CHOICE) {
        const int i = (int)(u * p->n_choice);
        return i < p->n_choice ? i : p->n_choice - 1;
    }
    const double at = to_scale(p, p->lo) + u * (to_scale(p, p->hi) - to_scale(p, p->lo));
    const double x  = p->is_log ? exp(at) : at;
    if (p->kind == FM_PARAM_REAL) return x < p->lo ? p->lo : x > p->hi ? p->hi : x;
    const int64_t n = fm_param_n_value(p), i = llround((x - p->lo) / p->step);
    return fm_param_nth(p, i < 0 ? 0 : i >= n ? n - 1 : i);
}

/* ---- points ---- */

int fm_param_exists(const fm_space *s, int i, const fm_point *at)
{
    const int parent = s->param[i].parent;
    if (parent < 0) return 1;
    const double value = at->v[parent];
    return !isnan(value) && (s->param[i].parent_value >> (int)value & 1);
}

void fm_point_settle(const fm_space *s, fm_point *p)
{
    for (int i = 0; i < s->n; i++)
        if (!fm_param_exists(s, i, p)) p->v[i] = NAN;
}

static int close_to(double a, double b) { return fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b)); }

int fm_point_equal(const fm_space *s, const fm_point *a, const fm_point *b)
{
    for (int i = 0; i < s->n; i++) {
        if (isnan(a->v[i]) != isnan(b->v[i])) return 0;
        if (!isnan(a->v[i]) && !close_to(a->v[i], b->v[i])) return 0;
    }
    return 1;
}

int fm_point_allowed(const fm_space *s, const fm_point *p)
{
    for (int i = 0; i < s->n_constraint; i++) {
        int holds = 0;
        if (fm_expr_holds(&holds, s->constraint[i], s, p) != FM_OK || !holds) return 0;
    }
    return 1;
}

/* Countable values equally often; on a logarithmic scale those that stand apart. */
static double draw(const fm_param *p, fm_mt *random)
{
    const double  u = fm_mt_double(random);
    const int64_t n = fm_param_n_value(p);
    return n && !p->is_log ? fm_param_nth(p, (int64_t)(u * (double)n)) : fm_param_value(p, u);
}

fm_status fm_point_random(const fm_space *s, fm_mt *random, fm_point *out)
{
    for (int k = 0; k < MOST_DRAWS; k++) {
        fm_point p = {{0}};
        for (int i = 0; i < s->n; i++) p.v[i] = draw(&s->param[i], random);
        fm_point_settle(s, &p);
        if (!fm_point_allowed(s, &p)) continue;
        *out = p;
        return FM_OK;
    }
    return fm_fail(FM_E_FULL, "no point was found that the constraints allow");
}

/* Nine digits, or all of them where rounding would leave the range. */
static void real_text(const fm_param *p, double x, fm_str *out)
{
    char short_text[32];
    snprintf(short_text, sizeof short_text, "%.9g", x);
    const double back = strtod(short_text, NULL);
    if (back >= p->lo && back <= p->hi)
        fm_str_puts(out, short_text);
    else
        fm_str_printf(out, "%.17g", x);
}

void fm_point_text(const fm_space *s, const fm_point *p, int i, fm_str *out)
{
    const fm_param *a = &s->param[i];
    if (isnan(p->v[i])) return;
    if (a->kind == FM_PARAM_CHOICE)
        fm_str_puts(out, a->choice[(int)p->v[i]]);
    else if (a->kind == FM_PARAM_INT)
        fm_str_printf(out, "%.0f", p->v[i]);
    else
        real_text(a, p->v[i], out);
}

fm_status fm_param_read(const fm_param *p, const char *text, double *out)
{
    for (int i = 0; i < p->n_choice; i++)
        if (!strcmp(p->choice[i], text)) {
            *out = i;
            return FM_OK;
        }
    char        *end;
    const double x = strtod(text, &end);
    if (p->kind == FM_PARAM_CHOICE || end == text || *end || x < p->lo || x > p->hi)
        return fm_fail(FM_E_ARG, "%s: \"%s\" is none of its values", p->name, text);
    *out = x;
    return FM_OK;
}
