/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "word_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void fm_word_add(fm_word_list *l, const char *word)
{
    char **grown = realloc(l->word, (size_t)(l->n + 2) * sizeof *grown);
    char  *copy  = strdup(word);
    FM_BUG_UNLESS(grown && copy);
    l->word         = grown;
    l->word[l->n]   = copy;
    l->word[++l->n] = NULL;
}

void fm_word_add_all(fm_word_list *l, char *const *word, int n)
{
    for (int i = 0; i < n; i++) fm_word_add(l, word[i]);
}

void fm_word_list_fini(fm_word_list *l)
{
    for (int i = 0; i < l->n; i++) free(l->word[i]);
    free(l->word);
    *l = (fm_word_list){0};
}

int fm_word_is_option(const char *word, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(word, "--", 2) && !strncmp(word + 2, name, n) &&
           (!word[2 + n] || word[2 + n] == '=');
}

int fm_word_has_option(const fm_word_list *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (fm_word_is_option(l->word[i], name)) return 1;
    return 0;
}

static int is_word(const char *at, const char *name)
{
    const size_t n = strcspn(at, ",");
    return strlen(name) == n && !strncmp(at, name, n);
}

static const char *next_word(const char *at)
{
    at += strcspn(at, ",");
    return at + (*at == ',');
}

int fm_list_has(const char *list, const char *name)
{
    for (const char *at = list; at && *at; at = next_word(at))
        if (is_word(at, name)) return 1;
    return 0;
}

const char *fm_list_stranger(const char *list, const char *(*name)(int), int n)
{
    for (const char *at = list; at && *at; at = next_word(at)) {
        int i = 0;
        while (i < n && !is_word(at, name(i))) i++;
        if (i == n) return at;
    }
    return NULL;
}

static const fm_knob *knob_of(const fm_knob *table, int n, const char *const *shared,
                              const char *word)
{
    for (; shared && *shared; shared++)
        if (fm_word_is_option(word, *shared)) return NULL;
    for (int i = 0; i < n; i++)
        if (fm_word_is_option(word, table[i].name)) return &table[i];
    return NULL;
}

void fm_word_divide(fm_word_list *own, fm_word_list *rest, const fm_knob *table, int n_knob,
                    const char *const *shared, char *const *word, int n)
{
    for (int i = 0; i < n; i++) {
        const fm_knob *k = knob_of(table, n_knob, shared, word[i]);
        fm_word_add(k ? own : rest, word[i]);
        if (k && k->kind != FM_KNOB_FLAG && !strchr(word[i], '=') && i + 1 < n)
            fm_word_add(own, word[++i]);
    }
}
