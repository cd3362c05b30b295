/* SPDX-License-Identifier: Apache-2.0 */
/* The search against functions with known optima, and against a grid of bench flags that was
 * measured point by point: after a quarter of the evaluations within 3 % of the optimum, in nine of
 * ten seeds, and ahead of random search.
 *
 *   branin     Branin's function over two integers, and a choice of three that shifts and lifts it
 *   hartmann   Hartmann's six-dimensional function, each axis at three whole levels
 *   func2c     Ru et al. 2020: two choices among Rosenbrock's, the six-hump camel's and Beale's
 *              functions, added over two numbers
 *   machine    conditional: a choice opens one of two branches with parameters of its own
 *   bench      tests/data/tune/bench_grid.txt; with an argument, that file alone
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tune/sampler.h"

enum { N_SEED = 10, MOST_GRID = 256 };

static void ok(fm_status rc)
{
    if (rc != FM_OK) fail_msg("%s", fm_why());
}

/* ---- functions: smaller is better ---- */

/* Dixon and Szegoe 1978; minimum 0.397887 at (-pi, 12.275), (pi, 2.275), (9.42478, 2.475). */
static double branin(double x, double y)
{
    const double a = y - 5.1 / (4 * M_PI * M_PI) * x * x + 5 / M_PI * x - 6;
    return a * a + 10 * (1 - 1 / (8 * M_PI)) * cos(x) + 10;
}

static double branin_mixed(const fm_point *p)
{
    static const double shift[] = {0, 1.5, -2}, lift[] = {4, 0, 9};
    const int           m = (int)p->v[2];
    return branin(-5 + p->v[0] * 15 / 24 + shift[m], p->v[1] * 15 / 24) + lift[m] + 10;
}

/* Hartmann 1973; minimum -3.32237 in the unit cube. */
static double hartmann6(const double *x)
{
    static const double alpha[4] = {1.0, 1.2, 3.0, 3.2};
    static const double a[4][6]  = {{10, 3, 17, 3.5, 1.7, 8},
                                    {0.05, 10, 17, 0.1, 8, 14},
                                    {3, 3.5, 1.7, 10, 17, 8},
                                    {17, 8, 0.05, 10, 0.1, 14}};
    static const double p[4][6]  = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                    {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                    {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                    {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    double              sum      = 0;
    for (int i = 0; i < 4; i++) {
        double inner = 0;
        for (int j = 0; j < 6; j++) inner += a[i][j] * (x[j] - p[i][j]) * (x[j] - p[i][j]);
        sum -= alpha[i] * exp(-inner);
    }
    return sum;
}

static double hartmann_levels(const fm_point *p)
{
    double x[6];
    for (int j = 0; j < 6; j++) x[j] = (p->v[j] + 0.5) / 3;
    return hartmann6(x);
}

/* Rosenbrock 1960, Dixon and Szegoe 1978, Beale 1958, on a square around their interesting part. */
static double chosen(int which, double x, double y)
{
    const double a = 1.5 - x + x * y, b = 2.25 - x + x * y * y, c = 2.625 - x + x * y * y * y;
    if (which == 0) return 100 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x);
    if (which == 1)
        return (4 - 2.1 * x * x + x * x * x * x / 3) * x * x + x * y + (4 * y * y - 4) * y * y;
    return a * a + b * b + c * c;
}

static double func2c(const fm_point *p)
{
    const double x = -1 + p->v[2] / 10, y = -1 + p->v[3] / 10;
    return chosen((int)p->v[0], x, y) + chosen((int)p->v[1], x, y);
}

/* A job on a machine: one branch has a batch size and a depth, the other threads and a
 * binding.  Rosenbrock's valley in the first, a product of humps in the second. */
static double machine(const fm_point *p)
{
    if (p->v[0] == 0) {
        const double x = log2(p->v[1]) / 2 - 1.5, y = p->v[2] / 4 - 0.5;
        return 20 + 10 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x);
    }
    const double t = (p->v[3] - 23) / 12;
    return 18 + 25 * t * t + (p->v[4] == 1 ? 0 : 6);
}

/* ---- a measured grid: larger is better ---- */

typedef struct {
    fm_space space;
    fm_point at[MOST_GRID];
    double   value[MOST_GRID];
    int      n;
} grid;

static grid bench_grid;

/* "# param TEXT" lines, then rows: a value of each parameter, and what was measured. */
static void read_grid(grid *g, const char *path)
{
    FILE *f = fopen(path, "r");
    char  line[512];
    if (!f) fail_msg("%s cannot be read", path);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "# param ", 8)) ok(fm_space_add(&g->space, line + 8));
        if (line[0] == '#' || !line[0]) continue;
        char *rest = line;
        for (int i = 0; i < g->space.n; i++)
            ok(fm_param_read(&g->space.param[i], strsep(&rest, " "), &g->at[g->n].v[i]));
        g->value[g->n++] = atof(rest);
    }
    fclose(f);
    assert_true(g->n >= 60);
}

static double grid_value(const fm_point *p)
{
    for (int i = 0; i < bench_grid.n; i++)
        if (fm_point_equal(&bench_grid.space, p, &bench_grid.at[i])) return bench_grid.value[i];
    fail_msg("a point that was not measured");
    return 0;
}

