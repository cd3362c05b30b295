/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the straight-line parts of the two-electron kernels (eri_kernel.h), once per
 * class of shell pair and once per total angular momentum:
 *
 *     expand_XY  the pair's Hermite coefficients E, only those that are not zero for
 *                every geometry, from P-A, P-B and 1/2p
 *     bra_XY     half[product][q] += sum_p E[product][p] R[p + q]
 *     ket_XY     out[product of bra][product] += sum_q E[product][q] half[..][q]
 *     coulomb_N  R_tuv of total order <= N from the scaled Boys functions
 *
 *     eri_gen CHUNK > header     CHUNK sums are kept in registers at a time, twice
 *
 * E is listed by chunk of products, then Hermite index, then product; bra_, ket_ and
 * expand_ agree on that.  The transforms to pure components are folded into expand_. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/integral/eri_classes.h"
#include "chem/integral/harmonic.h"
#include "chem/integral/hermite.h"

enum { MAX_HERMITE = 165 };

typedef struct {
    int    la, lb, is_pure;
    int    na, nb, n_hermite;
    int    tuv[MAX_HERMITE][3];
    double ta[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX], tb[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX];
    char   name[16];
} pair_class;

static void class_init(pair_class *c, int la, int lb, int is_pure)
{
    *c    = (pair_class){.la = la, .lb = lb, .is_pure = is_pure};
    c->na = fm_components(la, is_pure && la > 1);
    c->nb = fm_components(lb, is_pure && lb > 1);
    fm_shell_transform(c->ta, la, is_pure);
    fm_shell_transform(c->tb, lb, is_pure);
    c->n_hermite = fm_hermites(la + lb);
    fm_hermite_list(c->tuv, la + lb);
    snprintf(c->name, sizeof c->name, "%c%c%s", "spdfg"[la], "spdfg"[lb],
             is_pure || la < 2 ? "" : "c");
}

/* One cartesian term of a product: its factor, monomials of both sides. */
typedef struct {
    double      f;
    fm_monomial m, n;
} term;

static int terms_of(const pair_class *c, int product, int h, term *out)
{
    const int ca = fm_components(c->la, 0), cb = fm_components(c->lb, 0), *t = c->tuv[h];
    int       n = 0;
    for (int s = 0; s < ca; s++)
        for (int k = 0; k < cb; k++) {
            const double      f = c->ta[product / c->nb * ca + s] * c->tb[product % c->nb * cb + k];
            const fm_monomial a = fm_cartesian(c->la, s), b = fm_cartesian(c->lb, k);
            if (fabs(f) < 1e-12 || t[0] > a.i + b.i || t[1] > a.j + b.j || t[2] > a.k + b.k)
                continue;
            out[n++] = (term){f, a, b};
        }
    return n;
}

static int is_zero(const pair_class *c, int product, int h)
{
    term t[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX];
    return terms_of(c, product, h, t) == 0;
}

/* Coefficients e_t^ij along one axis with E_t = (1/2p)^t e_t:
 * e_t^(i+1,j) = e_(t-1) + (P-A) e_t + (t+1) h e_(t+1), h = 1/2p */
static void write_axis_one(char x, int i, int j, int t)
{
    const int  down = j > 0, fi = down ? i : i - 1, fj = down ? j - 1 : j, top = fi + fj;
    const char side = down ? 'b' : 'a';
    printf("    const vd %c%d%d%d = ", x, i, j, t);
    char sum[512] = "vd_set(0)";
    if (t - 1 >= 0) snprintf(sum, sizeof sum, "%c%d%d%d", x, fi, fj, t - 1);
    if (t <= top) {
        char in[256];
        snprintf(in, sizeof in, "%.255s", sum);
        if (t)
            snprintf(sum, sizeof sum, "vd_fma(p%c[%d], %c%d%d%d, %s)", side, x - 'x', x, fi, fj, t,
                     in);
        else
            snprintf(sum, sizeof sum, "p%c[%d] * %c%d%d%d", side, x - 'x', x, fi, fj, t);
    }
    if (t + 1 <= top) {
        char in[256];
        snprintf(in, sizeof in, "%.255s", sum);
        snprintf(sum, sizeof sum, "vd_fma(%d.0 * h, %c%d%d%d, %s)", t + 1, x, fi, fj, t + 1, in);
    }
    printf("%s;\n", sum);
}

