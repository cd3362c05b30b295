/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive descent, one function per level of precedence.  Expressions are a
 * line long: they are read anew at every evaluation. */
#define _POSIX_C_SOURCE 200809L
#include "tune/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 64 };

typedef struct {
    double      number;
    const char *word; /* NULL: a number */
    size_t      len;
    int         absent; /* a parameter that does not exist here is part of it */
} value;

typedef struct {
    const char     *text, *at;
    const fm_space *space;
    const fm_point *point;
    fm_status       rc; /* the first fault; later steps return at once */
    int             depth;
} reader;

static value either(reader *r);

static value fault(reader *r, const char *why)
{
    if (r->rc == FM_OK)
        r->rc = fm_fail(FM_E_ARG, "constraint \"%s\", at \"%s\": %s", r->text, r->at, why);
    return (value){0};
}

static int next_is(reader *r, const char *symbol)
{
    while (isspace((unsigned char)*r->at)) r->at++;
    const size_t n = strlen(symbol);
    if (r->rc != FM_OK || strncmp(r->at, symbol, n)) return 0;
    r->at += n;
    return 1;
}

static value of_number(double x, int absent) { return (value){.number = x, .absent = absent}; }

static value of_choice(const char *text)
{
    char        *end;
    const double x = strtod(text, &end);
    if (!*end && end != text) return of_number(x, 0);
    return (value){.word = text, .len = strlen(text)};
}

static int is_choice(const fm_space *s, const char *word, size_t len)
{
    for (int i = 0; i < s->n; i++)
        for (int k = 0; s->param[i].kind == FM_PARAM_CHOICE && k < s->param[i].n_choice; k++)
            if (strlen(s->param[i].choice[k]) == len && !memcmp(s->param[i].choice[k], word, len))
                return 1;
    return 0;
}

static value unknown(reader *r, const char *name, size_t len)
{
    if (r->rc == FM_OK)
        r->rc = fm_fail(FM_E_ARG, "constraint \"%s\": \"%.*s\" is neither a parameter nor a choice",
                        r->text, (int)len, name);
    return (value){0};
}

static value of_name(reader *r, const char *name, size_t len)
{
    const int i = fm_space_find(r->space, name, len);
    if (i < 0 && !is_choice(r->space, name, len)) return unknown(r, name, len);
    if (i < 0) return (value){.word = name, .len = len};
    const double x = r->point->v[i];
    if (isnan(x)) return of_number(0, 1);
    const fm_param *p = &r->space->param[i];
    return p->kind == FM_PARAM_CHOICE ? of_choice(p->choice[(int)x]) : of_number(x, 0);
}

/* Names may have a minus inside, as options do: "page-size"; a difference needs spaces. */
static value name_or_number(reader *r)
{
    const char *from = r->at;
    if (isdigit((unsigned char)*from) || *from == '.') {
        char        *end;
        const double x = strtod(from, &end);
        r->at          = end;
        return of_number(x, 0);
    }
    while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '-') r->at++;
    if (r->at == from) return fault(r, "expected a name or a number");
    return of_name(r, from, (size_t)(r->at - from));
}

static value number_of(reader *r, value v)
{
    return v.word ? fault(r, "a word is compared, not computed with") : v;
}

static value atom(reader *r)
{
    if (r->depth > MOST_NESTED) return fault(r, "nested too deeply");
    if (next_is(r, "(")) {
        r->depth++;
        const value v = either(r);
        r->depth--;
        return next_is(r, ")") ? v : fault(r, "expected \")\"");
    }
    if (next_is(r, "-")) {
        r->depth++;
        const value v = number_of(r, atom(r));
        r->depth--;
        return of_number(-v.number, v.absent);
    }
    return r->rc == FM_OK ? name_or_number(r) : (value){0};
}

static value product(reader *r)
{
    value a = atom(r);
    for (;;) {
        const char op = next_is(r, "*") ? '*' : next_is(r, "/") ? '/' : next_is(r, "%") ? '%' : 0;
        if (!op) return a;
        const value  b = number_of(r, atom(r));
        const double x = number_of(r, a).number;
        a              = of_number(op == '*'   ? x * b.number
                                   : op == '/' ? x / b.number
                                               : fmod(x, b.number),
                      a.absent | b.absent);
    }
}

static value sum(reader *r)
{
    value a = product(r);
    for (;;) {
        const int sign = next_is(r, "+") ? 1 : next_is(r, "-") ? -1 : 0;
        if (!sign) return a;
        const value b = number_of(r, product(r));
        a             = of_number(number_of(r, a).number + sign * b.number, a.absent | b.absent);
    }
}

static int same(value a, value b)
{
    if (!a.word != !b.word) return 0;
    return a.word ? a.len == b.len && !memcmp(a.word, b.word, a.len) : a.number == b.number;
}

static int compare(reader *r, const char *op, value a, value b)
{
    if (a.absent || b.absent) return 1;
    if (op[1] == '=' && op[0] == '=') return same(a, b);
    if (op[0] == '!') return !same(a, b);
    const double x = number_of(r, a).number, y = number_of(r, b).number;
    if (op[0] == '<') return op[1] ? x <= y : x < y;
    return op[1] ? x >= y : x > y;
}

static value comparison(reader *r)
{
    static const char *const ops[] = {"<=", ">=", "==", "!=", "<", ">"};
    const value              a     = sum(r);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (next_is(r, ops[i])) return of_number(compare(r, ops[i], a, sum(r)), 0);
    return a;
}

static int is_true(reader *r, value v) { return v.absent || number_of(r, v).number != 0; }

static value both(reader *r)
{
    value a = comparison(r);
    while (next_is(r, "&&")) {
        const value b = comparison(r);
        a             = of_number(is_true(r, a) & is_true(r, b), 0);
    }
    return a;
}

static value either(reader *r)
{
    value a = both(r);
    while (next_is(r, "||")) {
        const value b = both(r);
        a             = of_number(is_true(r, a) | is_true(r, b), 0);
    }
    return a;
}

fm_status fm_expr_holds(int *out, const char *text, const fm_space *s, const fm_point *at)
{
    reader      r = {.text = text, .at = text, .space = s, .point = at, .rc = FM_OK};
    const value v = either(&r);
    while (isspace((unsigned char)*r.at)) r.at++;
    if (r.rc == FM_OK && *r.at) (void)fault(&r, "expected an operator");
    const int holds = is_true(&r, v);
    FM_TRY(r.rc);
    *out = holds;
    return FM_OK;
}
