/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem/input/words.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int fm__same(const char *a, const char *b) { return !strcasecmp(a, b); }

int fm__next_line(fm__words *w)
{
    w->from = w->at = w->to;
    if (w->from >= w->n_word) return 0;
    for (w->to = w->from + 1; w->to < w->n_word && !w->word[w->to].is_first;) w->to++;
    return 1;
}

int fm__line(const fm__words *w)
{
    if (w->n_word == 0) return 1;
    const int i = w->at > w->from ? w->at - 1 : w->at < w->n_word ? w->at : w->n_word - 1;
    return w->word[i].line;
}

const char *fm__peek(const fm__words *w) { return w->at < w->to ? w->word[w->at].text : NULL; }

const char *fm__next(fm__words *w) { return w->at < w->to ? w->word[w->at++].text : NULL; }

int fm__take(fm__words *w, const char *name)
{
    const char *word = fm__peek(w);
    if (!word || !fm__same(word, name)) return 0;
    w->at++;
    return 1;
}

/* A decimal number as Fortran reads it: 1, .5, -1.d0, 1.0E-3, 2D+1. */
static int is_real(const char *word, double *x)
{
    char      text[64] = "";
    const int n        = (int)strlen(word);
    if (n == 0 || n >= (int)sizeof text) return 0;
    int has_digit = 0;
    for (int i = 0; i <= n; i++) {
        const char c = word[i];
        if (!(isdigit((unsigned char)c) || c == 0 || strchr("+-.eEdD", c))) return 0;
        has_digit |= isdigit((unsigned char)c);
        text[i] = c == 'd' || c == 'D' ? 'e' : c;
    }
    char        *end   = NULL;
    const double value = strtod(text, &end);
    if (!has_digit || *end || !isfinite(value)) return 0;
    *x = value;
    return 1;
}

int fm__take_real(fm__words *w, double *x)
{
    const char *word = fm__peek(w);
    if (!word || !is_real(word, x)) return 0;
    w->at++;
    return 1;
}

int fm__take_int(fm__words *w, int *i)
{
    const char *word = fm__peek(w);
    char       *end  = NULL;
    if (!word || !(isdigit((unsigned char)*word) || *word == '-' || *word == '+')) return 0;
    errno        = 0;
    const long x = strtol(word, &end, 10);
    if (*end || end == word || errno || x > 2000000000 || x < -2000000000) return 0;
    *i = (int)x;
    w->at++;
    return 1;
}

fm_status fm__bad(const fm__words *w, const char *fmt, ...)
{
    char    sentence[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    return fm_fail(FM_E_FORMAT, "%s:%d: %s", w->file, fm__line(w), sentence);
}

fm_status fm__bad_as(const fm__words *w, fm_status rc)
{
    char sentence[512];
    if (rc == FM_OK) return rc;
    snprintf(sentence, sizeof sentence, "%s", fm_why());
    return fm_fail(rc, "%s:%d: %s", w->file, fm__line(w), sentence);
}

/* "expects a number, found x" or "..., found the end of the line" */
static fm_status expected(fm__words *w, const char *what)
{
    const char *word = fm__peek(w);
    if (!word) return fm__bad(w, "expected %s at the end of the line", what);
    w->at++;
    return fm__bad(w, "expected %s, found \"%s\"", what, word);
}

fm_status fm__need_word(fm__words *w, const char **out, const char *what)
{
    if (!fm__peek(w)) return expected(w, what);
    *out = fm__next(w);
    return FM_OK;
}

fm_status fm__need_real(fm__words *w, double *out, const char *what)
{
    return fm__take_real(w, out) ? FM_OK : expected(w, what);
}

fm_status fm__need_positive(fm__words *w, double *out, const char *what)
{
    double x;
    FM_TRY(fm__need_real(w, &x, what));
    if (!(x > 0)) return fm__bad(w, "%s must be positive, found %g", what, x);
    *out = x;
    return FM_OK;
}

fm_status fm__need_int(fm__words *w, int *out, int least, int most, const char *what)
{
    int i;
    if (!fm__take_int(w, &i)) return expected(w, what);
    if (i < least || i > most)
        return fm__bad(w, "%s must be %d to %d, found %d", what, least, most, i);
    *out = i;
    return FM_OK;
}

fm_status fm__need_text(fm__words *w, char *out, size_t n, const char *what)
{
    const char *word = "";
    FM_TRY(fm__need_word(w, &word, what));
    if (strlen(word) >= n) return fm__bad(w, "%s has more than %zu characters", what, n - 1);
    memcpy(out, word, strlen(word) + 1);
    return FM_OK;
}

fm_status fm__need_end(fm__words *w)
{
    const char *word = fm__next(w);
    return word ? fm__bad(w, "\"%s\" is not understood here", word) : FM_OK;
}

void fm__words_fini(fm__words *w)
{
    free(w->text);
    free(w->word);
    memset(w, 0, sizeof *w);
}
