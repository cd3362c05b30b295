/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h for whatever instructions the including file may use. */
#include <math.h>
#include <string.h>

#include "chem/fock/digest.h"
#include "chem/integral/harmonic.h"
#include "chem/integral/vec.h"

enum { MAX_BLOCK = FM_CARTESIAN_MAX * FM_CARTESIAN_MAX };

static void copy_rows(double *rows, const double *D, int n, int first, int f)
{
    for (int k = 0; k < n; k++)
        for (int a = 0; a < f; a++)
            rows[k * f + a] = D[(size_t)k * (size_t)n + (size_t)(first + a)];
}

static void begin_bra(fm_digest *g, const fm_pair_list *list, int bra, const double *D)
{
    const fm_pair_class *c = &list->class[list->of[bra]];
    g->f_a                 = c->n_contr_a * c->n_a;
    g->f_b                 = c->n_contr_b * c->n_b;
    memset(g->J_bra, 0, (size_t)(g->f_a * g->f_b) * sizeof(vd));
    if (!g->has_K) return;
    copy_rows(g->D_a, D, g->n, list->function_a[bra], g->f_a);
    copy_rows(g->D_b, D, g->n, list->function_b[bra], g->f_b);
    memset(g->K_a, 0, (size_t)(g->n * g->f_a) * sizeof(double));
    memset(g->K_b, 0, (size_t)(g->n * g->f_b) * sizeof(double));
}

static int64_t fixed(double x) { return (int64_t)lrint(x); }

static void add_rows(int64_t *K, double scale, const double *rows, int n, int first, int f)
{
    for (int a = 0; a < f; a++)
        for (int k = 0; k < n; k++)
            K[(size_t)(first + a) * (size_t)n + (size_t)k] += fixed(scale * rows[k * f + a]);
}

static void end_bra(fm_digest *g, const fm_pair_list *list, int bra)
{
    for (int p = 0; p < g->f_a * g->f_b; p++)
        g->J_product[list->product[bra] + p] += fixed(g->J_scale * vd_sum(((vd *)g->J_bra)[p]));
    if (!g->has_K) return;
    add_rows(g->K, g->K_scale, g->K_a, g->n, list->function_a[bra], g->f_a);
    add_rows(g->K, g->K_scale, g->K_b, g->n, list->function_b[bra], g->f_b);
}

/* The four blocks of D and of K between the bra's and the kets' shells, [bra component][ket's]. */
typedef struct {
    vd ac[MAX_BLOCK], ad[MAX_BLOCK], bc[MAX_BLOCK], bd[MAX_BLOCK];
} blocks;

typedef struct {
    int           na, nb, nc, nd;
    const vd     *I; /* [na][nb][nc][nd] */
    const double *D_ab;
    const vd     *D_cd;
    vd           *J_ab, *J_cd;
    blocks       *D, *K;
} sums;

/* nd is a constant where this is expanded, so that rows of D and K stay in registers. */
static inline __attribute__((always_inline)) void exchange(const sums *s, const int nd)
{
    const vd *I = s->I;
    for (int a = 0; a < s->na; a++)
        for (int b = 0; b < s->nb; b++) {
            const vd d_ab = vd_set(s->D_ab[a * s->nb + b]);
            vd       j    = s->J_ab[a * s->nb + b], k_ad[15], k_bd[15], d_ad[15], d_bd[15];
            for (int d = 0; d < nd; d++) {
                k_ad[d] = s->K->ad[a * nd + d];
                k_bd[d] = s->K->bd[b * nd + d];
                d_ad[d] = s->D->ad[a * nd + d];
                d_bd[d] = s->D->bd[b * nd + d];
            }
            for (int c = 0; c < s->nc; c++, I += nd) {
                const vd d_ac = s->D->ac[a * s->nc + c], d_bc = s->D->bc[b * s->nc + c];
                vd       k_ac = s->K->ac[a * s->nc + c], k_bc = s->K->bc[b * s->nc + c];
                for (int d = 0; d < nd; d++) {
                    const vd v          = I[d];
                    j                   = vd_fma(v, s->D_cd[c * nd + d], j);
                    s->J_cd[c * nd + d] = vd_fma(v, d_ab, s->J_cd[c * nd + d]);
                    k_ac                = vd_fma(v, d_bd[d], k_ac);
                    k_bc                = vd_fma(v, d_ad[d], k_bc);
                    k_ad[d]             = vd_fma(v, d_bc, k_ad[d]);
                    k_bd[d]             = vd_fma(v, d_ac, k_bd[d]);
                }
                s->K->ac[a * s->nc + c] = k_ac;
                s->K->bc[b * s->nc + c] = k_bc;
            }
            for (int d = 0; d < nd; d++) {
                s->K->ad[a * nd + d] = k_ad[d];
                s->K->bd[b * nd + d] = k_bd[d];
            }
            s->J_ab[a * s->nb + b] = j;
        }
}

static void coulomb_only(const sums *s)
{
    const int n = s->nc * s->nd;
    for (int ab = 0; ab < s->na * s->nb; ab++) {
        const vd  d = vd_set(s->D_ab[ab]);
        const vd *I = s->I + ab * n;
        vd        j = s->J_ab[ab];
        for (int k = 0; k < n; k++) {
            j          = vd_fma(I[k], s->D_cd[k], j);
            s->J_cd[k] = vd_fma(I[k], d, s->J_cd[k]);
        }
        s->J_ab[ab] = j;
    }
}

