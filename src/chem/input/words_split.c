/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "chem/input/words.h"

/* What the scan is at. */
typedef struct {
    fm__words  *w;
    const char *text;
    size_t      n, at; /* in the deck */
    char       *put;   /* where the next word is copied to */
    int         line;
    int         is_first; /* the next word begins a statement */
} scan;

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

/* Whether the backslash at s->at ends its physical line: it continues. */
static int continues(const scan *s)
{
    size_t i = s->at + 1;
    while (i < s->n && is_blank(s->text[i])) i++;
    return i >= s->n || s->text[i] == '\n';
}

static fm_status begin_word(scan *s)
{
    fm__words *w = s->w;
    if (w->n_word == w->cap) {
        const int cap  = w->cap ? 2 * w->cap : 256;
        fm__word *more = realloc(w->word, (size_t)cap * sizeof *more);
        if (!more) return fm_fail(FM_E_OOM, "%s: %d words", w->file, cap);
        w->word = more;
        w->cap  = cap;
    }
    w->word[w->n_word++] = (fm__word){s->put, s->line, s->is_first};
    s->is_first          = 0;
    return FM_OK;
}

/* A quoted word ends at its quote; \" inside is a quote. */
static fm_status quoted(scan *s)
{
    const int line = s->line;
    FM_TRY(begin_word(s));
    for (s->at++; s->at < s->n && s->text[s->at] != '\n'; s->at++) {
        const char c = s->text[s->at];
        if (c == '"') {
            s->at++;
            *s->put++ = 0;
            return FM_OK;
        }
        if (c == '\\' && s->at + 1 < s->n && s->text[s->at + 1] == '"') s->at++;
        *s->put++ = s->text[s->at];
    }
    return fm_fail(FM_E_FORMAT, "%s:%d: a quote is not closed", s->w->file, line);
}

static fm_status plain(scan *s)
{
    FM_TRY(begin_word(s));
    for (; s->at < s->n; s->at++) {
        const char c = s->text[s->at];
        if (is_blank(c) || c == '\n' || c == ';' || c == '#' || (c == '\\' && continues(s))) break;
        *s->put++ = c;
    }
    *s->put++ = 0;
    return FM_OK;
}

/* One step: a blank, a comment, a separator or a word. */
static fm_status step(scan *s)
{
    const char c = s->text[s->at];
    if (c == '#')
        while (s->at < s->n && s->text[s->at] != '\n') s->at++;
    else if (c == '\n') {
        s->line++;
        s->at++;
        s->is_first = 1;
    } else if (c == ';') {
        s->at++;
        s->is_first = 1;
    } else if (c == '\\' && continues(s)) {
        while (s->at < s->n && s->text[s->at] != '\n') s->at++;
        s->at += s->at < s->n;
        s->line++;
    } else if (is_blank(c))
        s->at++;
    else
        return c == '"' ? quoted(s) : plain(s);
    return FM_OK;
}

fm_status fm__words_split(fm__words *out, const char *file, const char *text, size_t n)
{
    fm__words w  = {.file = file, .text = malloc(2 * n + 1)};
    fm_status rc = w.text ? FM_OK : fm_fail(FM_E_OOM, "%s: %zu bytes", file, n);
    scan      s  = {&w, text, n, 0, w.text, 1, 1};
    if (rc == FM_OK && n && memchr(text, 0, n))
        rc = fm_fail(FM_E_FORMAT, "%s: a deck is text, this file has NUL bytes", file);
    while (rc == FM_OK && s.at < n) rc = step(&s);
    if (rc == FM_OK)
        *out = w;
    else
        fm__words_fini(&w);
    return rc;
}
