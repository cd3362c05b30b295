/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/input/symmetry.h"

/* --- the name --- */

/* Turn the molecule about z until a two-fold axis across z lies on x or y: NWChem's
 * search in steps of half a degree, whose remaining error ends in the coordinates when
 * they are made symmetric.  0: there is none. */
static int turn_to_c2(fm_molecule *m, int order, double tol)
{
    const fm__op c2x = fm__rotation(0, M_PI, 0), c2y = fm__rotation(1, M_PI, 0);
    const double step = M_PI / 360;
    for (int i = 0; i <= 720 / order; i++) {
        const fm__op turn = fm__rotation(2, i * step, 0), back = fm__rotation(2, -i * step, 0);
        fm__apply(m, &turn);
        if (fm__is_symmetric(m, &c2x, tol) || fm__is_symmetric(m, &c2y, tol)) return 1;
        fm__apply(m, &back);
    }
    return 0;
}

/* Make x the two-fold axis or the line of a mirror plane; 'C' or 'D', and *has_plane. */
static char settle_x(fm_molecule *m, int order, double tol, int *has_plane)
{
    const fm__op c2x = fm__rotation(0, M_PI, 0), c2y = fm__rotation(1, M_PI, 0);
    const fm__op zx = fm__mirror(1), yz = fm__mirror(0), quarter = fm__rotation(2, -M_PI / 2, 0);
    int          on_x = fm__is_symmetric(m, &c2x, tol), on_y = fm__is_symmetric(m, &c2y, tol);
    if (!on_x && !on_y && turn_to_c2(m, order, tol)) {
        on_x = fm__is_symmetric(m, &c2x, tol);
        on_y = !on_x;
    }
    if (!on_x && !on_y) {
        *has_plane = fm__is_symmetric(m, &zx, tol);
        if (!*has_plane && (*has_plane = fm__is_symmetric(m, &yz, tol))) fm__apply(m, &quarter);
        return 'C';
    }
    if (!on_x) fm__apply(m, &quarter);
    *has_plane = fm__is_symmetric(m, &zx, tol) || fm__is_symmetric(m, &yz, tol);
    return 'D';
}

/* No axis: Cs with its plane at z = 0, Ci or nothing. */
static void find_low_group(fm_molecule *m, double tol)
{
    const fm__op inversion = fm__rotation(2, M_PI, 1);
    strcpy(m->group, fm__is_symmetric(m, &inversion, tol) ? "Ci" : "C1");
    for (int k = 0; k < 3; k++) {
        const fm__op plane = fm__mirror(k),
                     cycle = fm__rotation(k == 0 ? 1 : 0, k == 0 ? -M_PI / 2 : M_PI / 2, 0);
        if (!fm__is_symmetric(m, &plane, tol)) continue;
        if (k != 2) fm__apply(m, &cycle);
        strcpy(m->group, "Cs");
        return;
    }
}

/* Angle of the two-fold axis or mirror plane across z in NWChem's setting. */
static double setting(char family, int n, char last)
{
    if ((n == 3 || n == 6) && (family == 'D' || last == 'v')) return M_PI / 4;
    if (family == 'D' && n == 4 && last == 'd') return M_PI / 8;
    if (family == 'D' && n == 5 && last != 'd') return M_PI / 2;
    return 0;
}

void fm__find_group(fm_molecule *m, int order, int is_proper, double tol)
{
    int has_plane = 0;
    if (order == 1) {
        find_low_group(m, tol);
        return;
    }
    const fm__op across      = fm__mirror(2);
    const int    has_sigma_h = fm__is_symmetric(m, &across, tol);
    const char   family      = settle_x(m, order, tol, &has_plane);
    const char   last        = has_sigma_h                   ? 'h'
                               : family == 'C' && has_plane  ? 'v'
                               : family == 'D' && !is_proper ? 'd'
                                                             : 0;
    const int    n           = last == 'd' ? order / 2 : order;
    if (!is_proper && order == 2) /* C2h with its axis not on z is nothing to NWChem */
        strcpy(m->group, family == 'D' ? "C1" : "Ci");
    else if (!is_proper && !last)
        snprintf(m->group, sizeof m->group, "S%d", order);
    else
        snprintf(m->group, sizeof m->group, "%c%d%c", family, n, last);
    const fm__op turn = fm__rotation(2, setting(family, n, last), 0);
    fm__apply(m, &turn);
}

