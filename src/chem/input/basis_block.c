/* SPDX-License-Identifier: Apache-2.0 */
/* basis [name] [spherical|cartesian] [print|noprint]; lines of
 *     tag library [tag in the library] set [except tags]
 *     tag S|P|D|F|G|SP, then lines of an exponent and coefficients
 * and end.  Lines of one tag add to each other. */
#include <stdlib.h>
#include <string.h>

#include "chem/basis/library.h"
#include "chem/input/state.h"

enum { ENTRY_MAX = 20000, PRIM_MAX = 500, COLUMN_MAX = 40 };

static fm_status read_options(fm__words *w, fm__basis_block *b)
{
    while (fm__peek(w)) {
        if (fm__take(w, "spherical"))
            b->is_pure = 1;
        else if (fm__take(w, "cartesian"))
            b->is_pure = 0;
        else if (!(fm__take(w, "print") || fm__take(w, "noprint") || fm__take(w, "segment"))) {
            const char *word = fm__next(w);
            if (fm__same(word, "rel") || fm__same(word, "library") || fm__same(word, "file") ||
                fm__same(word, "ecpset") || fm__same(word, "soset") || fm__same(word, "bse") ||
                fm__same(word, "nosegment"))
                return fm__bad(w, "basis option \"%s\" is not supported", word);
            if (b->name[0]) return fm__bad(w, "basis option \"%s\" is unknown", word);
            if (strlen(word) >= FM__NAME_MAX) return fm__bad(w, "the basis' name is too long");
            strcpy(b->name, word);
        }
    }
    if (!b->name[0]) strcpy(b->name, "ao basis");
    if (fm__same(b->name, "cd basis") || fm__same(b->name, "xc basis") ||
        fm__same(b->name, "ri basis"))
        return fm__bad(w, "fitting with a \"%s\" is not supported", b->name);
    return FM_OK;
}

static fm__basis_entry *add_entry(fm__words *w, fm__basis_block *b, const char *tag)
{
    b->entry           = fm__grow(b->entry, b->n_entry, sizeof *b->entry);
    fm__basis_entry *e = &b->entry[b->n_entry++];
    const size_t     n = strlen(tag);
    *e                 = (fm__basis_entry){.line = fm__line(w), .is_star = n && tag[n - 1] == '*'};
    memcpy(e->tag, tag, n + 1);
    if (e->is_star) e->tag[n - 1] = 0;
    return e;
}

/* The tags behind `except`, each with its NUL, and one NUL more. */
static void read_exceptions(fm__words *w, fm__basis_entry *e)
{
    size_t n = 0;
    for (const char *tag; (tag = fm__next(w));) {
        const size_t more = strlen(tag) + 1;
        e->except         = realloc(e->except, n + more + 1);
        FM_BUG_UNLESS(e->except != NULL);
        memcpy(e->except + n, tag, more);
        n += more;
        e->except[n] = 0;
    }
}

static int is_entry_option(const char *word)
{
    return fm__same(word, "except") || fm__same(word, "file") || fm__same(word, "rel") ||
           fm__same(word, "details");
}

/* Behind `library`: [tag in the library] set [except ...]. */
static fm_status read_library(fm__words *w, fm__basis_entry *e)
{
    FM_TRY(fm__need_text(w, e->set, sizeof e->set, "the name of a basis set"));
    if (fm__peek(w) && !is_entry_option(fm__peek(w))) {
        if (strlen(e->set) >= sizeof e->in_lib) return fm__bad(w, "tag \"%s\" is too long", e->set);
        strcpy(e->in_lib, e->set);
        FM_TRY(fm__need_text(w, e->set, sizeof e->set, "the name of a basis set"));
    }
    if (!fm_library_has(e->set))
        return fm__bad(
            w, "basis set \"%s\" is not in the library (docs/chemistry.md lists the sets)", e->set);
    if (fm__take(w, "except")) read_exceptions(w, e);
    return fm__need_end(w);
}

