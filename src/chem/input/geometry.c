/* SPDX-License-Identifier: Apache-2.0 */
/* geometry [name] [units u] [options]; atoms as `tag x y z [options]`; end */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/input/state.h"
#include "chem/input/symmetry.h"
#include "chem/input/zmatrix.h"

enum { ATOM_MAX = 5000 };

/* 1 angstrom in bohr as NWChem has it: energies depend on its digits. */
static const double bohr_per_angstrom = 1.88972598858;

typedef struct {
    fm__geometry     *geometry;
    double            scale; /* the deck's unit in bohr */
    fm__frame_options frame;
} reading;

/* NWChem looks at the first two letters. */
static fm_status read_units(fm__words *w, double *scale)
{
    const char *unit;
    FM_TRY(fm__need_word(w, &unit, "a unit of length"));
    if (!strncasecmp(unit, "an", 2))
        *scale = bohr_per_angstrom;
    else if (!strncasecmp(unit, "au", 2) || !strncasecmp(unit, "at", 2) ||
             !strncasecmp(unit, "bo", 2) || fm__same(unit, "a.u."))
        *scale = 1;
    else if (!strncasecmp(unit, "nm", 2) || !strncasecmp(unit, "na", 2))
        *scale = 10 * bohr_per_angstrom;
    else if (!strncasecmp(unit, "pm", 2) || !strncasecmp(unit, "pi", 2))
        *scale = 0.01 * bohr_per_angstrom;
    else
        return fm__bad(w, "unit \"%s\" is not supported (angstroms, au, nm, pm)", unit);
    return FM_OK;
}

/* One word of the `geometry` line, or its name. */
static fm_status read_option(fm__words *w, reading *r)
{
    if (fm__take(w, "units")) return read_units(w, &r->scale);
    if (fm__take(w, "angstrom_to_au") || fm__take(w, "ang2au"))
        return fm__need_positive(w, &r->scale, "the length of an angstrom in bohr");
    if (fm__take(w, "autosym")) {
        r->frame.autosym = 1;
        (void)fm__take_real(w, &r->frame.tolerance);
    } else if (fm__take(w, "noautosym"))
        r->frame.autosym = 0;
    else if (fm__take(w, "center"))
        r->frame.center = 1;
    else if (fm__take(w, "nocenter"))
        r->frame.center = 0;
    else if (fm__take(w, "print"))
        (void)fm__take(w, "xyz");
    else if (!(fm__take(w, "noprint") || fm__take(w, "autoz") || fm__take(w, "noautoz"))) {
        const char *word = fm__next(w);
        if (fm__same(word, "adjust") || fm__same(word, "nucleus") || fm__same(word, "nuc") ||
            fm__same(word, "nucl") || fm__same(word, "bqbq") || fm__same(word, "au_to_angstrom"))
            return fm__bad(w, "geometry option \"%s\" is not supported", word);
        if (r->geometry->name[0]) return fm__bad(w, "geometry option \"%s\" is unknown", word);
        if (strlen(word) >= FM__NAME_MAX) return fm__bad(w, "the geometry's name is too long");
        strcpy(r->geometry->name, word);
    }
    return FM_OK;
}

/* `charge q`, `mass m` behind the coordinates; velocities are passed over. */
static fm_status read_atom_options(fm__words *w, fm_atom *a)
{
    double x;
    for (int i = 0; i < 3 && fm__take_real(w, &x); i++) {
    }
    while (fm__peek(w)) {
        if (fm__take(w, "mass")) {
            FM_TRY(fm__need_real(w, &a->mass, "a mass"));
        } else if (fm__take(w, "charge")) {
            FM_TRY(fm__need_real(w, &a->charge, "a nuclear charge"));
            if (a->z == 0 && a->charge != 0)
                return fm__bad(w, "point charges (%s) are not supported", a->tag);
            if (a->charge < 0) return fm__bad(w, "nuclear charge %g is negative", a->charge);
        } else {
            const char *word = fm__next(w);
            return fm__bad(w, "atom option \"%s\" is not supported", word);
        }
    }
    return FM_OK;
}

/* Append an atom at the origin. */
static fm_status new_atom(fm__words *w, fm_molecule *m, const char *tag)
{
    int     of;
    fm_atom a = {.z = fm__tag_element(tag, &of)};
    if (strlen(tag) >= FM_TAG_MAX)
        return fm__bad(w, "tag \"%s\" has more than %d characters", tag, FM_TAG_MAX - 1);
    if (a.z < 0) return fm__bad(w, "\"%s\" is neither an element nor a ghost (bq...)", tag);
    if (m->n_atom == ATOM_MAX) return fm__bad(w, "more than %d atoms", ATOM_MAX);
    strcpy(a.tag, tag);
    a.charge             = a.z;
    a.mass               = fm_element_mass(a.z);
    m->atom              = fm__grow(m->atom, m->n_atom, sizeof *m->atom);
    m->atom[m->n_atom++] = a;
    return FM_OK;
}