static void write_axis(const pair_class *c, char x)
{
    printf("    const vd %c000 = vd_set(1);\n", x);
    for (int i = 0; i <= c->la; i++)
        for (int j = 0; j <= c->lb; j++)
            for (int t = 0; t <= i + j && i + j > 0; t++) write_axis_one(x, i, j, t);
    for (int i = 0; i <= c->la; i++)
        for (int j = 0; j <= c->lb; j++)
            for (int t = 0; t <= i + j; t++) printf("    (void)%c%d%d%d;\n", x, i, j, t);
}

/* Products of an x and a y factor, written where they are first needed. */
typedef struct {
    char seen[5][5][9][5][5][9];
} plane;

static void write_plane(plane *pl, const term *t, const int tuv[3])
{
    char *seen = &pl->seen[t->m.i][t->n.i][tuv[0]][t->m.j][t->n.j][tuv[1]];
    if (*seen) return;
    *seen = 1;
    printf("    const vd q%d%d%d%d%d%d = x%d%d%d * y%d%d%d;\n", t->m.i, t->n.i, tuv[0], t->m.j,
           t->n.j, tuv[1], t->m.i, t->n.i, tuv[0], t->m.j, t->n.j, tuv[1]);
}

static void write_element(const pair_class *c, plane *pl, int product, int h, int at)
{
    term      t[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX];
    const int n = terms_of(c, product, h, t), *tuv = c->tuv[h];
    for (int k = 0; k < n; k++) write_plane(pl, &t[k], tuv);
    printf("    E[%d] = g%d * ", at, tuv[0] + tuv[1] + tuv[2]);
    for (int k = n - 1; k > 0; k--)
        printf("vd_fma(%.17g * q%d%d%d%d%d%d, z%d%d%d, ", t[k].f, t[k].m.i, t[k].n.i, tuv[0],
               t[k].m.j, t[k].n.j, tuv[1], t[k].m.k, t[k].n.k, tuv[2]);
    printf("(%.17g * q%d%d%d%d%d%d * z%d%d%d)", t[0].f, t[0].m.i, t[0].n.i, tuv[0], t[0].m.j,
           t[0].n.j, tuv[1], t[0].m.k, t[0].n.k, tuv[2]);
    for (int k = 1; k < n; k++) printf(")");
    printf(";\n");
}

typedef void visit(const pair_class *c, void *ctx, int product, int h, int at);

static int for_elements(const pair_class *c, int chunk, int first, int at, visit *f, void *ctx)
{
    const int end = first + chunk < c->na * c->nb ? first + chunk : c->na * c->nb;
    for (int h = 0; h < c->n_hermite; h++)
        for (int p = first; p < end; p++)
            if (!is_zero(c, p, h)) f(c, ctx, p, h, at++);
    return at;
}

static void visit_expand(const pair_class *c, void *ctx, int product, int h, int at)
{
    write_element(c, ctx, product, h, at);
}

static int write_expand(const pair_class *c, int chunk)
{
    plane *pl = calloc(1, sizeof *pl);
    int    at = 0;
    printf("/* h = 1/2p; g is h, negative for a ket; k multiplies everything */\n"
           "static void expand_%s(vd *E, const vd *pa, const vd *pb, vd h, vd g, vd k)\n{\n",
           c->name);
    printf("    (void)pa, (void)pb, (void)h, (void)g;\n    const vd g0 = k;\n");
    for (int n = 1; n <= c->la + c->lb; n++) printf("    const vd g%d = g%d * g;\n", n, n - 1);
    for (char x = 'x'; x <= 'z'; x++) write_axis(c, x);
    for (int p = 0; p < c->na * c->nb; p += chunk)
        at = for_elements(c, chunk, p, at, visit_expand, pl);
    printf("}\n\n");
    free(pl);
    return at;
}

typedef struct {
    int is_bra, last_h, first;
} sums;

