/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/input/deck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapped_file.h"
#include "chem/input/state.h"

static const fm__keyword directives[] = {
    /* clang-format off */
    {"start",         fm__read_start},
    {"restart",       fm__read_restart},
    {"title",         fm__read_title},
    {"echo",          fm__read_echo},
    {"memory",        fm__read_memory},
    {"permanent_dir", fm__read_permanent_dir},
    {"scratch_dir",   fm__read_scratch_dir},
    {"charge",        fm__read_charge},
    {"print",         fm__read_ignored},
    {"noprint",       fm__read_ignored},
    {"ecce_print",    fm__read_ignored},
    {"set",           fm__read_set},
    {"unset",         fm__read_unset},
    {"geometry",      fm__read_geometry},
    {"basis",         fm__read_basis},
    {"scf",           fm__read_scf},
    {"dft",           fm__read_dft},
    {"task",          fm__read_task},
    {0},
    /* clang-format on */
};

static fm_status read_directives(fm__state *s)
{
    fm__words *w = &s->words;
    while (fm__next_line(w)) {
        const char        *word = fm__next(w);
        const fm__keyword *k    = fm__find(directives, word);
        if (!k) return fm__bad(w, "directive \"%s\" is not supported", word);
        FM_TRY(k->read(s));
    }
    if (s->deck->n_task == 0) return fm_fail(FM_E_FORMAT, "%s: the deck has no task", w->file);
    return FM_OK;
}

/* As in NWChem: h2o of runs/h2o.nw. */
static void take_name_of_file(fm_deck *d, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const int   n   = dot && dot > base ? (int)(dot - base) : (int)strlen(base);
    snprintf(d->name, sizeof d->name, "%.*s", n, base);
}

fm_status fm_deck_parse(fm_deck *out, const char *name, const char *text, size_t n)
{
    fm_deck    deck = {0};
    fm__state *s    = calloc(1, sizeof *s);
    if (!s) return fm_fail(FM_E_OOM, "%s: the deck's state", name);
    deck.owned = s;
    fm__state_init(s, &deck);
    fm_status rc = fm__words_split(&s->words, name, text, n);
    if (rc == FM_OK) rc = read_directives(s);
    fm__words_fini(&s->words);
    s->deck = NULL;
    if (rc == FM_OK && !deck.name[0]) take_name_of_file(&deck, name);
    if (rc == FM_OK)
        *out = deck;
    else
        fm_deck_fini(&deck);
    return rc;
}

fm_status fm_deck_read(fm_deck *out, const char *path)
{
    fm_mapped_file file = {0};
    FM_TRY(fm_mapped_file_open(&file, path));
    const fm_status rc = fm_deck_parse(out, path, file.data ? file.data : "", file.size);
    fm_mapped_file_close(&file);
    return rc;
}

void fm_deck_fini(fm_deck *d)
{
    if (d->owned) fm__state_fini(d->owned);
    free(d->owned);
    free(d->task);
    memset(d, 0, sizeof *d);
}
