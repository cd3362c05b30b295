/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/integral/images.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/integral/harmonic.h"

enum { BLOCK = FM_CARTESIAN_MAX * FM_CARTESIAN_MAX };

struct fm_images {
    const fm_molecule *molecule;
    const fm_basis    *basis;
    int               *shell; /* [n_op][n_shell] where an operation takes a shell */
    double            *turn; /* [n_op][2][FM_L_MAX + 1][BLOCK] by is_pure and l: U within a shell */
};

/* --- where shells go ------------------------------------------------------- */

static int atom_at(const fm_molecule *m, const char *tag, const double at[3])
{
    for (int a = 0; a < m->n_atom; a++) {
        const double *x = m->atom[a].xyz;
        if (fabs(x[0] - at[0]) < 1e-4 && fabs(x[1] - at[1]) < 1e-4 && fabs(x[2] - at[2]) < 1e-4 &&
            !strcmp(m->atom[a].tag, tag))
            return a;
    }
    return -1;
}

static int image_of_atom(const fm_molecule *m, int op, int a)
{
    const double *x = m->atom[a].xyz;
    double        at[3];
    for (int k = 0; k < 3; k++)
        at[k] = m->op[op][k][0] * x[0] + m->op[op][k][1] * x[1] + m->op[op][k][2] * x[2];
    return atom_at(m, m->atom[a].tag, at);
}

static int first_shell(const fm_basis *b, int atom)
{
    int s = 0;
    while (s < b->n_shell && b->shell[s].atom != atom) s++;
    return s;
}

/* Atoms of one tag have the same shells in the same order. */
static fm_status map_shells(fm_images *g, int op)
{
    const fm_basis *b = g->basis;
    for (int s = 0; s < b->n_shell; s++) {
        const int from = b->shell[s].atom, to = image_of_atom(g->molecule, op, from);
        if (to < 0)
            return fm_fail(FM_E_ARG, "atom %d has no image under operation %d of %s", from + 1,
                           op + 1, g->molecule->group);
        g->shell[op * b->n_shell + s] = first_shell(b, to) + s - first_shell(b, from);
    }
    return FM_OK;
}

/* --- how components mix ---------------------------------------------------- */

/* out (degree l + 1) = p (degree l) times the k-th coordinate after the inverse turn. */
static void times_coordinate(double *out, const double *p, int l, const double r[3][3], int k)
{
    memset(out, 0, FM_CARTESIAN_MAX * sizeof *out);
    for (int c = 0; c < fm_components(l, 0); c++) {
        const fm_monomial m = fm_cartesian(l, c);
        for (int a = 0; a < 3; a++) {
            const int j = m.j + (a == 1), z = m.k + (a == 2), rest = j + z;
            out[rest * (rest + 1) / 2 + z] += r[a][k] * p[c];
        }
    }
}

/* T[to][from]: the image of monomial `from` is sum_to T[to][from] monomial `to`. */
static void turn_monomials(double *T, int l, const double r[3][3])
{
    const int n = fm_components(l, 0);
    for (int from = 0; from < n; from++) {
        const fm_monomial m                      = fm_cartesian(l, from);
        double            p[FM_CARTESIAN_MAX]    = {1};
        double            next[FM_CARTESIAN_MAX] = {0};
        for (int d = 0; d < l; d++) {
            times_coordinate(next, p, d, r, d < m.i ? 0 : d < m.i + m.j ? 1 : 2);
            memcpy(p, next, sizeof p);
        }
        for (int to = 0; to < n; to++) T[to * n + from] = p[to];
    }
}

/* The same for solid harmonics, which are orthogonal: T = c G t c^T / (2l-1)!!. */
static void turn_harmonics(double *T, int l, const double r[3][3])
{
    const int n = fm_components(l, 0), k = fm_components(l, 1);
    double    t[BLOCK], c[BLOCK], image[FM_CARTESIAN_MAX];
    turn_monomials(t, l, r);
    fm_shell_transform(c, l, 1);
    const double norm = fm_monomial_overlap((fm_monomial){l, 0, 0}, (fm_monomial){l, 0, 0});
    for (int from = 0; from < k; from++) {
        for (int a = 0; a < n; a++) {
            image[a] = 0;
            for (int b = 0; b < n; b++) image[a] += t[a * n + b] * c[from * n + b];
        }
        for (int to = 0; to < k; to++) {
            double sum = 0;
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++)
                    sum += c[to * n + a] * image[b] *
                           fm_monomial_overlap(fm_cartesian(l, a), fm_cartesian(l, b));
            T[to * k + from] = sum / norm;
        }
    }
}

