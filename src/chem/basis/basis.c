/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/basis/basis.h"

#include <stdlib.h>
#include <string.h>

#include "chem/basis/library.h"
#include "chem/basis/shells.h"

void fm_basis_fini(fm_basis *b)
{
    free(b->shell);
    free(b->numbers);
    memset(b, 0, sizeof *b);
}

/* Coefficients over bare exponentials that give each contraction norm 1. */
static void normalise(double *coef, const fm_shell_entry *e, const double *exponent,
                      const double *raw)
{
    for (int c = 0; c < e->n_contr; c++, coef += e->n_prim, raw += e->n_prim) {
        const double norm = fm_contraction_norm(e->l, e->n_prim, exponent, raw);
        for (int i = 0; i < e->n_prim; i++)
            coef[i] = raw[i] / norm * fm_primitive_norm(e->l, exponent[i]);
    }
}

/* Append the shells of atom `a`; numbers go to *room, which moves on. */
static void add_atom(fm_basis *b, const fm_molecule *m, int a, const fm_shells *list, int is_pure,
                     double **room)
{
    for (int i = 0; i < list->n_shell; i++) {
        const fm_shell_entry *e        = &list->shell[i];
        const double         *exponent = list->number + e->at;
        fm_shell             *s        = &b->shell[b->n_shell++];
        double               *coef     = *room + e->n_prim;
        memcpy(*room, exponent, (size_t)e->n_prim * sizeof **room);
        normalise(coef, e, exponent, exponent + e->n_prim);
        *s = (fm_shell){.atom     = a,
                        .l        = e->l,
                        .is_pure  = is_pure && e->l > 1,
                        .n_prim   = e->n_prim,
                        .n_contr  = e->n_contr,
                        .exponent = *room,
                        .coef     = coef,
                        .first    = b->n_function};
        memcpy(s->xyz, m->atom[a].xyz, sizeof s->xyz);
        b->n_function += fm_shell_functions(s);
        if (e->l > b->l_max) b->l_max = e->l;
        *room += e->n_prim * (1 + e->n_contr);
    }
}

fm_status fm_basis_build(fm_basis *out, const fm_molecule *m, const fm_shells *const *of_atom,
                         int is_pure)
{
    size_t n_shell = 0, n_number = 0;
    for (int a = 0; a < m->n_atom; a++) {
        n_shell += (size_t)of_atom[a]->n_shell;
        n_number += (size_t)of_atom[a]->n_number;
    }
    if (n_shell == 0) return fm_fail(FM_E_FORMAT, "no atom has basis functions");
    fm_basis b = {.shell   = calloc(n_shell, sizeof *b.shell),
                  .numbers = calloc(n_number, sizeof *b.numbers)};
    if (!b.shell || !b.numbers) {
        fm_basis_fini(&b);
        return fm_fail(FM_E_OOM, "%zu shells", n_shell);
    }
    double *room = b.numbers;
    for (int a = 0; a < m->n_atom; a++) add_atom(&b, m, a, of_atom[a], is_pure, &room);
    *out = b;
    return FM_OK;
}

fm_status fm_basis_from_library(fm_basis *out, const fm_molecule *m, const char *set, int is_pure)
{
    fm_status         rc      = FM_OK;
    fm_shells        *of_z    = calloc(FM_Z_MAX + 1, sizeof *of_z);
    const fm_shells **of_atom = calloc((size_t)m->n_atom + 1, sizeof *of_atom);
    if (!of_z || !of_atom) {
        rc = fm_fail(FM_E_OOM, "shells of %d atoms", m->n_atom);
        goto out;
    }
    for (int a = 0; a < m->n_atom; a++) {
        const int z = m->atom[a].z;
        if (z && of_z[z].n_shell == 0) FM_GO(fm_library_shells(&of_z[z], set, z));
        of_atom[a] = &of_z[z];
    }
    rc = fm_basis_build(out, m, of_atom, is_pure);
out:
    for (int z = 0; of_z && z <= FM_Z_MAX; z++) fm_shells_fini(&of_z[z]);
    free(of_z);
    free(of_atom);
    return rc;
}
