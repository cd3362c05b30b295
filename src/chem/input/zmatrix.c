/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem/input/zmatrix.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/input/state.h"

enum { VALUE_MAX = 1000 };

/* The words of one atom; values are looked up when all names are known. */
typedef struct {
    const char *from[3];  /* i, j, k */
    const char *value[3]; /* length, angle, dihedral or second angle */
    int         side;     /* +-1: the third value is an angle */
    fm__words   at;       /* for messages */
} row;

typedef struct {
    const char *name[VALUE_MAX];
    double      value[VALUE_MAX];
    int         n;
    row        *atom;
} reading;

static fm_status read_row(fm__words *w, row *r, int n_before)
{
    const int n = n_before < 3 ? n_before : 3;
    for (int i = 0; i < n; i++) {
        FM_TRY(fm__need_word(w, &r->from[i], "an earlier atom"));
        FM_TRY(fm__need_word(w, &r->value[i], i == 0 ? "a length" : "an angle"));
    }
    if (n == 3 && fm__peek(w)) {
        FM_TRY(fm__need_int(w, &r->side, -1, 1, "+1 or -1"));
        if (r->side == 0) return fm__bad(w, "expected +1 or -1, found 0");
    }
    r->at = *w;
    return fm__need_end(w);
}

static fm_status read_value(fm__words *w, reading *z, const char *name)
{
    if (z->n == VALUE_MAX) return fm__bad(w, "more than %d values", VALUE_MAX);
    z->name[z->n] = name;
    FM_TRY(fm__need_real(w, &z->value[z->n], "a value"));
    z->n++;
    return fm__need_end(w);
}

/* Lines up to `end`: atoms, then values. */
static fm_status read_lines(fm__words *w, fm_molecule *m, reading *z, fm__new_atom *new_atom)
{
    int in_values = 0;
    while (fm__next_line(w)) {
        const char *word = fm__next(w);
        if (fm__same(word, "end") || fm__same(word, "zend")) return fm__need_end(w);
        FM_TRY(fm__still_in_block(w, "zmatrix", word));
        if (fm__same(word, "variables") || fm__same(word, "constants")) {
            in_values = 1;
            FM_TRY(fm__need_end(w));
        } else if (in_values) {
            FM_TRY(read_value(w, z, word));
        } else {
            FM_TRY(new_atom(w, m, word));
            z->atom = realloc(z->atom, (size_t)m->n_atom * sizeof *z->atom);
            FM_BUG_UNLESS(z->atom != NULL);
            z->atom[m->n_atom - 1] = (row){0};
            FM_TRY(read_row(w, &z->atom[m->n_atom - 1], m->n_atom - 1));
        }
    }
    return fm__bad(w, "the zmatrix has no end");
}

static fm_status look_up(const reading *z, const row *r, int i, double *out)
{
    const char *word = r->value[i];
    fm__words   one  = r->at;
    fm__word    text = {word, fm__line(&r->at), 1};
    one.word         = &text;
    one.at = one.from = 0;
    one.to = one.n_word = 1;
    if (fm__take_real(&one, out)) return FM_OK;
    const double sign = *word == '-' ? -1 : 1;
    if (*word == '-' || *word == '+') word++;
    for (int k = 0; k < z->n; k++)
        if (fm__same(z->name[k], word)) {
            *out = sign * z->value[k];
            return FM_OK;
        }
    return fm__bad(&r->at, "\"%s\" has no value", word);
}

/* An earlier atom by number or tag. */
static fm_status find_atom(const fm_molecule *m, const row *r, int i, int n_before, int *out)
{
    const char *word = r->from[i];
    char       *end;
    const long  number = strtol(word, &end, 10);
    if (*end == 0 && number >= 1 && number <= n_before) {
        *out = (int)number - 1;
        return FM_OK;
    }
    for (int a = 0; a < n_before && *end; a++)
        if (fm__same(m->atom[a].tag, word)) {
            *out = a;
            return FM_OK;
        }
    return fm__bad(&r->at, "\"%s\" is no earlier atom", word);
}

