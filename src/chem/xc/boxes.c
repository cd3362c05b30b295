/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/boxes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const fm_grid *grid;
    int           *order; /* [n_point] permutation being sorted */
} sorting;

static const double *axis_of(const sorting *s, int axis)
{
    return axis == 0 ? s->grid->x : axis == 1 ? s->grid->y : s->grid->z;
}

/* Coordinates first, numbers of points where they are equal: one order on every rank. */
static int is_before(const double *u, int a, int b)
{
    return u[a] < u[b] || (u[a] == u[b] && a < b);
}

/* Hoare's selection: order[from..k) lie before order[k..to) along u. */
static void select_around(int *order, int from, int to, int k, const double *u)
{
    while (to - from > 1) {
        const int pivot = order[from + (to - from) / 2];
        int       i = from, j = to - 1;
        while (i <= j) {
            while (is_before(u, order[i], pivot)) i++;
            while (is_before(u, pivot, order[j])) j--;
            if (i > j) break;
            const int t = order[i];
            order[i++] = order[j], order[j--] = t;
        }
        if (k <= j)
            to = j + 1;
        else if (k >= i)
            from = i;
        else
            return;
    }
}

static int longest_axis(const sorting *s, int from, int to)
{
    int    longest = 0;
    double most    = -1;
    for (int axis = 0; axis < 3; axis++) {
        const double *u   = axis_of(s, axis);
        double        low = INFINITY, high = -INFINITY;
        for (int i = from; i < to; i++) {
            low  = fmin(low, u[s->order[i]]);
            high = fmax(high, u[s->order[i]]);
        }
        if (high - low > most) most = high - low, longest = axis;
    }
    return longest;
}

/* Halves at multiples of FM_BOX, so that all boxes but the last are full. */
static void sort_points(const sorting *s, int from, int to)
{
    if (to - from <= FM_BOX) return;
    const int n_box = (to - from + FM_BOX - 1) / FM_BOX;
    const int k     = from + n_box / 2 * FM_BOX;
    select_around(s->order, from, to, k, axis_of(s, longest_axis(s, from, to)));
    sort_points(s, from, k);
    sort_points(s, k, to);
}

static double *aligned(size_t n)
{
    return aligned_alloc(64, (n * sizeof(double) + 63) / 64 * 64 + 64);
}

static fm_status place_points(fm_boxes *b, const fm_grid *g)
{
    sorting s      = {g, malloc(((size_t)g->n_point + 1) * sizeof *s.order)};
    b->n_box       = (g->n_point + FM_BOX - 1) / FM_BOX;
    const size_t n = (size_t)b->n_box * FM_BOX;
    b->x = aligned(n), b->y = aligned(n), b->z = aligned(n), b->w = aligned(n);
    if (!s.order || !b->x || !b->y || !b->z || !b->w) {
        free(s.order);
        return fm_fail(FM_E_OOM, "boxes of the grid");
    }
    for (int i = 0; i < g->n_point; i++) s.order[i] = i;
    sort_points(&s, 0, g->n_point);
    for (size_t i = 0; i < n; i++) {
        const int is_point = i < (size_t)g->n_point;
        const int from     = s.order[is_point ? i : (size_t)g->n_point - 1];
        b->x[i] = g->x[from], b->y[i] = g->y[from], b->z[i] = g->z[from];
        b->w[i] = is_point ? g->w[from] : 0;
    }
    free(s.order);
    return FM_OK;
}

/* The distance from which on every function of the shell stays below `least`. */
static double shell_radius(const fm_shell *s, double least)
{
    double r = 60;
    for (;; r -= 0.05) {
        double most = 0;
        for (int c = 0; c < s->n_contr; c++) {
            double sum = 0;
            for (int p = 0; p < s->n_prim; p++)
                sum += fabs(s->coef[c * s->n_prim + p]) * exp(-s->exponent[p] * r * r);
            most = fmax(most, sum * pow(r, s->l));
        }
        if (most > least || r <= 0.05) return r + 0.05;
    }
}

static void nearest_points(double *r, const fm_boxes *b, int box, const fm_basis *basis)
{
    int atom = -1;
    for (int i = 0; i < basis->n_shell; i++) {
        const fm_shell *s = &basis->shell[i];
        if (s->atom == atom) {
            r[i] = r[i - 1];
            continue;
        }
        double least = INFINITY;
        for (int p = box * FM_BOX; p < (box + 1) * FM_BOX; p++) {
            const double x = b->x[p] - s->xyz[0], y = b->y[p] - s->xyz[1], z = b->z[p] - s->xyz[2];
            const double r2 = x * x + y * y + z * z;
            least           = r2 < least ? r2 : least;
        }
        r[i] = sqrt(least);
        atom = s->atom;
    }
}

static void list_shells(fm_boxes *b, const fm_basis *basis, const double *radius, double *nearest)
{
    for (int i = 0; i < b->n_box; i++) {
        int n            = b->first[i];
        b->n_function[i] = 0;
        nearest_points(nearest, b, i, basis);
        for (int s = 0; s < basis->n_shell; s++)
            if (nearest[s] < radius[s]) {
                b->shell[n++] = s;
                b->n_function[i] += fm_shell_functions(&basis->shell[s]);
            }
        b->first[i + 1] = n;
        if (b->n_function[i] > b->max_function) b->max_function = b->n_function[i];
    }
}

static fm_status find_shells(fm_boxes *b, const fm_basis *basis, double tol_ao)
{
    fm_status    rc    = FM_OK;
    const size_t n_box = (size_t)b->n_box, n_shell = (size_t)basis->n_shell;
    double      *radius  = malloc((n_shell + 1) * sizeof *radius);
    double      *nearest = malloc((n_shell + 1) * sizeof *nearest);
    b->first             = calloc(n_box + 1, sizeof *b->first);
    b->n_function        = calloc(n_box + 1, sizeof *b->n_function);
    b->shell             = malloc((n_box * n_shell + 1) * sizeof *b->shell);
    if (!radius || !nearest || !b->first || !b->n_function || !b->shell) {
        rc = fm_fail(FM_E_OOM, "functions of the grid's boxes");
        goto out;
    }
    for (int s = 0; s < basis->n_shell; s++)
        radius[s] = shell_radius(&basis->shell[s], exp(-tol_ao));
    list_shells(b, basis, radius, nearest);
    int *fit = realloc(b->shell, ((size_t)b->first[b->n_box] + 1) * sizeof *b->shell);
    if (fit) b->shell = fit;
out:
    free(radius);
    free(nearest);
    return rc;
}

fm_status fm_boxes_init(fm_boxes *b, const fm_grid *g, const fm_basis *basis, double tol_ao)
{
    *b           = (fm_boxes){0};
    fm_status rc = place_points(b, g);
    if (rc == FM_OK) rc = find_shells(b, basis, tol_ao);
    if (rc != FM_OK) fm_boxes_fini(b);
    return rc;
}

void fm_boxes_fini(fm_boxes *b)
{
    free(b->x);
    free(b->y);
    free(b->z);
    free(b->w);
    free(b->first);
    free(b->shell);
    free(b->n_function);
    *b = (fm_boxes){0};
}