/* One line of a shell, if this line begins with a number. */
static fm_status read_row(fm__words *w, double *rows, int *n_prim, int *n_column)
{
    double x;
    int    n = 0;
    if (*n_prim == PRIM_MAX) return fm__bad(w, "more than %d primitives in a shell", PRIM_MAX);
    while (fm__peek(w)) {
        if (n == COLUMN_MAX)
            return fm__bad(w, "more than %d contractions of a shell", COLUMN_MAX - 1);
        FM_TRY(fm__need_real(w, &x, n ? "a coefficient" : "an exponent"));
        rows[(size_t)*n_prim * (*n_column ? *n_column : COLUMN_MAX) + n++] = x;
        if (*n_column && n > *n_column) break;
    }
    if (n < 2) return fm__bad(w, "an exponent without coefficients");
    if (*n_column && n != *n_column)
        return fm__bad(w, "this line has %d coefficients, the one before %d", n - 1, *n_column - 1);
    *n_column = n;
    ++*n_prim;
    return FM_OK;
}

static int line_is_row(const fm__words *w)
{
    double    x;
    fm__words ahead = *w;
    return fm__next_line(&ahead) && fm__take_real(&ahead, &x);
}

static fm_status read_shell(fm__words *w, fm__basis_entry *e, int l)
{
    double *rows   = calloc((size_t)PRIM_MAX + 1, COLUMN_MAX * sizeof *rows);
    int     n_prim = 0, n_column = 0;
    FM_BUG_UNLESS(rows != NULL);
    fm_status rc = fm__need_end(w);
    while (rc == FM_OK && line_is_row(w)) {
        fm__next_line(w);
        rc = read_row(w, rows, &n_prim, &n_column);
    }
    if (rc == FM_OK && n_prim == 0)
        rc = fm__bad(w, "the shell of \"%s\" has no primitives", e->tag);
    if (rc == FM_OK) rc = fm__bad_as(w, fm_shells_add(&e->shells, l, rows, n_prim, n_column));
    free(rows);
    return rc;
}

static fm_status read_entry(fm__words *w, fm__basis_block *b, const char *tag)
{
    const char *word;
    int         of;
    if (strlen(tag) >= FM_TAG_MAX) return fm__bad(w, "tag \"%s\" is too long", tag);
    if (b->n_entry == ENTRY_MAX) return fm__bad(w, "more than %d lines in a basis", ENTRY_MAX);
    fm__basis_entry *e = add_entry(w, b, tag);
    if (!e->is_star && fm__tag_element(tag, &of) < 0)
        return fm__bad(w, "\"%s\" is neither an element nor a ghost (bq...)", tag);
    FM_TRY(fm__need_word(w, &word, "\"library\" or a type of shell"));
    if (fm__same(word, "library")) return read_library(w, e);
    const int l = fm_shell_l(word);
    if (l == FM_L_NONE)
        return fm__bad(w, "\"%s\" is neither \"library\" nor a shell from S to G", word);
    if (e->is_star) return fm__bad(w, "shells need a tag without *");
    return read_shell(w, e, l);
}

fm_status fm__read_basis(fm__state *s)
{
    fm__words       *w = &s->words;
    fm__basis_block *b = calloc(1, sizeof *b);
    FM_BUG_UNLESS(b != NULL);
    s->block               = fm__grow(s->block, s->n_block, sizeof *s->block);
    s->block[s->n_block++] = b;
    FM_TRY(read_options(w, b));
    while (fm__next_line(w)) {
        const char *word = fm__next(w);
        if (fm__same(word, "end")) {
            if (b->n_entry == 0) return fm__bad(w, "the basis has no shells");
            return fm__need_end(w);
        }
        FM_TRY(fm__still_in_block(w, "basis", word));
        FM_TRY(read_entry(w, b, word));
    }
    return fm__bad(w, "the basis block has no end");
}