static void visit_sum(const pair_class *c, void *ctx, int product, int h, int at)
{
    sums      *s   = ctx;
    const int *t   = c->tuv[h];
    const int  off = s->is_bra ? t[0] * FM_STRIDE_T + t[1] * FM_STRIDE_U + t[2] : h;
    if (s->last_h != h) printf("    r = i0[%d];\n    if (n == 2) s = i1[%d];\n", off, off);
    s->last_h = h;
    printf("    e = %sE[%d]%s; a%d = vd_fma(e, r, a%d);\n", s->is_bra ? "vd_set(" : "", at,
           s->is_bra ? ")" : "", product - s->first, product - s->first);
    printf("    if (n == 2) b%d = vd_fma(e, s, b%d);\n", product - s->first, product - s->first);
}

static void write_sums(const pair_class *c, int chunk, int is_bra)
{
    const int all = c->na * c->nb;
    char      step[24];
    int       at = 0;
    printf("static inline __attribute__((always_inline)) void %s_%s_n(vd *o0, vd *o1, const vd "
           "*i0, const vd *i1, "
           "const %s *E, size_t step, int add, const int n)\n{\n    vd r, s, e;\n    (void)s, "
           "(void)o1, (void)i1;\n"
           "    (void)step;\n",
           is_bra ? "bra" : "ket", c->name, is_bra ? "double" : "vd");
    for (int p = 0; p < all; p += chunk) {
        const int n = p + chunk < all ? chunk : all - p;
        sums      s = {is_bra, -1, p};
        printf("    {\n");
        for (int k = 0; k < n; k++) {
            snprintf(step, sizeof step, is_bra ? "%d * step" : "%d", p + k);
            printf("    vd a%d = add ? o0[%s] : vd_set(0), b%d = n == 2 && add ? o1[%s] : "
                   "vd_set(0);\n",
                   k, step, k, step);
        }
        at = for_elements(c, chunk, p, at, visit_sum, &s);
        for (int k = 0; k < n; k++) {
            snprintf(step, sizeof step, is_bra ? "%d * step" : "%d", p + k);
            printf("    o0[%s] = a%d;\n    if (n == 2) o1[%s] = b%d;\n", step, k, step, k);
        }
        printf("    }\n");
    }
    printf("}\n\n");
}

static void write_bra(const pair_class *c)
{
    printf("static void bra_%s(vd *half, const vd *R, const double *E, const int *offset, int n, "
           "int add)\n{\n"
           "    int q = 0;\n"
           "    for (; q + 1 < n; q += 2)\n"
           "        bra_%s_n(half + q, half + q + 1, R + offset[q], R + offset[q + 1], E, "
           "(size_t)n, add, 2);\n"
           "    if (q < n) bra_%s_n(half + q, NULL, R + offset[q], NULL, E, (size_t)n, add, "
           "1);\n}\n\n",
           c->name, c->name, c->name);
}

static void write_ket(const pair_class *c)
{
    const int all = c->na * c->nb, nh = c->n_hermite;
    printf("static void ket_%s(vd *out, const vd *half, const vd *E, int n, int add)\n{\n"
           "    int p = 0;\n"
           "    for (; p + 1 < n; p += 2)\n"
           "        ket_%s_n(out + p * %d, out + (p + 1) * %d, half + p * %d, half + (p + 1) * %d, "
           "E, 0, add, 2);\n"
           "    if (p < n) ket_%s_n(out + p * %d, NULL, half + p * %d, NULL, E, 0, add, 1);\n}\n\n",
           c->name, c->name, all, all, nh, nh, c->name, all, nh);
}

static void write_class(const pair_class *c, int chunk)
{
    const int n = write_expand(c, chunk);
    printf("enum { N_%s = %d };\n\n", c->name, n);
    write_sums(c, chunk, 1);
    write_bra(c);
    write_sums(c, chunk, 0);
    write_ket(c);
}

/* R^n_(t+1,u,v) = t R^(n+1)_(t-1,u,v) + X R^(n+1)_tuv */
static void write_coulomb_one(int n, int t, int u, int v)
{
    const int o[3] = {t, u, v}, x = v ? 2 : u ? 1 : 0;
    int       d[3] = {t, u, v};
    d[x]--;
    printf("    const vd r%d_%d_%d_%d = ", n, t, u, v);
    if (o[x] > 1) {
        int s[3] = {d[0], d[1], d[2]};
        s[x]--;
        printf("vd_fma(vd_set(%d), r%d_%d_%d_%d, %c * r%d_%d_%d_%d);\n", o[x] - 1, n + 1, s[0],
               s[1], s[2], "XYZ"[x], n + 1, d[0], d[1], d[2]);
    } else
        printf("%c * r%d_%d_%d_%d;\n", "XYZ"[x], n + 1, d[0], d[1], d[2]);
}

