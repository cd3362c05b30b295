/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tune/metric.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/str.h"
#include "json/read.h"

struct fm_metric {
    pcre2_code       *code; /* NULL: a path */
    pcre2_match_data *match;
    char             *path;
};

static fm_status compile(fm_metric *m, const char *text)
{
    int        error;
    PCRE2_SIZE at;
    m->code =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE, &error, &at, NULL);
    if (!m->code) {
        char why[160];
        pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why);
        return fm_fail(FM_E_ARG, "regular expression \"%s\", at %zu: %s", text, (size_t)at, why);
    }
    m->match = pcre2_match_data_create_from_pattern(m->code, NULL);
    return m->match ? FM_OK : fm_fail(FM_E_OOM, "regular expression");
}

fm_status fm_metric_create(fm_metric **out, const char *text)
{
    fm_metric *m = calloc(1, sizeof *m);
    if (!m) return fm_fail(FM_E_OOM, "metric");
    fm_status rc = FM_OK;
    if (strncmp(text, "json:", 5))
        rc = compile(m, text);
    else if (!(m->path = strdup(text + 5)))
        rc = fm_fail(FM_E_OOM, "metric");
    if (rc != FM_OK) {
        fm_metric_destroy(m);
        return rc;
    }
    *out = m;
    return FM_OK;
}

void fm_metric_destroy(fm_metric *m)
{
    if (!m) return;
    pcre2_match_data_free(m->match);
    pcre2_code_free(m->code);
    free(m->path);
    free(m);
}

/* ---- regular expressions ---- */

static int read_number(const char *text, size_t len, double *out)
{
    char   copy[64];
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < sizeof copy; i++)
        if (text[i] != ',') copy[n++] = text[i]; /* 1,234.5 */
    copy[n] = 0;
    char        *end;
    const double x = strtod(copy, &end);
    while (isspace((unsigned char)*end)) end++;
    if (!n || *end || !isfinite(x)) return 0;
    *out = x;
    return 1;
}

/* The next match from *at on that is a number. */
static int match_next(const fm_metric *m, const char *text, size_t len, size_t *at, double *out)
{
    while (*at <= len) {
        const int n =
            pcre2_match(m->code, (PCRE2_SPTR)text, len, *at, PCRE2_NOTEMPTY, m->match, NULL);
        if (n < 0) return 0;
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->match);
        const int         g    = n > 1 && span[2] != PCRE2_UNSET ? 1 : 0;
        *at                    = span[1] > *at ? span[1] : *at + 1;
        if (read_number(text + span[2 * g], span[2 * g + 1] - span[2 * g], out)) return 1;
    }
    return 0;
}

/* ---- JSON ---- */

/* a.b[2].c */
static const json_t *follow(const json_t *v, const char *path)
{
    while (v && *path) {
        if (*path == '[') {
            char      *end;
            const long i = strtol(path + 1, &end, 10);
            v            = json_array_get(v, (size_t)i);
            path         = *end == ']' ? end + 1 : end + strlen(end);
        } else {
            const size_t n    = strcspn(path, ".[");
            fm_str       name = {0};
            fm_str_add(&name, path, n);
            v = json_object_get(v, name.text);
            fm_str_fini(&name);
            path += n;
        }
        if (*path == '.') path++;
    }
    return v;
}

static int number_of_line(const fm_metric *m, const char *line, size_t len, double *out)
{
    json_t *v = NULL;
    if (!len || line[0] != '{' || fm_json_parse(&v, line, len, "output") != FM_OK) return 0;
    const json_t *found = follow(v, m->path);
    const int     yes   = json_is_number(found);
    if (yes) *out = json_number_value(found);
    json_decref(v);
    return yes;
}

static int path_next(const fm_metric *m, const char *text, size_t len, size_t *at, double *out)
{
    while (*at < len) {
        const char  *end = memchr(text + *at, '\n', len - *at);
        const size_t n   = end ? (size_t)(end - text) - *at : len - *at;
        const size_t was = *at;
        *at += n + 1;
        if (number_of_line(m, text + was, n, out)) return 1;
    }
    return 0;
}

/* ---- both ---- */

static int next(const fm_metric *m, const char *text, size_t len, size_t *at, double *out)
{
    return m->code ? match_next(m, text, len, at, out) : path_next(m, text, len, at, out);
}

int fm_metric_last(const fm_metric *m, const char *text, size_t len, double *out)
{
    size_t at    = 0;
    int    found = 0;
    while (next(m, text, len, &at, out)) found = 1;
    return found;
}

int fm_metric_next(const fm_metric *m, const char *text, size_t len, size_t *at, double *out)
{
    while (len > *at && text[len - 1] != '\n' && text[len - 1] != '\r') len--;
    return *at < len && next(m, text, len, at, out);
}

/* ---- limits ---- */

static const char *last_of(const char *text, const char *what)
{
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, what)); at++) found = at;
    return found;
}

fm_status fm_limit_init(fm_limit *l, const char *text)
{
    const char *most = last_of(text, "<="), *least = last_of(text, ">=");
    const char *op  = most > least ? most : least;
    char       *end = NULL;
    *l              = (fm_limit){.at_most = op && op == most};
    if (op) l->bound = strtod(op + 2, &end);
    if (!op || end == op + 2 || *end || op == text)
        return fm_fail(FM_E_ARG, "--require \"%s\": expected METRIC <= NUMBER or METRIC >= NUMBER",
                       text);
    while (op > text && op[-1] == ' ') op--;
    fm_str metric = {0};
    fm_str_add(&metric, text, (size_t)(op - text));
    const fm_status rc = fm_metric_create(&l->metric, metric.text);
    fm_str_fini(&metric);
    return rc;
}

void fm_limit_fini(fm_limit *l)
{
    fm_metric_destroy(l->metric);
    *l = (fm_limit){0};
}

double fm_limit_excess(const fm_limit *l, const char *text, size_t len)
{
    double x;
    if (!fm_metric_last(l->metric, text, len, &x)) return INFINITY;
    const double beyond = l->at_most ? x - l->bound : l->bound - x;
    return beyond <= 0 ? 0 : beyond / (fabs(l->bound) > 1e-12 ? fabs(l->bound) : 1);
}
