/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "tune/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const fm_space *space;
    const fm_point *at; /* NULL: only looking for names */
    int             trial, slot;
} values;

/* One pair of braces in a word. */
typedef struct {
    const char *name, *more; /* `more`: what follows ? or ! */
    size_t      more_len;
    char        kind;  /* '=', '?', '!' */
    int         param; /* or OF_TRIAL, OF_SLOT */
    const char *end;   /* behind the brace */
} place;

enum { OF_TRIAL = -1, OF_SLOT = -2, OF_NOTHING = -3 };

static int param_of(const fm_space *s, const char *name, size_t len)
{
    const int i = fm_space_find(s, name, len);
    if (i >= 0) return i;
    if (len == 5 && !memcmp(name, "trial", 5)) return OF_TRIAL;
    return len == 4 && !memcmp(name, "slot", 4) ? OF_SLOT : OF_NOTHING;
}

/* The next place in a word that is one of ours. */
static int next_place(place *out, const char *at, const fm_space *s)
{
    for (; (at = strchr(at, '{')); at++) {
        const char  *name = at + 1, *end = strchr(name, '}');
        const size_t n     = strcspn(name, "}?!");
        const int    param = param_of(s, name, n);
        if (!end || param == OF_NOTHING || (param < 0 && name[n] != '}')) continue;
        *out = (place){
            .name = name, .kind = name[n] == '}' ? '=' : name[n], .param = param, .end = end + 1};
        if (out->kind != '=') {
            out->more     = name + n + 1;
            out->more_len = (size_t)(end - out->more);
        }
        return 1;
    }
    return 0;
}

static int is_on(const char *text)
{
    return !strcmp(text, "on") || !strcmp(text, "yes") || !strcmp(text, "true") ||
           !strcmp(text, "1");
}

/* 0: the word is left out. */
static int fill_place(fm_str *out, const place *p, const values *v)
{
    if (p->param < 0) {
        fm_str_printf(out, "%d", p->param == OF_TRIAL ? v->trial : v->slot);
        return 1;
    }
    if (isnan(v->at->v[p->param])) return 0;
    fm_str text = {0};
    fm_point_text(v->space, v->at, p->param, &text);
    const int wanted = p->kind == '=' || is_on(text.text) == (p->kind == '?');
    if (p->kind == '=')
        fm_str_puts(out, text.text);
    else if (wanted)
        fm_str_add(out, p->more, p->more_len);
    fm_str_fini(&text);
    return wanted;
}

/* 0: left out; *absent: because its parameter does not exist. */
static int fill_word(fm_str *out, const char *word, const values *v, int *absent)
{
    place p;
    *absent = 0;
    while (next_place(&p, word, v->space)) {
        fm_str_add(out, word, (size_t)(p.name - 1 - word));
        if (!fill_place(out, &p, v)) {
            *absent = p.kind == '=';
            return 0;
        }
        word = p.end;
    }
    fm_str_puts(out, word);
    return 1;
}

void fm_words_free(char **words)
{
    for (int i = 0; words && words[i]; i++) free(words[i]);
    free(words);
}

fm_status fm_words_fill(char ***out, const fm_space *s, const fm_point *at, char *const *word,
                        int n, int trial, int slot)
{
    const values v    = {s, at, trial, slot};
    char       **list = calloc((size_t)n + 1, sizeof *list);
    if (!list) return fm_fail(FM_E_OOM, "command line");
    int n_out = 0;
    for (int i = 0; i < n; i++) {
        fm_str text = {0};
        int    absent;
        if (fill_word(&text, word[i], &v, &absent)) {
            list[n_out++] = text.text;
            continue;
        }
        fm_str_fini(&text);
        const int is_value = word[i][0] == '{' && n_out > 0 && i > 0 && word[i - 1][0] == '-';
        if (absent && is_value && !strcmp(list[n_out - 1], word[i - 1])) {
            free(list[--n_out]);
            list[n_out] = NULL;
        }
    }
    *out = list;
    return FM_OK;
}

fm_status fm_words_check(const fm_space *s, char *const *word, int n)
{
    int seen[FM_TUNE_MAX_PARAM] = {0};
    for (int i = 0; i < n; i++) {
        place       p;
        const char *at = word[i];
        for (; next_place(&p, at, s); at = p.end)
            if (p.param >= 0) seen[p.param] = 1;
    }
    for (int i = 0; i < s->n; i++)
        if (!seen[i])
            return fm_fail(FM_E_ARG, "the command does not mention the parameter {%s}",
                           s->param[i].name);
    return FM_OK;
}

void fm_words_quote(fm_str *out, char *const *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
    for (int i = 0; word[i]; i++) {
        if (i) fm_str_puts(out, " ");
        if (*word[i] && strspn(word[i], plain) == strlen(word[i])) {
            fm_str_puts(out, word[i]);
            continue;
        }
        fm_str_puts(out, "'");
        for (const char *c = word[i]; *c; c++)
            if (*c == '\'')
                fm_str_puts(out, "'\\''");
            else
                fm_str_add(out, c, 1);
        fm_str_puts(out, "'");
    }
}