static double *turn_of(const fm_images *g, int op, int is_pure, int l)
{
    return g->turn + (size_t)((op * 2 + (is_pure && l > 1)) * (FM_L_MAX + 1) + l) * BLOCK;
}

static void fill_turns(fm_images *g, int op)
{
    const double(*r)[3] = (const double(*)[3])g->molecule->op[op];
    for (int l = 0; l <= g->basis->l_max; l++) {
        turn_monomials(turn_of(g, op, 0, l), l, r);
        if (l > 1) turn_harmonics(turn_of(g, op, 1, l), l, r);
    }
}

/* --- life ------------------------------------------------------------------ */

fm_status fm_images_create(fm_images **out, const fm_molecule *m, const fm_basis *b)
{
    fm_images   *g    = calloc(1, sizeof *g);
    const size_t n_op = (size_t)m->n_op;
    fm_status    rc   = FM_OK;
    if (!g) return fm_fail(FM_E_OOM, "images of functions");
    g->molecule = m, g->basis = b;
    g->shell = malloc(n_op * (size_t)b->n_shell * sizeof *g->shell);
    g->turn  = malloc(n_op * 2 * (FM_L_MAX + 1) * BLOCK * sizeof *g->turn);
    if (!g->shell || !g->turn) rc = fm_fail(FM_E_OOM, "images of functions");
    for (int op = 0; op < m->n_op && rc == FM_OK; op++) {
        rc = map_shells(g, op);
        if (rc == FM_OK) fill_turns(g, op);
    }
    if (rc == FM_OK)
        *out = g;
    else
        fm_images_destroy(g);
    return rc;
}

void fm_images_destroy(fm_images *g)
{
    if (!g) return;
    free(g->shell);
    free(g->turn);
    free(g);
}

/* --- means ----------------------------------------------------------------- */

/* out += f row, n numbers */
static void add_row(double *out, double f, const double *row, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] += f * row[i];
}

/* out[n][n] = (U A)^T, or (U^T A)^T for operators. */
static void turn_rows(const fm_images *g, int op, int is_operator, double *out, const double *A,
                      double *row)
{
    const fm_basis *b = g->basis;
    const size_t    n = (size_t)b->n_function;
    for (int s = 0; s < b->n_shell; s++) {
        const fm_shell *from = &b->shell[s], *to = &b->shell[g->shell[op * b->n_shell + s]];
        const int       k = fm_components(from->l, from->is_pure);
        const double   *T = turn_of(g, op, from->is_pure, from->l);
        for (int c = 0; c < from->n_contr; c++)
            for (int i = 0; i < k; i++) {
                const int at = (is_operator ? from : to)->first + c * k + i;
                memset(row, 0, n * sizeof *row);
                for (int j = 0; j < k; j++) {
                    const double f  = is_operator ? T[j * k + i] : T[i * k + j];
                    const int    of = (is_operator ? to : from)->first + c * k + j;
                    if (f != 0) add_row(row, f, A + (size_t)of * n, n);
                }
                for (size_t q = 0; q < n; q++) out[q * n + (size_t)at] = row[q];
            }
    }
}

static fm_status average(const fm_images *g, int is_operator, double *A, double *moved)
{
    const size_t n = (size_t)g->basis->n_function, nn = n * n;
    double      *room = calloc(3 * nn + n, sizeof *room);
    if (!room) return fm_fail(FM_E_OOM, "images of a matrix");
    double *sum = room, *half = room + nn, *image = room + 2 * nn, *row = room + 3 * nn;
    for (int op = 0; op < g->molecule->n_op; op++) {
        turn_rows(g, op, is_operator, half, A, row);
        turn_rows(g, op, is_operator, image, half, row);
        add_row(sum, 1.0 / g->molecule->n_op, image, nn);
    }
    *moved = 0;
    for (size_t i = 0; i < nn; i++) *moved = fmax(*moved, fabs(sum[i] - A[i]));
    memcpy(A, sum, nn * sizeof *A);
    free(room);
    return FM_OK;
}

fm_status fm_images_average_density(const fm_images *g, double *A, double *moved)
{
    return average(g, 0, A, moved);
}

fm_status fm_images_average_operator(const fm_images *g, double *A, double *moved)
{
    return average(g, 1, A, moved);
}