/* ---- the measure ---- */

typedef struct {
    const char *name;
    double (*f)(const fm_point *p);
    const char *param[8];
    int         maximize;
    int         most;     /* evaluations, where a quarter would be more */
    int         tpe_wins; /* the second sampler beats random search, too */
} problem;

static const problem problems[] = {
    {"branin", branin_mixed, {"x=0..24", "y=0..24", "kind={plain,shifted,far}"}, 0, 80, 1},
    {"hartmann",
     hartmann_levels,
     {"a=0..2", "b=0..2", "c=0..2", "d=0..2", "e=0..2", "f=0..2"},
     0,
     182,
     0},
    {"func2c",
     func2c,
     {"first={rosenbrock,camel,beale}", "second={rosenbrock,camel,beale}", "x=0..20", "y=0..20"},
     0,
     80,
     1},
    {"machine",
     machine,
     {"where={gpu,cpu}", "batch=1..64:log if where=gpu", "depth=1..8 if where=gpu",
      "threads=1..48 if where=cpu", "bind={none,core} if where=cpu"},
     0,
     100,
     0},
    {"bench", grid_value, {NULL}, 1, 60, 1},
};

typedef struct {
    double best, worst;
    int    n;
} extent;

static void add_extent(extent *e, double x)
{
    if (!e->n || x < e->best) e->best = x;
    if (!e->n || x > e->worst) e->worst = x;
    e->n++;
}

/* Every point once: all combinations of values, each parameter's that do not exist only once. */
static void exhaust(extent *e, const problem *p, const fm_space *space, fm_point *at, int i)
{
    if (i == space->n) {
        add_extent(e, p->maximize ? -p->f(at) : p->f(at));
        return;
    }
    at->v[i] = NAN;
    if (!fm_param_exists(space, i, at)) {
        exhaust(e, p, space, at, i + 1);
        return;
    }
    for (int64_t k = 0; k < fm_param_n_value(&space->param[i]); k++) {
        at->v[i] = fm_param_nth(&space->param[i], k);
        exhaust(e, p, space, at, i + 1);
    }
}

/* The best loss after n evaluations. */
static double search(const problem *p, fm_space *space, const char *sampler, int n, int seed)
{
    fm_study s;
    double   best = INFINITY;
    fm_study_init(&s, space, p->maximize);
    s.seed = (uint64_t)seed;
    for (int k = 0; k < n; k++) {
        fm_point at;
        ok(fm_suggest(&at, fm_search_sampler_find(sampler), &s));
        fm_trial *t = fm_study_begin(&s, &at);
        t->value    = p->f(&at);
        t->state    = FM_TRIAL_OK;
        best        = fmin(best, fm_study_loss(&s, t->value));
    }
    fm_study_close(&s);
    return best;
}

typedef struct {
    int    n_within;
    double regret; /* mean, as a share of the optimum */
} score;

static score try_seeds(const problem *p, fm_space *space, const char *sampler, int n, extent e)
{
    score out = {0};
    for (int seed = 0; seed < N_SEED; seed++) {
        const double regret = (search(p, space, sampler, n, seed) - e.best) / fabs(e.best);
        out.n_within += regret <= 0.03;
        out.regret += regret / N_SEED;
    }
    return out;
}

static void print_score(const char *name, score s)
{
    print_message("  %-7s within 3 %% in %d of %d seeds, mean regret %.2f %%\n", name, s.n_within,
                  N_SEED, 100 * s.regret);
}

static void meets_the_bar(void **state)
{
    const problem *p   = *state;
    fm_space       own = {0}, *space = p->f == grid_value ? &bench_grid.space : &own;
    for (int i = 0; p->param[i]; i++) ok(fm_space_add(space, p->param[i]));
    extent   e  = {0};
    fm_point at = {{0}};
    exhaust(&e, p, space, &at, 0);
    const int   n      = e.n / 4 < p->most ? e.n / 4 : p->most;
    const score random = try_seeds(p, space, "random", n, e);
    const score gp     = try_seeds(p, space, "gp", n, e);
    print_message("%s: optimum %.4g, %d of %d points\n", p->name, e.best, n, e.n);
    print_score("random", random);
    print_score("gp", gp);
    assert_true(gp.n_within >= 9);
    assert_true(gp.regret < random.regret);
    if (p->tpe_wins) {
        const score tpe = try_seeds(p, space, "tpe", n, e);
        print_score("tpe", tpe);
        assert_true(tpe.regret < random.regret);
    }
    fm_space_fini(&own);
}

int main(int argc, char **argv)
{
    enum { N = sizeof problems / sizeof problems[0] };
    read_grid(&bench_grid, argc > 1 ? argv[1] : FM_TEST_DATA "/tune/bench_grid.txt");
    struct CMUnitTest tests[N], last[1];
    for (int i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){problems[i].name, meets_the_bar, NULL, NULL, (void *)&problems[i]};
    last[0]          = tests[N - 1];
    const int failed = argc > 1 ? cmocka_run_group_tests(last, NULL, NULL)
                                : cmocka_run_group_tests(tests, NULL, NULL);
    fm_space_fini(&bench_grid.space);
    return failed;
}
