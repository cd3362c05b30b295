/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/guess/guess.h"

#include <stdlib.h>
#include <string.h>

#include "chem/eigen/dense.h"
#include "chem/guess/atom.h"

/* The shells of one atom as a basis of their own; numbers stay the molecule's. */
typedef struct {
    fm_basis    basis;
    fm_molecule molecule;
    fm_atom     atom;
    int         same; /* the first atom with this nucleus and these shells */
    fm__atom    solved;
} site;

static void find_shells(site *s, const fm_molecule *m, const fm_basis *b, int at, fm_shell *room)
{
    s->atom     = m->atom[at];
    s->molecule = (fm_molecule){.atom = &s->atom, .n_atom = 1};
    s->basis    = (fm_basis){.shell = room};
    for (int i = 0; i < b->n_shell; i++) {
        const fm_shell *from = &b->shell[i];
        if (from->atom != at) continue;
        fm_shell *to = &room[s->basis.n_shell++];
        *to          = *from;
        to->atom     = 0;
        to->first    = s->basis.n_function;
        s->basis.n_function += fm_shell_functions(to);
        if (to->l > s->basis.l_max) s->basis.l_max = to->l;
    }
}

static int is_same_shell(const fm_shell *a, const fm_shell *b)
{
    const size_t n = (size_t)a->n_prim, nc = (size_t)(a->n_prim * a->n_contr);
    return a->l == b->l && a->is_pure == b->is_pure && a->n_prim == b->n_prim &&
           a->n_contr == b->n_contr && !memcmp(a->exponent, b->exponent, n * sizeof(double)) &&
           !memcmp(a->coef, b->coef, nc * sizeof(double));
}

static int is_same(const site *a, const site *b)
{
    if (a->atom.z != b->atom.z || a->basis.n_shell != b->basis.n_shell) return 0;
    for (int i = 0; i < a->basis.n_shell; i++)
        if (!is_same_shell(&a->basis.shell[i], &b->basis.shell[i])) return 0;
    return 1;
}

static fm_status solve_kinds(site *all, int n)
{
    for (int i = 0; i < n; i++) {
        all[i].same = 0;
        while (!is_same(&all[all[i].same], &all[i])) all[i].same++; /* comes to itself at last */
        if (all[i].same == i)
            FM_TRY(fm__atom_solve(&all[i].solved, &all[i].molecule, &all[i].basis));
    }
    return FM_OK;
}

/* Functions of an atom need not lie together: shells are copied one by one. */
static void place(fm_guess *g, const site *s, const fm__atom *a, const fm_basis *b, int at,
                  int column)
{
    int from = 0;
    for (int i = 0; i < b->n_shell; i++) {
        if (b->shell[i].atom != at) continue;
        const int count = fm_shell_functions(&b->shell[i]);
        for (int f = 0; f < count; f++)
            memcpy(g->column + (size_t)(b->shell[i].first + f) * (size_t)g->n_column + column,
                   a->column + (size_t)(from + f) * (size_t)a->n_column,
                   (size_t)a->n_column * sizeof(double));
        from += count;
    }
    g->electrons += s->atom.z;
    g->atoms_energy += a->energy;
}

static fm_status join(fm_guess *g, const site *all, const fm_molecule *m, const fm_basis *b)
{
    for (int i = 0; i < m->n_atom; i++) g->n_column += all[all[i].same].solved.n_column;
    g->column = fm_dense_new((size_t)b->n_function * (size_t)g->n_column);
    if (!g->column) return fm_fail(FM_E_OOM, "atomic guess");
    for (int i = 0, column = 0; i < m->n_atom; i++) {
        const fm__atom *a = &all[all[i].same].solved;
        if (a->n_column) place(g, &all[i], a, b, i, column);
        column += a->n_column;
    }
    return FM_OK;
}

fm_status fm_guess_atomic(fm_guess *out, const fm_molecule *m, const fm_basis *b)
{
    fm_guess  g    = {0};
    site     *all  = calloc((size_t)m->n_atom, sizeof *all);
    fm_shell *room = calloc((size_t)b->n_shell * (size_t)m->n_atom + 1, sizeof *room);
    fm_status rc   = all && room ? FM_OK : fm_fail(FM_E_OOM, "atomic guess");
    for (int i = 0; rc == FM_OK && i < m->n_atom; i++)
        find_shells(&all[i], m, b, i, room + (size_t)i * (size_t)b->n_shell);
    if (rc == FM_OK) rc = solve_kinds(all, m->n_atom);
    if (rc == FM_OK) rc = join(&g, all, m, b);
    for (int i = 0; all && i < m->n_atom; i++) fm__atom_fini(&all[i].solved);
    free(all);
    free(room);
    if (rc == FM_OK)
        *out = g;
    else
        fm_guess_fini(&g);
    return rc;
}

void fm_guess_fini(fm_guess *g)
{
    free(g->column);
    *g = (fm_guess){0};
}