/* --- its operations --- */

enum { OP_MAX = 48 };

typedef struct {
    fm__op op[OP_MAX];
    int    n;
} op_list;

static fm__op product(const fm__op *a, const fm__op *b)
{
    fm__op c = {{{0}}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) c.r[i][j] += a->r[i][k] * b->r[k][j];
    return c;
}

static int contains(const op_list *g, const fm__op *op)
{
    for (int i = 0; i < g->n; i++) {
        double d = 0;
        for (int k = 0; k < 9; k++)
            d = fmax(d, fabs(g->op[i].r[k / 3][k % 3] - op->r[k / 3][k % 3]));
        if (d < 1e-6) return 1;
    }
    return 0;
}

/* Add an operation and what it makes with all others. */
static void add(op_list *g, fm__op op)
{
    if (contains(g, &op)) return;
    FM_BUG_UNLESS(g->n < OP_MAX);
    g->op[g->n++] = op;
    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < g->n; i++)
            for (int j = 0; j < g->n; j++) {
                const fm__op p = product(&g->op[i], &g->op[j]);
                if (contains(g, &p)) continue;
                FM_BUG_UNLESS(g->n < OP_MAX);
                g->op[g->n++] = p;
                again         = 1;
            }
    }
}

static fm__op turned(fm__op op, double angle)
{
    const fm__op to = fm__rotation(2, angle, 0), back = fm__rotation(2, -angle, 0);
    op = product(&op, &back);
    return product(&to, &op);
}

/* T, Td, Th, O, Oh with the two-fold axes of T on x, y and z. */
static void add_cubic(op_list *g, char family, char last)
{
    const fm__op diagonal = {{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}}}; /* C3 about (1,1,1) */
    add(g, fm__rotation(2, M_PI, 0));
    add(g, diagonal);
    if (family == 'O') add(g, fm__rotation(2, M_PI / 2, 0));
    if (last == 'd') add(g, fm__rotation(2, M_PI / 2, 1));
    if (last == 'h') add(g, fm__rotation(2, M_PI, 1));
}

int fm__group_name(const char *word, char name[8])
{
    static const char *const known[] = {
        "C1",  "Cs",  "Ci",  "C2",  "C3",  "C4",  "C5",  "C6",  "C7",  "C8",  "C2v",
        "C3v", "C4v", "C5v", "C6v", "C2h", "C3h", "C4h", "C5h", "C6h", "D2",  "D3",
        "D4",  "D5",  "D6",  "D2h", "D3h", "D4h", "D5h", "D6h", "D2d", "D3d", "D4d",
        "D5d", "D6d", "S4",  "S6",  "S8",  "T",   "Td",  "Th",  "O",   "Oh"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(known[i], word)) {
            strcpy(name, known[i]);
            return 1;
        }
    return 0;
}

static op_list operations(const char *group)
{
    op_list      g      = {.n = 0};
    const char   family = group[0];
    const int    n      = group[1] >= '1' && group[1] <= '8' ? group[1] - '0' : 0;
    const char   last   = n ? group[2] : group[1];
    const double angle  = setting(family, n, last);

    add(&g, fm__rotation(2, 0, 0));
    if (family == 'T' || family == 'O') {
        add_cubic(&g, family, last);
        return g;
    }
    if (n == 0) { /* Cs, Ci */
        if (last == 's') add(&g, fm__mirror(2));
        if (last == 'i') add(&g, fm__rotation(2, M_PI, 1));
        return g;
    }
    if (family == 'S') add(&g, fm__rotation(2, 2 * M_PI / n, 1));
    if (family != 'S') add(&g, fm__rotation(2, 2 * M_PI / n, 0));
    if (family == 'D' && last == 'd') add(&g, fm__rotation(2, M_PI / n, 1));
    if (last == 'h') add(&g, fm__mirror(2));
    if (last == 'v') add(&g, turned(fm__mirror(1), angle));
    if (family == 'D') add(&g, turned(fm__rotation(0, M_PI, 0), angle));
    return g;
}

