/* SPDX-License-Identifier: Apache-2.0 */
/* From "name=1..64:log if other=x" to a parameter. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/expr.h"
#include "tune/space.h"

static fm_status refuse(const char *text, const char *why)
{
    return fm_fail(FM_E_ARG, "parameter \"%s\": %s", text, why);
}

static const char *skip_space(const char *at)
{
    while (isspace((unsigned char)*at)) at++;
    return at;
}

static int is_name_char(char c) { return isalnum((unsigned char)c) || c == '_' || c == '-'; }

static fm_status read_name(fm_param *p, const char **at, const char *text)
{
    const char *from = skip_space(*at), *to = from;
    while (is_name_char(*to)) to++;
    const char *eq = skip_space(to);
    if (to == from || *eq != '=') return refuse(text, "expected NAME=LO..HI or NAME={A,B,...}");
    if (!(p->name = strndup(from, (size_t)(to - from)))) return fm_fail(FM_E_OOM, "parameter");
    *at = eq + 1;
    return FM_OK;
}

/* ---- choices ---- */

static fm_status add_choice(fm_param *p, const char *from, const char *to, const char *text)
{
    while (from < to && isspace((unsigned char)*from)) from++;
    while (from < to && isspace((unsigned char)to[-1])) to--;
    if (from == to) return refuse(text, "a choice is empty");
    if (p->n_choice == FM_TUNE_MAX_CHOICE) return refuse(text, "too many choices");
    char **grown = realloc(p->choice, (size_t)(p->n_choice + 1) * sizeof *grown);
    if (grown) p->choice = grown;
    char *copy = grown ? strndup(from, (size_t)(to - from)) : NULL;
    if (!copy) return fm_fail(FM_E_OOM, "choices");
    p->choice[p->n_choice++] = copy;
    return FM_OK;
}

static int are_ascending_numbers(const fm_param *p)
{
    double last = -INFINITY;
    for (int i = 0; i < p->n_choice; i++) {
        char        *end;
        const double x = strtod(p->choice[i], &end);
        if (*end || !(x > last)) return 0;
        last = x;
    }
    return 1;
}

static fm_status read_choices(fm_param *p, const char **at, const char *text)
{
    p->kind          = FM_PARAM_CHOICE;
    const char *from = *at;
    const char *end  = strchr(from, '}');
    if (!end) return refuse(text, "\"}\" is missing");
    while (from <= end) {
        const char *to = from;
        while (to < end && *to != ',') to++;
        FM_TRY(add_choice(p, from, to, text));
        from = to + 1;
    }
    p->ordered = are_ascending_numbers(p);
    *at        = end + 1;
    return FM_OK;
}

/* ---- numbers ---- */

#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

static fm_status read_number(double *out, int *is_real, const char **at, const char *text)
{
    const char *from = skip_space(*at);
    char        digits[64];
    size_t      n = 0; /* "1..64": strtod would take "1." */
    while (n + 1 < sizeof digits && from[n] && !(from[n] == '.' && from[n + 1] == '.') &&
           strchr("+-0123456789.eE", from[n])) {
        digits[n] = from[n];
        n++;
    }
    digits[n] = 0;
    char *end;
    *out = strtod(digits, &end);
    if (!n || *end || !isfinite(*out))
        return refuse(text, "expected a number on both sides of \"..\"");
    *is_real |= strpbrk(digits, ".eE") != NULL;
    *at = from + n;
    return FM_OK;
}

static fm_status read_suffixes(fm_param *p, const char **at, const char *text)
{
    while (**at == ':') {
        int unused = 0;
        if (!strncmp(*at, ":log", 4)) {
            p->is_log = 1;
            *at += 4;
        } else if (!strncmp(*at, ":step=", 6)) {
            *at += 6;
            FM_TRY(read_number(&p->step, &unused, at, text));
        } else {
            return refuse(text, "after a range, :log and :step=N are known");
        }
    }
    return FM_OK;
}

