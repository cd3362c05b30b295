/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/grid.h"

#include <stdlib.h>

#include "chem/xc/grid_internal.h"
#include "chem/xc/lebedev.h"

/* Everything that is needed until the points are there. */
typedef struct {
    fm__grid_shell  *shell; /* [n_shell] */
    int             *first; /* [n_shell + 1] place of a shell's points before dropping */
    int             *kept;  /* [n_shell] */
    int              n_shell;
    fm_sphere_point *sphere[FM_LEBEDEV_SETS + 1]; /* turned to the molecule's axes */
    fm__partition    partition;
} grid_plan;

static void free_plan(grid_plan *p)
{
    free(p->shell);
    free(p->first);
    free(p->kept);
    for (int i = 0; i <= FM_LEBEDEV_SETS; i++) free(p->sphere[i]);
    fm__partition_fini(&p->partition);
}

static fm_status list_shells(grid_plan *p, const fm_grid *g, const fm_molecule *m,
                             fm_grid_level level)
{
    const size_t most = (size_t)m->n_atom * FM__GRID_SHELLS_MAX;
    p->shell          = malloc(most * sizeof *p->shell);
    p->first          = malloc((most + 1) * sizeof *p->first);
    p->kept           = malloc(most * sizeof *p->kept);
    if (!p->shell || !p->first || !p->kept) return fm_fail(FM_E_OOM, "shells of the grid");
    for (int i = 0; i < m->n_atom; i++) {
        const fm_atom *a = &m->atom[i];
        const int      z = fm__grid_element(a, g->cutoff[i] > 0);
        if (z == 0 || g->cutoff[i] == 0) continue;
        if (!fm__grid_knows(z))
            return fm_fail(FM_E_NOSUP, "DFT grids exist for H to Ar, not for %s",
                           fm_element_symbol(z));
        p->n_shell += fm__grid_shells(p->shell + p->n_shell, i, z, a->z, g->cutoff[i], level);
    }
    p->first[0] = 0;
    for (int i = 0; i < p->n_shell; i++)
        p->first[i + 1] = p->first[i] + fm_lebedev_points(p->shell[i].set);
    return FM_OK;
}

static fm_status turn_spheres(grid_plan *p, const fm_molecule *m)
{
    double axes[3][3];
    fm__grid_axes(axes, m);
    for (int s = 1; s <= FM_LEBEDEV_SETS; s++) {
        const int        n   = fm_lebedev_points(s);
        fm_sphere_point *out = malloc((size_t)n * sizeof *out);
        if (!out) return fm_fail(FM_E_OOM, "angular points of the grid");
        p->sphere[s] = out;
        fm_lebedev_fill(out, s);
        for (int i = 0; i < n; i++) {
            const double *u = out[i].xyz;
            double        v[3];
            for (int k = 0; k < 3; k++)
                v[k] = axes[k][0] * u[0] + axes[k][1] * u[1] + axes[k][2] * u[2];
            for (int k = 0; k < 3; k++) out[i].xyz[k] = v[k];
        }
    }
    return FM_OK;
}

static fm_status allocate_points(fm_grid *g, size_t n)
{
    g->x = malloc((n + 1) * sizeof *g->x);
    g->y = malloc((n + 1) * sizeof *g->y);
    g->z = malloc((n + 1) * sizeof *g->z);
    g->w = malloc((n + 1) * sizeof *g->w);
    return g->x && g->y && g->z && g->w ? FM_OK : fm_fail(FM_E_OOM, "points of the grid");
}

/* The points of one shell with their final weights; those to be dropped move out. */
static int fill_shell(fm_grid *g, const grid_plan *p, const fm_molecule *m, int i)
{
    const fm__grid_shell  *s = &p->shell[i];
    const fm_sphere_point *u = p->sphere[s->set];
    const double          *c = m->atom[s->atom].xyz;
    const int              n = fm_lebedev_points(s->set);
    double                *x = g->x + p->first[i], *y = g->y + p->first[i], *z = g->z + p->first[i],
           *w                      = g->w + p->first[i];
    static const double none[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const double(*const t)[3]      = m->grid_turn ? m->grid_turn[s->atom] : none;
    for (int q = 0; q < n; q++) {
        const double *v = u[q].xyz;
        x[q]            = c[0] + s->radius * (t[0][0] * v[0] + t[0][1] * v[1] + t[0][2] * v[2]);
        y[q]            = c[1] + s->radius * (t[1][0] * v[0] + t[1][1] * v[1] + t[1][2] * v[2]);
        z[q]            = c[2] + s->radius * (t[2][0] * v[0] + t[2][1] * v[1] + t[2][2] * v[2]);
        w[q]            = u[q].weight * s->weight;
    }
    if (!fm__partition_shell(&p->partition, s, n, x, y, z, w)) return n;
    int kept = 0;
    for (int q = 0; q < n; q++)
        if (w[q] != 0) x[kept] = x[q], y[kept] = y[q], z[kept] = z[q], w[kept++] = w[q];
    return kept;
}

static void close_gaps(fm_grid *g, const grid_plan *p)
{
    for (int i = 0; i < p->n_shell; i++)
        for (int q = p->first[i]; q < p->first[i] + p->kept[i]; q++) {
            const int to = g->n_point++;
            g->x[to] = g->x[q], g->y[to] = g->y[q], g->z[to] = g->z[q], g->w[to] = g->w[q];
        }
}

fm_status fm_grid_init(fm_grid *g, const fm_molecule *m, const fm_basis *b, fm_grid_level level,
                       fm_grid_level cutoff_level, int n_thread)
{
    fm_status rc = FM_OK;
    grid_plan p  = {0};
    *g           = (fm_grid){.cutoff = calloc((size_t)m->n_atom + 1, sizeof(int))};
    if (!g->cutoff) return fm_fail(FM_E_OOM, "radial cutoffs");
    FM_GO(fm__grid_cutoffs(g->cutoff, m, b, fm__grid_accuracy(cutoff_level)));
    FM_GO(list_shells(&p, g, m, level));
    FM_GO(turn_spheres(&p, m));
    FM_GO(fm__partition_init(&p.partition, m, b));
    FM_GO(allocate_points(g, (size_t)p.first[p.n_shell]));
#pragma omp parallel for schedule(dynamic) num_threads(n_thread)
    for (int i = 0; i < p.n_shell; i++) p.kept[i] = fill_shell(g, &p, m, i);
    close_gaps(g, &p);
out:
    free_plan(&p);
    if (rc != FM_OK) fm_grid_fini(g);
    return rc;
}

void fm_grid_fini(fm_grid *g)
{
    free(g->x);
    free(g->y);
    free(g->z);
    free(g->w);
    free(g->cutoff);
    *g = (fm_grid){0};
}