static fm_status read_atom(fm__words *w, reading *r, const char *tag)
{
    fm_molecule *m = &r->geometry->molecule;
    FM_TRY(new_atom(w, m, tag));
    fm_atom *a = &m->atom[m->n_atom - 1];
    for (int k = 0; k < 3; k++) {
        FM_TRY(fm__need_real(w, &a->xyz[k], "a coordinate"));
        a->xyz[k] *= r->scale;
    }
    return read_atom_options(w, a);
}

/* symmetry [group] name [tol t]: atoms are given in NWChem's setting of the group, those
 * that its operations make are added. */
static fm_status read_symmetry(fm__words *w, reading *r)
{
    while (fm__peek(w)) {
        if (fm__take(w, "tol"))
            FM_TRY(fm__need_positive(w, &r->frame.tolerance, "a tolerance"));
        else if (!fm__take(w, "group") && !fm__take(w, "print")) {
            const char *group = fm__next(w);
            if (!fm__group_name(group, r->frame.group))
                return fm__bad(w, "symmetry \"%s\" is not supported", group);
        }
    }
    if (!r->frame.group[0]) strcpy(r->frame.group, "C1");
    return FM_OK;
}

static int is_zmatrix(const char *word)
{
    return fm__same(word, "zmatrix") || fm__same(word, "zmatri") || fm__same(word, "zmatr") ||
           fm__same(word, "zmat") || fm__same(word, "zmt");
}

static fm_status read_line(fm__words *w, reading *r, const char *word)
{
    fm_molecule *m = &r->geometry->molecule;
    if (fm__same(word, "symmetry") || fm__same(word, "sym")) return read_symmetry(w, r);
    if (fm__same(word, "zcoord") || fm__same(word, "system") || fm__same(word, "load"))
        return fm__bad(w, "\"%s\" is not supported in a geometry", word);
    if (!is_zmatrix(word)) return read_atom(w, r, word);
    if (m->n_atom) return fm__bad(w, "a zmatrix cannot follow atoms with coordinates");
    FM_TRY(fm__need_end(w));
    return fm__read_zmatrix(w, m, r->scale, new_atom);
}

static double squared_distance(const fm_atom *a, const fm_atom *b)
{
    double d2 = 0;
    for (int k = 0; k < 3; k++) d2 += (a->xyz[k] - b->xyz[k]) * (a->xyz[k] - b->xyz[k]);
    return d2;
}

/* Nuclei are apart, and not beyond what can be computed with. */
static fm_status check_places(const fm__words *w, const fm_molecule *m)
{
    for (int i = 0; i < m->n_atom; i++) {
        const fm_atom *a = &m->atom[i];
        for (int k = 0; k < 3; k++)
            if (!(fabs(a->xyz[k]) < 1e6))
                return fm__bad(w, "atom %d (%s) has coordinate %g bohr", i + 1, a->tag, a->xyz[k]);
        for (int j = 0; j < i; j++)
            if (a->charge > 0 && m->atom[j].charge > 0 && squared_distance(a, &m->atom[j]) < 1e-4)
                return fm__bad(w, "atoms %d (%s) and %d (%s) lie on each other", j + 1,
                               m->atom[j].tag, i + 1, a->tag);
    }
    return FM_OK;
}

static fm_status read_atoms(fm__words *w, reading *r)
{
    while (fm__next_line(w)) {
        const char *word = fm__next(w);
        if (fm__same(word, "end")) {
            if (r->geometry->molecule.n_atom == 0) return fm__bad(w, "the geometry has no atoms");
            return fm__need_end(w);
        }
        FM_TRY(fm__still_in_block(w, "geometry", word));
        FM_TRY(read_line(w, r, word));
    }
    return fm__bad(w, "the geometry block has no end");
}

fm_status fm__read_geometry(fm__state *s)
{
    fm__words *w = &s->words;
    reading    r = {.scale = bohr_per_angstrom,
                    .frame = {.autosym = 1, .center = 1, .tolerance = 0.01}};

    s->geometry                = fm__grow(s->geometry, s->n_geometry, sizeof *s->geometry);
    s->geometry[s->n_geometry] = r.geometry = calloc(1, sizeof *r.geometry);
    FM_BUG_UNLESS(r.geometry != NULL);
    s->n_geometry++;
    while (fm__peek(w)) FM_TRY(read_option(w, &r));
    if (!r.geometry->name[0]) strcpy(r.geometry->name, "geometry");
    FM_TRY(read_atoms(w, &r));
    FM_TRY(check_places(w, &r.geometry->molecule));
    if (r.frame.group[0] || r.geometry->molecule.n_atom == 1) r.frame.autosym = 0;
    fm__to_frame(&r.geometry->molecule, &r.frame);
    if (r.geometry->molecule.n_atom > ATOM_MAX) return fm__bad(w, "more than %d atoms", ATOM_MAX);
    return check_places(w, &r.geometry->molecule); /* symmetry may have made atoms */
}
