/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an input deck: a sentence that says why not, or tasks that can be run. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "chem/input/deck.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_basis(const fm_basis *b, int n_atom)
{
    int first = 0;
    for (int i = 0; i < b->n_shell; i++) {
        const fm_shell *s = &b->shell[i];
        FM_BUG_UNLESS(s->first == first && s->atom >= 0 && s->atom < n_atom);
        FM_BUG_UNLESS(s->l >= 0 && s->l <= b->l_max && b->l_max <= FM_L_MAX);
        for (int p = 0; p < s->n_prim; p++) FM_BUG_UNLESS(s->exponent[p] > 0 && isfinite(s->exponent[p]));
        for (int c = 0; c < s->n_prim * s->n_contr; c++) FM_BUG_UNLESS(isfinite(s->coef[c]));
        first += fm_shell_functions(s);
    }
    FM_BUG_UNLESS(first == b->n_function && first > 0);
}

static void check_task(const fm_deck_task *t)
{
    const fm_molecule *m = t->molecule;
    FM_BUG_UNLESS(isfinite(fm_molecule_repulsion(m)));
    FM_BUG_UNLESS(t->n_beta >= 0 && t->n_beta <= t->n_alpha && t->n_alpha <= t->basis->n_function);
    FM_BUG_UNLESS(t->n_alpha + t->n_beta == fm_molecule_electrons(m));
    FM_BUG_UNLESS(t->tol2e > 0 && t->max_iterations > 0 && t->line > 0);
    FM_BUG_UNLESS(t->spin != FM_SPIN_RESTRICTED || t->n_alpha == t->n_beta);
    for (int i = 0; i < m->n_atom; i++) {
        FM_BUG_UNLESS(memchr(m->atom[i].tag, 0, FM_TAG_MAX));
        for (int k = 0; k < 3; k++) FM_BUG_UNLESS(isfinite(m->atom[i].xyz[k]));
    }
    check_basis(t->basis, m->n_atom);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_deck d = {0};
    if (fm_deck_parse(&d, "fuzz", (const char *)data, size) != FM_OK) {
        FM_BUG_UNLESS(fm_why()[0]);
        return 0;
    }
    FM_BUG_UNLESS(d.n_task > 0);
    for (int i = 0; i < d.n_task; i++) check_task(&d.task[i]);
    fm_deck_fini(&d);
    return 0;
}