static void direction(double out[3], const double from[3], const double to[3])
{
    double length = 0;
    for (int k = 0; k < 3; k++) {
        out[k] = to[k] - from[k];
        length += out[k] * out[k];
    }
    for (int k = 0; k < 3; k++) out[k] /= sqrt(length);
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(double out[3], const double a[3], const double b[3])
{
    for (int k = 0; k < 3; k++)
        out[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* Direction u from i with an angle to j and a dihedral angle u-i-j-k. */
static int by_dihedral(double u[3], const double i[3], const double j[3], const double k[3],
                       double angle, double dihedral)
{
    double ij[3], jk[3], across[3], up[3];
    direction(ij, i, j);
    direction(jk, j, k);
    cross(across, ij, jk);
    const double length = sqrt(dot(across, across));
    if (length < 1e-6) return 0;
    for (int c = 0; c < 3; c++) across[c] /= length;
    cross(up, across, ij); /* in the plane of i, j, k, away from ij towards k */
    for (int c = 0; c < 3; c++)
        u[c] =
            cos(angle) * ij[c] + sin(angle) * (cos(dihedral) * up[c] - sin(dihedral) * across[c]);
    return 1;
}

/* Direction u from i with angles to j and k; `side` of their plane. */
static int by_angles(double u[3], const double i[3], const double j[3], const double k[3],
                     double to_j, double to_k, int side)
{
    double ij[3], ik[3], normal[3];
    direction(ij, i, j);
    direction(ik, i, k);
    cross(normal, ij, ik);
    const double c = dot(ij, ik), s2 = 1 - c * c;
    if (s2 < 1e-10) return 0;
    const double a = (cos(to_j) - c * cos(to_k)) / s2, b = (cos(to_k) - c * cos(to_j)) / s2;
    const double rest = (1 - a * a - b * b - 2 * a * b * c) / s2;
    if (rest < -1e-6) return 0;
    const double h = side * sqrt(fmax(rest, 0));
    for (int n = 0; n < 3; n++) u[n] = a * ij[n] + b * ik[n] + h * normal[n];
    return 1;
}

static fm_status place(fm_molecule *m, const reading *z, int n, double scale)
{
    const row    *r    = &z->atom[n];
    double        v[3] = {0}, u[3] = {0, 0, 1};
    int           from[3] = {0};
    const double *at[3]   = {m->atom[0].xyz, m->atom[0].xyz, m->atom[0].xyz};
    if (n == 0) return FM_OK; /* the origin */
    for (int i = 0; i < 3 && i < n; i++) {
        FM_TRY(find_atom(m, r, i, n, &from[i]));
        FM_TRY(look_up(z, r, i, &v[i]));
        at[i] = m->atom[from[i]].xyz;
        for (int k = 0; k < i; k++)
            if (from[k] == from[i]) return fm__bad(&r->at, "\"%s\" is named twice", r->from[i]);
    }
    if (!(v[0] > 0)) return fm__bad(&r->at, "length %g is not positive", v[0]);
    const double angle = v[1] * M_PI / 180, third = v[2] * M_PI / 180;
    const double aside[3] = {at[1][0] + 1, at[1][1], at[1][2]}; /* the third atom: towards x */
    int          is_good  = 1;
    if (n == 2) is_good = by_dihedral(u, at[0], at[1], aside, angle, 0);
    if (n > 2)
        is_good = r->side ? by_angles(u, at[0], at[1], at[2], angle, third, r->side)
                          : by_dihedral(u, at[0], at[1], at[2], angle, third);
    if (!is_good) return fm__bad(&r->at, "the angles of this atom define no place");
    for (int k = 0; k < 3; k++) m->atom[n].xyz[k] = at[0][k] + v[0] * scale * u[k];
    return FM_OK;
}

fm_status fm__read_zmatrix(fm__words *w, fm_molecule *m, double scale, fm__new_atom *new_atom)
{
    reading   z  = {.n = 0};
    fm_status rc = read_lines(w, m, &z, new_atom);
    for (int n = 0; rc == FM_OK && n < m->n_atom; n++) rc = place(m, &z, n, scale);
    free(z.atom);
    return rc;
}