/* Whole numbers are counted in doubles and must be exact there. */
static fm_status check_range(const fm_param *p, const char *text)
{
    const int is_real = p->kind == FM_PARAM_REAL;
    if (p->lo > p->hi) return refuse(text, "the first number is larger than the second");
    if (p->is_log && p->lo <= 0) return refuse(text, "a logarithmic scale begins above 0");
    if (p->step <= 0 || p->step != floor(p->step) || (is_real && p->step != 1))
        return refuse(text, ":step=N, a whole N > 0, is for whole numbers");
    if (!is_real && fmax(fabs(p->lo), fabs(p->hi)) > WHOLE_MAX)
        return refuse(text, "whole numbers go up to 2^53; larger ones need a point or an exponent");
    if (!isfinite(p->hi - p->lo)) return refuse(text, "the numbers are too far apart");
    return FM_OK;
}

static fm_status read_range(fm_param *p, const char **at, const char *text)
{
    int is_real = 0;
    FM_TRY(read_number(&p->lo, &is_real, at, text));
    if (strncmp(*at, "..", 2)) return refuse(text, "expected LO..HI or {A,B,...}");
    *at += 2;
    FM_TRY(read_number(&p->hi, &is_real, at, text));
    p->kind = is_real ? FM_PARAM_REAL : FM_PARAM_INT;
    p->step = 1;
    FM_TRY(read_suffixes(p, at, text));
    return check_range(p, text);
}

/* ---- conditions ---- */

static fm_status read_parent_values(fm_param *p, const fm_param *parent, const char *at,
                                    const char *text)
{
    while (*at) {
        const char *to = strchr(at, '|');
        if (!to) to = at + strlen(at);
        int i = 0;
        while (i < parent->n_choice && (strlen(parent->choice[i]) != (size_t)(to - at) ||
                                        memcmp(parent->choice[i], at, (size_t)(to - at))))
            i++;
        if (i == parent->n_choice)
            return refuse(text, "its condition names no choice of the other");
        p->parent_value |= (uint64_t)1 << i;
        at = *to ? to + 1 : to;
    }
    return p->parent_value ? FM_OK : refuse(text, "its condition has no value");
}

static fm_status read_condition(fm_param *p, const fm_space *s, const char *at, const char *text)
{
    p->parent = -1;
    at        = skip_space(at);
    if (!*at) return FM_OK;
    if (strncmp(at, "if ", 3))
        return refuse(text, "after the values only \"if OTHER=VALUE\" may stand");
    at             = skip_space(at + 3);
    const char *eq = strchr(at, '=');
    if (!eq) return refuse(text, "expected \"if OTHER=VALUE\"");
    p->parent = fm_space_find(s, at, (size_t)(eq - at));
    if (p->parent < 0 || s->param[p->parent].kind != FM_PARAM_CHOICE)
        return refuse(text, "its condition names no choice that was given before it");
    return read_parent_values(p, &s->param[p->parent], eq + 1, text);
}

static fm_status read_param(fm_param *p, const fm_space *s, const char *text)
{
    const char *at = text;
    FM_TRY(read_name(p, &at, text));
    if (fm_space_find(s, p->name, strlen(p->name)) >= 0) return refuse(text, "given twice");
    at = skip_space(at);
    if (*at == '{') {
        at++;
        FM_TRY(read_choices(p, &at, text));
    } else {
        FM_TRY(read_range(p, &at, text));
    }
    return read_condition(p, s, at, text);
}

fm_status fm_space_add(fm_space *s, const char *text)
{
    if (s->n == FM_TUNE_MAX_PARAM)
        return fm_fail(FM_E_ARG, "more than %d parameters", FM_TUNE_MAX_PARAM);
    fm_space        one = {.n = 1};
    const fm_status rc  = read_param(&one.param[0], s, text);
    if (rc != FM_OK)
        fm_space_fini(&one);
    else
        s->param[s->n++] = one.param[0];
    return rc;
}

/* Tried once, so that a misspelt name is found before the first trial. */
fm_status fm_space_constrain(fm_space *s, const char *expression)
{
    if (s->n_constraint == FM_TUNE_MAX_CONSTRAINT)
        return fm_fail(FM_E_ARG, "more than %d constraints", FM_TUNE_MAX_CONSTRAINT);
    fm_point p = {{0}};
    int      holds;
    for (int i = 0; i < s->n; i++) p.v[i] = fm_param_value(&s->param[i], 0.5);
    FM_TRY(fm_expr_holds(&holds, expression, s, &p));
    char *copy = strdup(expression);
    if (!copy) return fm_fail(FM_E_OOM, "constraint");
    s->constraint[s->n_constraint++] = copy;
    return FM_OK;
}