static void write_coulomb(int l)
{
    printf("static void coulomb_%d(vd *R, const vd *F, vd X, vd Y, vd Z)\n{\n    (void)X, (void)Y, "
           "(void)Z;\n",
           l);
    for (int n = 0; n <= l; n++) printf("    const vd r%d_0_0_0 = F[%d];\n", n, n);
    for (int n = l - 1; n >= 0; n--)
        for (int sum = 1; sum <= l - n; sum++)
            for (int t = sum; t >= 0; t--)
                for (int u = sum - t; u >= 0; u--) write_coulomb_one(n, t, u, sum - t - u);
    for (int t = 0; t <= l; t++)
        for (int u = 0; u <= l - t; u++)
            for (int v = 0; v <= l - t - u; v++)
                printf("    R[%d] = r0_%d_%d_%d;\n", t * FM_STRIDE_T + u * FM_STRIDE_U + v, t, u,
                       v);
    printf("}\n\n");
}

static void write_table_line(const pair_class *c)
{
    printf("    {%d, %d, %d, N_%s, expand_%s, bra_%s, ket_%s},\n", c->la, c->lb, c->is_pure,
           c->name, c->name, c->name, c->name);
}

/* Offsets of the Hermite indices of total order <= l within R. */
static void write_offsets(int l)
{
    int       tuv[MAX_HERMITE][3];
    const int n = fm_hermites(l);
    fm_hermite_list(tuv, l);
    printf("static const int offset_%d[] = {", l);
    for (int k = 0; k < n; k++)
        printf("%d,", tuv[k][0] * FM_STRIDE_T + tuv[k][1] * FM_STRIDE_U + tuv[k][2]);
    printf("};\n");
}

/* written_at[l_a][l_b][is_pure]: place in `written`, or -1 */
static void write_places(const pair_class *c, int n)
{
    printf("static const signed char written_at[%d][%d][2] = {\n", FM_L_MAX + 1, FM_L_MAX + 1);
    for (int la = 0; la <= FM_L_MAX; la++) {
        printf("    {");
        for (int lb = 0; lb <= FM_L_MAX; lb++) {
            int at[2] = {-1, -1};
            for (int k = 0; k < n; k++)
                for (int pure = 0; pure < 2; pure++)
                    if (c[k].la == la && c[k].lb == lb && (la < 2 || c[k].is_pure == pure))
                        at[pure] = k;
            printf("{%d, %d}, ", at[0], at[1]);
        }
        printf("},\n");
    }
    printf("};\n");
}

enum { MAX_WRITTEN = 32, L_WRITTEN = 12 };

int main(int argc, char **argv)
{
    static pair_class c[MAX_WRITTEN];
    const int         chunk = argc > 1 ? atoi(argv[1]) : 12;
    int               n     = 0;
    for (int pure = 1; pure >= 0; pure--)
        for (int la = pure ? 0 : 2; la <= FM_L_MAX; la++)
            for (int lb = 0; lb <= la; lb++)
                if (fm_pair_is_written(la, lb, pure)) class_init(&c[n++], la, lb, pure);
    printf("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by eri_gen at build time. */\n"
           "enum { L_WRITTEN = %d };\n\n",
           L_WRITTEN);
    for (int l = 0; l <= L_WRITTEN; l++) write_coulomb(l);
    for (int k = 0; k < n; k++) write_class(&c[k], chunk);
    printf("static const pair_functions written[] = {\n");
    for (int k = 0; k < n; k++) write_table_line(&c[k]);
    printf("};\n");
    write_places(c, n);
    printf("\nstatic coulomb_function *const coulomb[] = {\n   ");
    for (int l = 0; l <= L_WRITTEN; l++) printf(" coulomb_%d,", l);
    printf("\n};\n");
    for (int l = 0; l <= 2 * FM_L_MAX; l++) write_offsets(l);
    printf("static const int *const offset_of[] = {");
    for (int l = 0; l <= 2 * FM_L_MAX; l++) printf("offset_%d, ", l);
    printf("};\n");
    return 0;
}