static void exchange_of(const sums *s)
{
    switch (s->nd) {
    case 1: exchange(s, 1); break;
    case 3: exchange(s, 3); break;
    case 5: exchange(s, 5); break;
    case 7: exchange(s, 7); break;
    default: exchange(s, s->nd);
    }
}

/* out[bra component][ket component] of rows laid out [function][f], one run per lane */
static void gather_block(vd *out, const double *rows, int f, const int32_t *at, int n_bra,
                         int n_ket)
{
    for (int a = 0; a < n_bra; a++)
        for (int c = 0; c < n_ket; c++) out[a * n_ket + c] = vd_gather(rows + c * f + a, at);
}

static void scatter_block(double *rows, const vd *in, int f, const int32_t *at, int n_bra,
                          int n_ket)
{
    for (int lane = 0; lane < VEC; lane++) {
        double *r = rows + at[lane];
        for (int c = 0; c < n_ket; c++)
            for (int a = 0; a < n_bra; a++) r[c * f + a] += in[a * n_ket + c][lane];
    }
}

typedef struct {
    int32_t ac[FM_ERI_LANES], ad[FM_ERI_LANES], bc[FM_ERI_LANES], bd[FM_ERI_LANES];
} places;

/* One contraction of bra and of ket. */
static void add_combo(fm_digest *g, const fm_pair_list *list, sums *s, const places *p)
{
    blocks D, K;
    s->D = &D;
    s->K = &K;
    gather_block(D.ac, g->D_a, g->f_a, p->ac, s->na, s->nc);
    gather_block(D.ad, g->D_a, g->f_a, p->ad, s->na, s->nd);
    gather_block(D.bc, g->D_b, g->f_b, p->bc, s->nb, s->nc);
    gather_block(D.bd, g->D_b, g->f_b, p->bd, s->nb, s->nd);
    memset(K.ac, 0, (size_t)(s->na * s->nc) * sizeof(vd));
    memset(K.ad, 0, (size_t)(s->na * s->nd) * sizeof(vd));
    memset(K.bc, 0, (size_t)(s->nb * s->nc) * sizeof(vd));
    memset(K.bd, 0, (size_t)(s->nb * s->nd) * sizeof(vd));
    exchange_of(s);
    scatter_block(g->K_a, K.ac, g->f_a, p->ac, s->na, s->nc);
    scatter_block(g->K_a, K.ad, g->f_a, p->ad, s->na, s->nd);
    scatter_block(g->K_b, K.bc, g->f_b, p->bc, s->nb, s->nc);
    scatter_block(g->K_b, K.bd, g->f_b, p->bd, s->nb, s->nd);
    (void)list;
}

static void places_of(places *p, const fm_digest *g, const fm_pair_list *list,
                      const fm_pair_class *b, int mb, const fm_pair_class *c, int mc,
                      const int32_t *ket)
{
    const int a0 = mb / b->n_contr_b * b->n_a, b0 = mb % b->n_contr_b * b->n_b;
    const int c0 = mc / c->n_contr_b * c->n_a, d0 = mc % c->n_contr_b * c->n_b;
    for (int lane = 0; lane < VEC; lane++) {
        const int k = list->function_a[ket[lane]] + c0, l = list->function_b[ket[lane]] + d0;
        p->ac[lane] = k * g->f_a + a0;
        p->ad[lane] = l * g->f_a + a0;
        p->bc[lane] = k * g->f_b + b0;
        p->bd[lane] = l * g->f_b + b0;
    }
}

static void digest_batch(fm_digest *g, const fm_eri_work *w, int class, const int32_t *ket)
{
    const fm_pair_list  *list = w->list;
    const fm_pair_class *b = &list->class[list->of[w->bra]], *c = &list->class[class];
    const int            nab = fm_class_products(b), ncd = fm_class_products(c);
    const int            mb = fm_class_combos(b), mc = fm_class_combos(c);
    vd                   D_cd[MAX_BLOCK], J_cd[MAX_BLOCK];
    int32_t              at[FM_ERI_LANES];
    sums   s = {.na = b->n_a, .nb = b->n_b, .nc = c->n_a, .nd = c->n_b, .D_cd = D_cd, .J_cd = J_cd};
    places p;
    for (int k = 0; k < mc; k++) {
        for (int lane = 0; lane < VEC; lane++) at[lane] = list->product[ket[lane]] + k * ncd;
        for (int q = 0; q < ncd; q++) {
            D_cd[q] = vd_gather(g->D_product + q, at);
            J_cd[q] = vd_set(0);
        }
        for (int m = 0; m < mb; m++) {
            s.I    = (vd *)w->out + (m * mc + k) * nab * ncd;
            s.D_ab = g->D_product + list->product[w->bra] + m * nab;
            s.J_ab = (vd *)g->J_bra + m * nab;
            if (g->has_K) {
                places_of(&p, g, list, b, m, c, k, ket);
                add_combo(g, list, &s, &p);
            } else
                coulomb_only(&s);
        }
        for (int lane = 0; lane < VEC; lane++)
            for (int q = 0; q < ncd; q++)
                g->J_product[at[lane] + q] += fixed(g->J_scale * J_cd[q][lane]);
    }
}

const fm_digest_kernel DIGEST_KERNEL = {DIGEST_ISA, begin_bra, digest_batch, end_bra};