void fm__add_images(fm_molecule *m, double tol)
{
    const op_list g   = operations(m->group);
    const int     n   = m->n_atom;
    fm_molecule   all = {.atom = malloc((size_t)n * (size_t)g.n * sizeof *all.atom)};
    FM_BUG_UNLESS(all.atom != NULL);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < g.n; k++) {
            fm_atom a = m->atom[i];
            fm__image(&g.op[k], m->atom[i].xyz, a.xyz);
            if (fm__atom_at(&all, a.tag, a.xyz, tol) < 0) all.atom[all.n_atom++] = a;
        }
    free(m->atom);
    m->atom   = all.atom;
    m->n_atom = all.n_atom;
}

/* The mean of what the operations say about atom i. */
static void symmetrise_atom(double out[3], const fm_molecule *old, const op_list *g, int i,
                            double tol)
{
    double sum[3]  = {0};
    int    n_found = 0;
    for (int k = 0; k < g->n; k++) {
        const fm__op *op = &g->op[k];
        fm__op        inverse;
        double        at[3], back[3];
        for (int c = 0; c < 9; c++) inverse.r[c / 3][c % 3] = op->r[c % 3][c / 3];
        fm__image(op, old->atom[i].xyz, at);
        const int j = fm__atom_at(old, old->atom[i].tag, at, tol);
        if (j < 0) continue; /* a tolerance of the detection was just met */
        fm__image(&inverse, old->atom[j].xyz, back);
        for (int c = 0; c < 3; c++) sum[c] += back[c];
        n_found++;
    }
    for (int c = 0; c < 3; c++) out[c] = sum[c] / n_found;
}

/* The operation that takes the last atom equivalent to i onto it. */
static fm__op image_of_last(const fm_molecule *m, const op_list *g, int i)
{
    double at[3];
    for (int j = m->n_atom - 1; j > i; j--)
        for (int k = 0; k < g->n; k++) {
            fm__image(&g->op[k], m->atom[j].xyz, at);
            if (fm__atom_at(m, m->atom[j].tag, at, 1e-6) == i) return g->op[k];
        }
    return g->op[0]; /* the identity */
}

static void turn_grids(fm_molecule *m, const op_list *g)
{
    m->grid_turn = malloc((size_t)m->n_atom * sizeof *m->grid_turn);
    FM_BUG_UNLESS(m->grid_turn != NULL);
    for (int i = 0; i < m->n_atom; i++) {
        const fm__op op = image_of_last(m, g, i);
        memcpy(m->grid_turn[i], op.r, sizeof op.r);
    }
}

static void keep_operations(fm_molecule *m, const op_list *g)
{
    m->n_op = g->n;
    m->op   = malloc((size_t)g->n * sizeof *m->op);
    FM_BUG_UNLESS(m->op != NULL);
    for (int k = 0; k < g->n; k++) memcpy(m->op[k], g->op[k].r, sizeof g->op[k].r);
}

void fm__symmetrise(fm_molecule *m, double tol)
{
    const op_list g    = operations(m->group);
    const size_t  size = (size_t)m->n_atom * sizeof *m->atom;
    fm_molecule   old  = *m;
    old.atom           = malloc(size);
    FM_BUG_UNLESS(old.atom != NULL);
    memcpy(old.atom, m->atom, size);
    for (int i = 0; i < m->n_atom; i++) symmetrise_atom(m->atom[i].xyz, &old, &g, i, 2 * tol);
    free(old.atom);
    turn_grids(m, &g);
    keep_operations(m, &g);
}
