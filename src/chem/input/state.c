/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/input/state.h"

#include <stdlib.h>
#include <string.h>

/* Where a deck sets no limit: an iteration of NWChem's scf is a Newton step of several Fock
 * matrices, one of ours is one, so its 30 would end decks that converge there. */
enum { MAX_ITERATIONS = 200 };

/* Defaults of NWChem 7.0.2, but for the number of iterations. */
void fm__state_init(fm__state *s, fm_deck *deck)
{
    s->deck   = deck;
    s->lindep = 1e-5;
    s->scf    = (fm__scf){.thresh = 1e-4, .max_iterations = MAX_ITERATIONS};
    s->dft    = (fm__dft){.mix          = {{{"slater", 1, FM_XC_WHOLE}, {"vwn_5", 1, FM_XC_WHOLE}}, 2},
                          .level        = FM_GRID_MEDIUM,
                          .tol_energy   = 1e-6,
                          .tol_density  = 1e-5,
                          .tol_gradient = 5e-4,
                          .acc_coul     = 8,
                          .tol_rho      = 1e-10,
                          .max_iterations = MAX_ITERATIONS,
                          .multiplicity   = 1};
    strcpy(s->geometry_name, "geometry");
    strcpy(s->basis_name, "ao basis");
}

static void block_fini(fm__basis_block *b)
{
    for (int i = 0; i < b->n_entry; i++) {
        fm_shells_fini(&b->entry[i].shells);
        free(b->entry[i].except);
    }
    free(b->entry);
    free(b);
}

void fm__state_fini(fm__state *s)
{
    for (int i = 0; i < s->n_geometry; i++) {
        fm_molecule_fini(&s->geometry[i]->molecule);
        free(s->geometry[i]);
    }
    for (int i = 0; i < s->n_block; i++) block_fini(s->block[i]);
    for (int i = 0; i < s->n_model; i++) {
        fm_molecule_fini(&s->model[i]->molecule);
        fm_basis_fini(&s->model[i]->basis);
        free(s->model[i]);
    }
    free(s->geometry);
    free(s->block);
    free(s->model);
    fm__words_fini(&s->words);
}

void *fm__grow(void *array, int n, size_t size)
{
    if (n & (n - 1)) return array; /* capacity is the next power of two */
    array = realloc(array, (n ? 2 * (size_t)n : 1) * size);
    FM_BUG_UNLESS(array != NULL);
    return array;
}

const fm__keyword *fm__find(const fm__keyword *table, const char *word)
{
    for (; table->name; table++)
        if (fm__same(table->name, word)) return table;
    return NULL;
}

fm_status fm__still_in_block(const fm__words *w, const char *block, const char *word)
{
    static const char *const next[] = {"geometry", "basis", "scf", "dft", "task"};
    for (size_t i = 0; i < sizeof next / sizeof *next; i++)
        if (fm__same(next[i], word))
            return fm__bad(w, "\"%s\": the %s block before it has no end", word, block);
    return FM_OK;
}

fm_status fm__read_block(fm__state *s, const char *block, const fm__keyword *table)
{
    fm__words *w = &s->words;
    while (fm__next_line(w)) {
        const char *word = fm__next(w);
        if (fm__same(word, "end")) return fm__need_end(w);
        const fm__keyword *k = fm__find(table, word);
        if (!k) {
            FM_TRY(fm__still_in_block(w, block, word));
            return fm__bad(w, "\"%s\" is not supported in a %s block", word, block);
        }
        FM_TRY(k->read(s));
        FM_TRY(fm__need_end(w));
    }
    return fm__bad(w, "the %s block has no end", block);
}
