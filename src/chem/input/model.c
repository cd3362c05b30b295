/* SPDX-License-Identifier: Apache-2.0 */
/* A geometry and a basis block become a molecule with shells on its atoms. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/basis/library.h"
#include "chem/input/state.h"

static int is_excepted(const fm__basis_entry *e, const char *tag)
{
    for (const char *x = e->except; x && *x; x += strlen(x) + 1)
        if (!strcmp(x, tag)) return 1;
    return 0;
}

/* Whether the entry is meant for this tag; `*` alone leaves ghosts out, as in NWChem. */
static int is_for_tag(const fm__basis_entry *e, const fm_atom *a)
{
    if (!e->is_star) return !strcmp(e->tag, a->tag);
    if (e->tag[0] == 0 && a->z == 0) return 0;
    return !strncmp(e->tag, a->tag, strlen(e->tag)) && !is_excepted(e, a->tag);
}

/* Whether the entry's tag is the atom's element, by symbol or name; of a ghost bqO: bqO. */
static int is_for_element(const fm__basis_entry *e, const fm_atom *a)
{
    return !e->is_star && a->z > 0 && fm_element_find(e->tag) == a->z;
}

static fm_status add_entry(const fm__words *w, fm_shells *out, const fm__basis_entry *e,
                           const fm_atom *a)
{
    int of = 0;
    if (!e->set[0]) {
        for (int i = 0; i < e->shells.n_shell; i++) fm_shells_copy(out, &e->shells, i);
        return FM_OK;
    }
    int z = fm__tag_element(e->in_lib[0] ? e->in_lib : a->tag, &of);
    if (z == 0) z = of;
    if (z <= 0)
        return fm__bad(w, "\"%s\" names no element of the library",
                       e->in_lib[0] ? e->in_lib : a->tag);
    return fm__bad_as(w, fm_library_shells(out, e->set, z));
}

static fm_status shells_of_atom(const fm__words *w, fm_shells *out, const fm__basis_block *b,
                                const fm_atom *a)
{
    for (int i = 0; i < b->n_entry; i++)
        if (is_for_tag(&b->entry[i], a)) FM_TRY(add_entry(w, out, &b->entry[i], a));
    for (int i = 0; i < b->n_entry && out->n_shell == 0; i++)
        for (int j = i; j < b->n_entry && is_for_element(&b->entry[i], a); j++)
            if (!strcmp(b->entry[i].tag, b->entry[j].tag))
                FM_TRY(add_entry(w, out, &b->entry[j], a));
    if (out->n_shell == 0 && a->z > 0)
        return fm__bad(w, "basis \"%s\" has nothing for atom \"%s\"", b->name, a->tag);
    return FM_OK;
}

static fm_status build_basis(const fm__words *w, fm_basis *out, const fm_molecule *m,
                             const fm__basis_block *b)
{
    fm_status         rc      = FM_OK;
    fm_shells        *list    = calloc((size_t)m->n_atom, sizeof *list);
    const fm_shells **of_atom = calloc((size_t)m->n_atom, sizeof *of_atom);
    FM_BUG_UNLESS(list && of_atom);
    for (int a = 0; a < m->n_atom; a++) {
        of_atom[a] = &list[a];
        for (int c = 0; c < a && of_atom[a] == &list[a]; c++) /* tags that came before */
            if (!strcmp(m->atom[a].tag, m->atom[c].tag)) of_atom[a] = of_atom[c];
        if (of_atom[a] == &list[a]) FM_GO(shells_of_atom(w, &list[a], b, &m->atom[a]));
    }
    rc = fm__bad_as(w, fm_basis_build(out, m, of_atom, b->is_pure));
out:
    for (int a = 0; a < m->n_atom; a++) fm_shells_fini(&list[a]);
    free(list);
    free(of_atom);
    return rc;
}

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = from ? malloc(bytes) : NULL;
    FM_BUG_UNLESS(copy || !from);
    if (copy) memcpy(copy, from, bytes);
    return copy;
}

static fm_status build(const fm__state *s, fm__model *out)
{
    const fm_molecule *from = &s->geometry[out->geometry]->molecule;
    fm_molecule        m    = *from;
    m.charge                = out->charge;
    m.atom                  = copy_of(from->atom, (size_t)m.n_atom * sizeof *m.atom);
    m.grid_turn             = copy_of(from->grid_turn, (size_t)m.n_atom * sizeof *m.grid_turn);
    m.op                    = copy_of(from->op, (size_t)m.n_op * sizeof *m.op);
    out->molecule           = m;
    return build_basis(&s->words, &out->basis, &out->molecule, s->block[out->block]);
}

/* The last block of that name: a later one replaces an earlier one. */
static int find_geometry(const fm__state *s)
{
    int i = s->n_geometry - 1;
    while (i >= 0 && !fm__same(s->geometry[i]->name, s->geometry_name)) i--;
    return i;
}

static int find_block(const fm__state *s)
{
    int i = s->n_block - 1;
    while (i >= 0 && !fm__same(s->block[i]->name, s->basis_name)) i--;
    return i;
}

fm_status fm__take_model(fm__state *s, const fm__model **out)
{
    const int g = find_geometry(s), b = find_block(s), charge = (int)s->charge;
    if (g < 0)
        return fm__bad(&s->words, "no geometry named \"%s\" before this task", s->geometry_name);
    if (b < 0) return fm__bad(&s->words, "no basis named \"%s\" before this task", s->basis_name);
    for (int i = 0; i < s->n_model; i++) {
        *out = s->model[i];
        if ((*out)->geometry == g && (*out)->block == b && (*out)->charge == charge) return FM_OK;
    }
    fm__model *m = calloc(1, sizeof *m);
    FM_BUG_UNLESS(m != NULL);
    m->geometry            = g;
    m->block               = b;
    m->charge              = charge;
    s->model               = fm__grow(s->model, s->n_model, sizeof *s->model);
    s->model[s->n_model++] = m;
    *out                   = m;
    return build(s, m);
}
