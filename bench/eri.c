/* SPDX-License-Identifier: Apache-2.0 */
/* bench_eri [GEOMETRY.nw [BASIS [TOL]]]: what two-electron integrals cost, class by class, on
 * the mix of quartets that survive in a cluster of water molecules; one core.
 *
 *     class     bra and ket by angular momenta, primitives of the pairs
 *     share     of all surviving quartets
 *     ns        per quartet: integrals, digestion into J and K
 *     peak      multiply-adds of the integrals' transforms against the core's FP64 peak
 *
 * A sample of the bras of each class is timed; the totals are extrapolated from it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chem/fock/worker.h"
#include "probe/peak.h"

enum { MAX_ATOM = 256, MAX_CLASS = 256, SAMPLE = 24 };

static const double BOHR = 1.88972598858;

typedef struct {
    double quartets, eri_s, digest_s, fma;
} cost;

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Lines "TAG x y z" of a deck with an H or O. */
static int read_atoms(fm_atom *atom, const char *path)
{
    char  line[512], tag[16];
    int   n = 0;
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    while (n < MAX_ATOM && fgets(line, sizeof line, f)) {
        double x, y, z;
        if (sscanf(line, " %15s %lf %lf %lf", tag, &x, &y, &z) != 4) continue;
        if (strcmp(tag, "O") != 0 && strcmp(tag, "H") != 0) continue;
        const int charge = tag[0] == 'O' ? 8 : 1;
        atom[n++] = (fm_atom){.z = charge, .charge = charge, .xyz = {x * BOHR, y * BOHR, z * BOHR}};
    }
    fclose(f);
    return n;
}

/* Decays with distance as the density of an insulator does. */
static void make_density(double *D, const fm_basis *b)
{
    unsigned seed = 1;
    for (int i = 0; i < b->n_shell; i++)
        for (int j = 0; j <= i; j++) {
            const fm_shell *s = &b->shell[i], *t = &b->shell[j];
            double          d2 = 0;
            for (int x = 0; x < 3; x++) d2 += pow(s->xyz[x] - t->xyz[x], 2);
            for (int p = 0; p < fm_shell_functions(s); p++)
                for (int q = 0; q < fm_shell_functions(t); q++) {
                    seed           = seed * 1664525u + 1013904223u;
                    const double v = 0.6 * exp(-0.9 * sqrt(d2)) * (seed / 4294967296.0 - 0.5);
                    const size_t r = (size_t)(s->first + p), c = (size_t)(t->first + q),
                                 n = (size_t)b->n_function;
                    D[r * n + c] = D[c * n + r] = v;
                }
        }
}

/* Entries of the Hermite coefficients of a class that are not always zero. */
static double entries(const fm_pair_class *c)
{
    fm_hermite_rows r = {0};
    if (fm_hermite_rows_init(&r, c->l_a, c->l_b, c->is_pure) != FM_OK) return 0;
    const double n = r.n;
    fm_hermite_rows_fini(&r);
    return n;
}

/* Multiply-adds of one batch: Hermite integrals and both transforms, per pair of primitives. */
static double batch_fma(const fm_pair_class *b, const fm_pair_class *c, double prim_b,
                        double prim_c)
{
    const int    l   = b->l_a + b->l_b + c->l_a + c->l_b;
    const double R   = (l + 1) * (l + 2) * (l + 3) * (l + 4) / 24.0;
    const double bra = entries(b) * c->n_hermite * fm_class_combos(b);
    const double ket = entries(c) * fm_class_products(b) * fm_class_combos(b) * fm_class_combos(c);
    return prim_b * prim_c * (R + bra) + prim_c * ket;
}

static void time_kets(fm_worker *w, cost *k, int class, int n, double scale)
{
    const int lanes = w->eri->lanes, bra = w->work.bra;
    for (int x = n; x < n + lanes; x++) w->kets[x] = w->kets[n - 1];
    double factor[FM_ERI_LANES], t[3];
    for (int lane = 0; lane < FM_ERI_LANES; lane++) factor[lane] = 1;
    t[0] = cpu_s();
    for (int x = 0; x < n; x += lanes)
        w->eri->batch(&w->work, class, w->kets + x, factor, FM_ERI_ALL_PRIMITIVES);
    t[1] = cpu_s();
    for (int x = 0; x < n; x += lanes) w->digest->batch(&w->sum[0], &w->work, class, w->kets + x);
    t[2]                      = cpu_s();
    const fm_pair_list *l     = w->work.list;
    double              prims = 0;
    for (int x = 0; x < n; x++) prims += l->n_prim[w->kets[x]];
    k->quartets += scale * n;
    k->eri_s += scale * (t[1] - t[0]);
    k->digest_s += scale * (t[2] - t[1]);
    k->fma += scale * n *
              batch_fma(&l->class[l->of[bra]], &l -> class[class], l -> n_prim[bra], prims / n);
}

