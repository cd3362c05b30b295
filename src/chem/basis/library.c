/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem/basis/library.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/basis/library_data.h"
#include "chem/molecule.h"

enum { NAME_MAX_BYTES = 32, PRIM_MAX = 64, COLUMN_MAX = 24 };

/* The next line at *at, without its comment; 0 at the end of the data. */
static int next_line(const char **at, char line[1024])
{
    if (!**at) return 0;
    const size_t n = strcspn(*at, "\n");
    FM_BUG_UNLESS(n < 1024);
    memcpy(line, *at, n);
    line[n]                  = 0;
    line[strcspn(line, "#")] = 0;
    *at += n + ((*at)[n] == '\n');
    return 1;
}

/* A set's name as NWChem names its files: 6-31G** and 6-31g(d,p) are 6-31gss. */
static void canonical(char key[NAME_MAX_BYTES], const char *name)
{
    char  lower[NAME_MAX_BYTES] = "";
    char *out                   = key;
    for (int i = 0; name[i] && i < NAME_MAX_BYTES - 1; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    char *paren = strchr(lower, '(');
    if (paren && !strcmp(paren, "(d)")) strcpy(paren, "*");
    if (paren && !strcmp(paren, "(d,p)")) strcpy(paren, "**");
    for (const char *c = lower; *c; c++) {
        if (*c == '(' || *c == ')') continue;
        *out++ = *c == '*' ? 's' : *c == ',' || *c == ' ' ? '_' : *c;
    }
    *out = 0;
}

static int same_set(const char *a, const char *b)
{
    char ka[NAME_MAX_BYTES], kb[NAME_MAX_BYTES];
    canonical(ka, a);
    canonical(kb, b);
    return !strcmp(ka, kb);
}

/* The letter of `set` in a `sets` line; 0: not there. */
static char letter_of(char *line, const char *set)
{
    char *rest = NULL;
    strtok_r(line, " ", &rest);
    for (char *letter; (letter = strtok_r(NULL, " ", &rest));)
        if (same_set(strtok_r(NULL, " ", &rest), set)) return *letter;
    return 0;
}

/* Where the family of `set` begins, behind its `sets` line; NULL: no such set. */
static const char *find_family(const char *set, char *letter)
{
    char line[1024];
    if (strlen(set) >= NAME_MAX_BYTES) return NULL;
    for (const char *at = fm__library_data; next_line(&at, line);)
        if (!strncmp(line, "sets ", 5) && (*letter = letter_of(line, set))) return at;
    return NULL;
}

int fm_library_has(const char *set)
{
    char letter;
    return find_family(set, &letter) != NULL;
}

/* Move `at` behind the line of element z; NULL: the family has no such element. */
static const char *find_element(const char *at, int z)
{
    char line[1024];
    while (next_line(&at, line)) {
        if (!strncmp(line, "sets ", 5)) return NULL;
        if (!strcmp(line, fm_element_symbol(z))) return at;
    }
    return NULL;
}

/* Read the rows of a shell at *at. */
static int read_rows(const char **at, double *rows, int *n_column)
{
    char line[1024];
    int  n_prim = 0;
    for (const char *ahead                                                       = *at;
         next_line(&ahead, line) && !isalpha((unsigned char)*line) && *line; *at = ahead) {
        char *c = line, *end = NULL;
        int   n = 0;
        for (double x = strtod(c, &end); end != c; x = strtod(c, &end)) {
            FM_BUG_UNLESS(n < COLUMN_MAX && n_prim < PRIM_MAX);
            rows[n_prim * COLUMN_MAX + n++] = x;
            c                               = end;
        }
        *n_column = n;
        n_prim++;
    }
    return n_prim;
}

static void squeeze(double *rows, int n_prim, int n_column)
{
    for (int i = 1; i < n_prim; i++)
        memmove(rows + i * n_column, rows + i * COLUMN_MAX, (size_t)n_column * sizeof *rows);
}

/* Append the element's shells that carry `letter`; says how many. */
static fm_status add_shells(fm_shells *out, const char *at, char letter, int *n_added)
{
    char   line[1024], kind[8], sets[32];
    double rows[PRIM_MAX * COLUMN_MAX];
    while (next_line(&at, line) && sscanf(line, "%7s %31s", kind, sets) == 2 &&
           strcmp(kind, "sets") != 0) {
        int       n_column = 0;
        const int n_prim   = read_rows(&at, rows, &n_column);
        if (*sets != '*' && !strchr(sets, letter)) continue;
        squeeze(rows, n_prim, n_column);
        FM_TRY(fm_shells_add(out, fm_shell_l(kind), rows, n_prim, n_column));
        ++*n_added;
    }
    return FM_OK;
}

fm_status fm_library_shells(fm_shells *out, const char *set, int z)
{
    char        letter  = 0;
    int         n_added = 0;
    const char *at      = find_family(set, &letter);
    if (!at) return fm_fail(FM_E_ARG, "no basis set named %s in the library", set);
    if ((at = find_element(at, z))) FM_TRY(add_shells(out, at, letter, &n_added));
    if (!n_added) return fm_fail(FM_E_NOSUP, "basis set %s has no %s", set, fm_element_symbol(z));
    return FM_OK;
}

const char *fm_library_name(int i, char name[32])
{
    char line[1024];
    for (const char *at = fm__library_data; next_line(&at, line);) {
        char *rest = NULL;
        if (strncmp(line, "sets ", 5) != 0) continue;
        strtok_r(line, " ", &rest);
        while (strtok_r(NULL, " ", &rest)) {
            const char *set = strtok_r(NULL, " ", &rest);
            if (i-- == 0) return memcpy(name, set, strlen(set) + 1);
        }
    }
    return NULL;
}
