/* SPDX-License-Identifier: Apache-2.0 */
/* geometry [name] [units u] [options]; atoms as `tag x y z [options]`; end */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/input/state.h"

enum { ATOM_MAX = 5000 };

/* 1 angstrom in bohr as NWChem has it: energies depend on its digits. */
static const double bohr_per_angstrom = 1.88972598858;

typedef struct {
    fm__geometry     *geometry;
    double            scale; /* the deck's unit in bohr */
    fm__frame_options frame;
    int               has_symmetry; /* a `symmetry` line was there */
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

static fm_status read_atom(fm__words *w, reading *r, const char *tag)
{
    fm_molecule *m = &r->geometry->molecule;
    int          of;
    fm_atom      a = {.z = fm__tag_element(tag, &of)};
    if (strlen(tag) >= FM_TAG_MAX)
        return fm__bad(w, "tag \"%s\" has more than %d characters", tag, FM_TAG_MAX - 1);
    if (a.z < 0) return fm__bad(w, "\"%s\" is neither an element nor a ghost (bq...)", tag);
    if (m->n_atom == ATOM_MAX) return fm__bad(w, "more than %d atoms", ATOM_MAX);
    strcpy(a.tag, tag);
    a.charge = a.z;
    a.mass   = fm_element_mass(a.z);
    for (int k = 0; k < 3; k++) {
        FM_TRY(fm__need_real(w, &a.xyz[k], "a coordinate"));
        a.xyz[k] *= r->scale;
        if (fabs(a.xyz[k]) > 1e6) return fm__bad(w, "coordinate %g bohr is out of range", a.xyz[k]);
    }
    FM_TRY(read_atom_options(w, &a));
    m->atom              = fm__grow(m->atom, m->n_atom, sizeof *m->atom);
    m->atom[m->n_atom++] = a;
    return FM_OK;
}

/* symmetry [group] c1: the axes stay as they are.  Other groups would generate atoms. */
static fm_status read_symmetry(fm__words *w, reading *r)
{
    (void)fm__take(w, "group");
    const char *group = fm__next(w);
    if (group && !fm__same(group, "c1") && !fm__same(group, "1"))
        return fm__bad(w, "symmetry \"%s\" is not supported (c1, or leave it to be detected)",
                       group);
    r->has_symmetry = 1;
    return fm__need_end(w);
}

static fm_status read_line(fm__words *w, reading *r, const char *word)
{
    static const char *const unsupported[] = {"zmatrix", "zmat",   "zmt",  "zmatr", "zmatri",
                                              "zcoord",  "system", "load", NULL};
    if (fm__same(word, "symmetry") || fm__same(word, "sym")) return read_symmetry(w, r);
    for (const char *const *u = unsupported; *u; u++)
        if (fm__same(word, *u))
            return fm__bad(w, "\"%s\" is not supported in a geometry: give Cartesian coordinates",
                           word);
    return read_atom(w, r, word);
}

static fm_status check_distances(const fm__words *w, const fm_molecule *m)
{
    for (int i = 0; i < m->n_atom; i++)
        for (int j = 0; j < i; j++) {
            const fm_atom *a = &m->atom[i], *b = &m->atom[j];
            double         d2 = 0;
            for (int k = 0; k < 3; k++) d2 += (a->xyz[k] - b->xyz[k]) * (a->xyz[k] - b->xyz[k]);
            if (d2 < 1e-4 && (a->z || a->charge) && (b->z || b->charge))
                return fm__bad(w, "atoms %d (%s) and %d (%s) lie on each other", j + 1, b->tag,
                               i + 1, a->tag);
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
    FM_TRY(check_distances(w, &r.geometry->molecule));
    if (r.has_symmetry || r.geometry->molecule.n_atom == 1) r.frame.autosym = 0;
    fm__to_frame(&r.geometry->molecule, &r.frame);
    return FM_OK;
}