static void sample_bra(fm_worker *w, const fm_screen *s, int bra, const double *D, cost *of_ket,
                       double scale)
{
    const double top = fm_screen_row(s, w->row, bra);
    w->eri->begin_bra(&w->work, bra, FM_ERI_ALL_PRIMITIVES);
    w->digest->begin_bra(&w->sum[0], s->list, bra, D);
    for (int class = s->list->n_class - 1; class >= 0; class --) {
        if (!s->list->is_ket[s->list->of[bra] * s->list->n_class + class]) continue;
        const int n = fm_screen_kets(s, w->kets, bra, class, w->row, top);
        if (n > 0) time_kets(w, &of_ket[class], class, n, scale);
    }
    w->digest->end_bra(&w->sum[0], s->list, bra);
}

static void name_of(char out[16], const fm_pair_class *c)
{
    snprintf(out, 16, "%c%c%d", "spdfg"[c->l_a], "spdfg"[c->l_b], c -> most_prim);
}

static void print_line(const char *bra, const char *ket, const cost *k, double all, double peak)
{
    const double fma_s = k->eri_s > 0 ? k->fma / k->eri_s : 0;
    printf("(%-5s|%-5s) %7.3f %%  %8.1f %8.1f   %5.1f %%   %6.2f s\n", bra, ket,
           100 * k->quartets / all, 1e9 * k->eri_s / k->quartets, 1e9 * k->digest_s / k->quartets,
           100 * fma_s / peak, k->eri_s + k->digest_s);
}

static cost total_of(const cost *k, int n)
{
    cost t = {0};
    for (int x = 0; x < n; x++) {
        t.quartets += k[x].quartets;
        t.eri_s += k[x].eri_s;
        t.digest_s += k[x].digest_s;
        t.fma += k[x].fma;
    }
    return t;
}

static void report(const fm_pair_list *l, const cost *k, double peak)
{
    const cost t = total_of(k, MAX_CLASS * MAX_CLASS);
    printf("class           share      ns: ERI   digest   of peak     total\n");
    for (int b = 0; b < l->n_class; b++)
        for (int c = 0; c < l->n_class; c++) {
            char bra[16], ket[16];
            name_of(bra, &l->class[b]);
            name_of(ket, &l->class[c]);
            if (k[b * MAX_CLASS + c].quartets > 0)
                print_line(bra, ket, &k[b * MAX_CLASS + c], t.quartets, peak);
        }
    print_line("all", "all", &t, t.quartets, peak);
    printf("%.3g quartets, %.1f ns each on one core; FP64 peak of the core %.1f GFLOP/s\n",
           t.quartets, 1e9 * (t.eri_s + t.digest_s) / t.quartets, 2e-9 * peak);
}

static void measure(fm_worker *w, const fm_screen *s, const double *D, cost *k)
{
    const fm_pair_list *l = s->list;
    for (int c = 0; c < l->n_class; c++) {
        const int n = l->class[c].n_pair, m = n < SAMPLE ? n : SAMPLE;
        for (int x = 0; x < m; x++)
            sample_bra(w, s, l->class[c].first + (int)((x + 0.5) * n / m), D, k + c * MAX_CLASS,
                       (double)n / m);
    }
}

int main(int argc, char **argv)
{
    static fm_atom atom[MAX_ATOM];
    static cost    k[MAX_CLASS * MAX_CLASS];
    const char *path = argc > 1 ? argv[1] : FM_TEST_DATA "/chem/nwchem/w12_b3lyp_cc-pvtz_energy.nw";
    const double tol = argc > 3 ? atof(argv[3]) : 1e-9;
    fm_molecule  m   = {.atom = atom, .n_atom = read_atoms(atom, path)};
    fm_basis     b   = {0};
    fm_pair_list l   = {0};
    fm_screen    s   = {0};
    fm_worker    w   = {0};
    fm_keep      keep = {0};
    fm_status    rc   = FM_OK;
    const fm_isa isa  = fm_cpu_isa();
    double      *D    = NULL;
    FM_GO(fm_basis_from_library(&b, &m, argc > 2 ? argv[2] : "cc-pvtz", 1));
    D = calloc((size_t)b.n_function * (size_t)b.n_function, sizeof *D);
    if (!D) return 1;
    make_density(D, &b);
    FM_GO(fm_pairs_init(&l, &b, 0.1 * tol, fm_eri_kernel_pick(isa)));
    FM_GO(fm_screen_init(&s, &l, &b, 1, (const double *const[]){D}, 1, tol));
    FM_GO(fm_keep_init(&keep, &l, 0, tol));
    FM_GO(fm_worker_init(&w, &l, &b, &keep, isa));
    FM_GO(fm_worker_begin(&w, 1, 1));
    w.work.cut         = tol * 0.1 / s.D_most;
    double *D_product  = calloc((size_t)l.n_product + 1, sizeof *D_product);
    w.sum[0].D_product = D_product;
    w.sum[0].J_scale = w.sum[0].K_scale = 1;
    printf("%d atoms, %d functions, %d pairs of %d classes, %s, tolerance %g\n", m.n_atom,
           b.n_function, l.n_pair, l.n_class, w.eri->name, tol);
    measure(&w, &s, D, k);
    report(&l, k, 0.5 * fm_peak_of_core(isa, FM_FACTOR_F64));
    free(D_product);
out:
    if (rc != FM_OK) fprintf(stderr, "bench_eri: %s\n", fm_why());
    fm_worker_fini(&w);
    fm_screen_fini(&s);
    fm_pairs_fini(&l);
    fm_basis_fini(&b);
    free(D);
    return rc != FM_OK;
}
